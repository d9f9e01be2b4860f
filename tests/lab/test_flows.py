"""People from aggregates: flows and windows are the same thing, and people come out as counted.

Towns are drawn person by person, and counted by brute force.
"""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.people.fitting import Windows, fit
from lab.people.flows import beyond, rejoined, unique_people
from lab.people.splitting import ByValue, split
from producers.people import Flows, deal, flows_of, whole
from protocols.arrays import Floats, Mask, Places, Whole
from protocols.errors import ScenarioError


def windows_of(there: Mask) -> Whole:
    """The different people of days s..e, `[s, e]`; `there` has a row for each person and a column for each day."""
    days = there.shape[1]
    found = np.zeros((days + 1, days + 1), dtype=np.int64)
    for first in range(days):
        found[first + 1, first + 1 :] = np.maximum.accumulate(there[:, first:], axis=1).sum(axis=0)
    return found


def matrix_of(present: list[Places]) -> Mask:
    found = np.zeros((1 + max(int(day.max(initial=-1)) for day in present), len(present)), dtype=bool)
    for day, people in enumerate(present):
        found[people, day] = True
    return found


def town(seed: int, people: int, days: int) -> Mask:
    """People who come more or less often."""
    rng = np.random.default_rng(seed)
    there = rng.random((people, days)) < rng.beta(0.5, 2, (people, 1))
    there[:, -1] |= ~there.any(axis=1)
    return np.asarray(there)


def some(unique: Whole, bounds: list[tuple[int, int]], error: float = 0) -> Windows:
    people = np.array([unique[window] for window in bounds], dtype=np.float64)
    return Windows(np.array(bounds), people, np.full(len(bounds), error))


@given(st.integers(0, 10**6), st.integers(1, 300), st.integers(1, 25))
def test_windows_give_flows_give_people_give_windows(seed: int, people: int, days: int) -> None:
    unique = windows_of(town(seed, people, days))
    flows = flows_of(unique)
    assert flows.min() >= 0 and np.array_equal(unique_people(flows), unique)
    dealt = matrix_of(deal(flows, np.random.default_rng(seed)))
    assert len(dealt) == people and np.array_equal(windows_of(dealt), unique)


def shuffled_or_not(flows: Flows, rng: np.random.Generator, shuffle: bool) -> Mask:
    class Unshuffled:
        def permutation(self, there: Places) -> Places:
            return np.sort(there)

    return matrix_of(deal(flows, rng if shuffle else Unshuffled()))  # type: ignore[arg-type]


@pytest.mark.parametrize("shuffle", [True, False])
def test_where_people_go_does_not_depend_on_where_they_come_from(shuffle: bool) -> None:
    flows = flows_of(windows_of(town(1, 20_000, 3)))
    rng, n = np.random.default_rng(2), int(flows[:, 2].sum())
    came, go = int(flows[1, 2]), int(flows[2, 3])
    error = np.sqrt(came * go * (n - came) * (n - go) / n**3)  # of a hypergeometric number
    three = int(shuffled_or_not(flows, rng, shuffle).all(axis=1).sum())
    assert (abs(three - came * go / n) < 4 * error) == shuffle, "dealt without shuffling, it must fail"


def by_sets_of_days(windows: Windows) -> Floats:
    """The flows of maximum entropy by enumerating all sets of days, with multipliers found by Newton's method."""
    days = windows.days
    sets = np.array([[number >> day & 1 for day in range(days)] for number in range(1, 2**days)], dtype=bool)
    meets = np.array([sets[:, first - 1 : last].any(axis=1) for first, last in windows.bounds], dtype=np.float64)
    wanted = windows.people / windows.people.max()  # all days are a window: the total is given
    held = np.zeros(len(wanted))
    for _ in range(200):
        weights = np.exp(held @ meets)
        step = np.linalg.lstsq((meets * weights) @ meets.T, wanted - meets @ weights, rcond=1e-13)[0]
        held += step * min(1, 1 / np.abs(step @ meets).max())
    flows = np.zeros((days + 2, days + 2))
    for members, weight in zip(sets, np.exp(held @ meets) * windows.people.max(), strict=True):
        for arc in pairwise([0, *(np.flatnonzero(members) + 1), days + 1]):
            flows[arc] += weight
    return flows


@pytest.mark.parametrize("lengths", [range(1, 7), (1, 2, 6), (1, 3, 6)])
def test_flows_are_those_of_maximum_entropy_over_all_sets_of_days(lengths: range | tuple[int, ...]) -> None:
    unique = windows_of(town(3, 5_000, 6))
    windows = some(unique, [(s, s + n - 1) for n in lengths for s in range(1, 8 - n)])
    found = fit(windows)
    assert np.abs(found - by_sets_of_days(windows)).max() < 0.01
    rounded = whole(found)
    assert np.abs(rounded - found).max() < 1 and np.abs(windows.missed(unique_people(rounded))).max() < 4
    assert np.array_equal(np.diag(unique_people(rounded)), np.diag(unique)), "days stay as they are"


