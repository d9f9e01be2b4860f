"""Windows are exact: every sum equals a count of people; counts with noise are made to agree."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.windows import ByGap, agree
from analytics.windows.agreement import project
from analytics.windows.first_reports import by_gap, first_reports

DEVICES, PERIODS, VALUES = 40, 12, 3


def _presence(seed: int, rate: float, horizon: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Who was there with which value (-1: absent), and the counters n[t, gap-1] and N[t, gap-1, value] of it."""
    random = np.random.default_rng(seed)
    present = random.random((PERIODS, DEVICES)) < rate
    values = np.where(present, random.integers(VALUES, size=present.shape), -1)
    histogram = np.zeros((PERIODS, horizon, VALUES), dtype=np.int64)
    last = np.full(DEVICES, -horizon)
    for t in range(PERIODS):
        here = np.flatnonzero(present[t])
        gaps = np.minimum(t - last[here], horizon)
        np.add.at(histogram, (t, gaps - 1, values[t, here]), 1)
        last[here] = t
    return values, histogram.sum(axis=2), histogram


def _sparse(counters: np.ndarray) -> list[ByGap]:
    """The same counters without the gaps that do not occur."""
    occurring = [(period, np.flatnonzero(period.any(axis=1))) for period in counters]
    return [ByGap(rows + 1, period[rows]) for period, rows in occurring]


@given(seed=st.integers(0, 10_000), rate=st.sampled_from([0.05, 0.3, 0.9]), horizon=st.sampled_from([1, 5, 12]))
def test_every_window_equals_a_brute_force_count(seed: int, rate: float, horizon: int) -> None:
    values, n, histogram = _presence(seed, rate, horizon)
    for start in range(PERIODS):
        for length in range(1, min(horizon, PERIODS - start) + 1):
            inside = values[start : start + length]
            seen = inside[:, (inside >= 0).any(axis=0)]
            firsts = seen[(seen >= 0).argmax(axis=0), np.arange(seen.shape[1])]
            assert first_reports(by_gap(n), start, length) == seen.shape[1]
            by_value = np.bincount(firsts, minlength=VALUES)
            assert (first_reports(by_gap(histogram), start, length) == by_value).all()
            assert (first_reports(_sparse(histogram), start, length) == by_value).all()


@pytest.mark.parametrize(("start", "length"), [(0, 0), (-1, 1), (3, 2)])
def test_a_window_beyond_the_data_is_refused(start: int, length: int) -> None:
    with pytest.raises(ValueError, match="counters have"):
        first_reports(by_gap(np.ones((4, 3))), start, length)


@pytest.mark.parametrize("seed", range(60))
def test_no_other_whole_numbers_with_the_total_are_nearer(seed: int) -> None:
    random = np.random.default_rng(seed)
    numbers, most = random.integers(-4, 8, 4), random.integers(0, 6, 4)
    total = int(random.integers(0, most.sum() + 1))
    found = project(numbers, most, total)
    assert (found >= 0).all() and (found <= most).all() and found.sum() == total
    others = [np.array(row) for row in product(*(range(m + 1) for m in most)) if sum(row) == total]
    assert ((found - numbers) ** 2).sum() == min(((other - numbers) ** 2).sum() for other in others)


def test_cells_that_agree_stay_as_they_are() -> None:
    random, horizon = np.random.default_rng(5), 4
    last, before = np.full(200, -horizon), None
    for period in range(12):
        there = np.flatnonzero(random.random(200) < 0.4)
        cells = np.bincount(np.minimum(period - last[there], horizon) - 1, minlength=horizon)
        last[there] = period
        agreed = agree(cells, int(cells.sum()), before)
        assert agreed.cells.tolist() == cells.tolist()
        before = agreed.left


@pytest.mark.parametrize("seed", range(10))
def test_a_window_has_at_least_the_visitors_of_every_window_inside_it(seed: int) -> None:
    random, horizon, before, rows = np.random.default_rng(seed), 5, None, []
    for _ in range(15):
        noised = random.integers(-30, 40, horizon)
        agreed = agree(noised, max(0, int(noised.sum())), before)
        rows.append(agreed.cells)
        before = agreed.left
    periods = by_gap(np.array(rows))
    for start, length in product(range(14), range(1, horizon)):
        if start + length < 15:
            longer = first_reports(periods, start, length + 1)
            assert longer >= first_reports(periods, start, length), "the same beginning"
            assert longer >= first_reports(periods, start + 1, length), "the same end"