def test_windows_that_contradict_each_other_are_refused_by_name_and_estimates_are_not() -> None:
    unique = windows_of(town(4, 2_000, 6))
    bounds = [(s, e) for s in range(1, 7) for e in range(s, 7)]
    windows = some(unique, bounds)
    windows.people[bounds.index((2, 3))] += 3_000
    with pytest.raises(ScenarioError, match="days 2 to 3 have"):
        fit(windows)
    estimates = Windows(windows.bounds, windows.people, np.full(len(bounds), 500.0))
    assert fit(estimates)[0].sum() == pytest.approx(unique[1, 6], rel=0.3)


def test_flows_between_the_bounds_keep_every_window_up_to_the_horizon() -> None:
    flows, horizon = flows_of(windows_of(town(5, 3_000, 20))), 5
    start, end = np.nonzero(np.triu(np.ones_like(flows), horizon))
    away = (start > 0) & (end < 21)
    short = flows.copy()
    for i, j in zip(start[away], end[away], strict=True):  # what nobody knows: who returned after so long
        short[0, j] += flows[i, j]
        short[i, -1] += flows[i, j]
        short[i, j] = 0
    most, fewest = int(short[0].sum()), int(short[0].sum() - beyond(short, horizon).sum())
    assert fewest < 3_000 < most
    for people in (fewest, 3_000, most):
        found = rejoined(short, horizon, most - people, np.random.default_rng(6))
        assert found[0].sum() == people and found.min() >= 0
        lengths = np.subtract(*np.indices((21, 21))[::-1]) < horizon
        assert np.array_equal(unique_people(found)[lengths], unique_people(flows)[lengths])


def town_by_value(seed: int, days: int = 10) -> list[Whole]:
    """The windows of 9,000 people by value: they come seldom, now and then, and often; at least once."""
    rng = np.random.default_rng(seed)
    waves = np.sin(np.arange(days) + np.arange(3)[:, None])
    found = []
    for people, often, wave in zip((4500, 2700, 1800), (0.03, 0.1, 0.4), waves, strict=True):
        there = rng.random((people, days)) < often * (1 + 0.4 * wave)
        there[np.arange(people), rng.integers(days, size=people)] |= ~there.any(axis=1)
        found.append(windows_of(there))
    return found


def split_by_value(towns: list[Whole], longest: int, error: float, seed: int) -> tuple[list[Flows], ByValue]:
    """`error`: of the share of a value on a day. Windows of more people have smaller ones, as those of reports have."""
    flows, days = flows_of(np.sum(towns, axis=0)), len(towns[0]) - 1
    bounds = np.array([(s, e) for s in range(1, days + 1) for e in range(s, min(s + longest, days + 1))])
    truth = np.array([one[tuple(bounds.T)] for one in towns]).T.astype(np.float64)
    people, a_day = truth.sum(axis=1, keepdims=True), flows[:, 1:-1].sum() / days
    errors = np.broadcast_to(error * np.sqrt(people * a_day), truth.shape)
    noise = np.random.default_rng(seed).normal(0, 1, truth.shape) * errors
    published = ByValue(bounds, truth + noise, errors)
    found = split(flows, [published])
    assert np.array_equal(sum(found), flows) and min(part.min() for part in found) >= 0
    return found, published


def test_exact_days_by_value_come_out_exactly() -> None:
    found, published = split_by_value(town_by_value(7), 1, 0.0, 8)
    shown = np.array([np.diag(unique_people(part))[1:] for part in found]).T
    assert np.array_equal(shown, published.people)


@pytest.mark.long(part="statistics")
def test_windows_by_value_tell_who_comes_often_and_days_alone_do_not() -> None:
    """Days are published with errors of 0.037, so the share of a value among all people with one of 0.0154."""
    wrong = []
    for seed in range(8):
        towns = town_by_value(seed)
        true = np.array([flows_of(one) for one in towns])
        for longest in (1, 10):
            off = np.array(split_by_value(towns, longest, 0.037, seed)[0]) - true
            days = (off.sum(axis=1) / true.sum(axis=(0, 1)).clip(1))[:, 1:-1]
            everybody = np.abs(off[:, 0].sum(axis=1)).mean() / 9000
            wrong.append((days.std(), everybody, np.abs(off).sum() / 2 / true.sum()))
    (_, without, apart), (days, everybody, arcs) = np.reshape(wrong, (8, 2, 3)).mean(axis=0)
    assert days < 0.025 and everybody < 0.008 and arcs < 0.07
    assert without > 3 * everybody and apart > 3 * arcs, "the control: without windows"
