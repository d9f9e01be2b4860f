"""Smoothing helps where little moves, does no harm where much does, and its intervals keep their promise throughout."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from analytics.estimation import estimate
from analytics.estimation.estimates import Estimates, variance
from analytics.estimation.smoothing import smooth
from analytics.mobility import CountHistory, MobilityReport, mobility_report
from analytics.windows import ByGap
from analytics.windows.first_reports import by_gap
from lab.seeded_keyrings import seeded_keyring
from producers.scenarios import scenario
from protocols.question import Question
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from stream_app.counting import Statistics
from stream_app.counting.counters import Counts
from stream_app.finals import FinalKey, Release, release
from tests.helpers.crowd import counts_of, scheme_of
from tests.helpers.published import Memory, build_mobility
from tests.helpers.town import live
from views.results import MOBILITY

K, DEVICES, PERIODS, TOWNS = 6, 1500, 40, 6
BASE = np.array([0.4, 0.25, 0.15, 0.1, 0.07, 0.03])
TERMS = {"l-osue": "eps_inf: 3, eps_1: 1", "l-grr": "eps_inf: 3, eps_1: 1", "oue": "eps: 1"}

EVERY_OTHER = "there and back every other period"

Life = Callable[[np.ndarray, int, np.random.Generator], np.ndarray]
LIVES: dict[str, Life] = {
    "nothing moves": lambda values, t, random: values,
    "people drift": lambda values, t, random: np.where(
        random.random(DEVICES) < 0.05, random.choice(K, size=DEVICES, p=np.roll(BASE, t // 8)), values
    ),
    "everybody jumps once": lambda values, t, random: (values + 2) % K if t == PERIODS // 2 else values,
    EVERY_OTHER: lambda values, t, random: (values + 1 - 2 * (t % 2)) % K,
}


LATER = range(4, PERIODS)


@cache
def _lived(mechanism: str, life: str) -> tuple[Question, list[tuple[Estimates, Estimates, np.ndarray]]]:
    """For several towns and the later periods: the smoothed estimate, the unbiased one, and the truth."""
    scheme = scheme_of(f"{{name: a, range: {{last: {K - 1}}}, mechanism: {mechanism}}}", TERMS[mechanism])
    question, lived = scheme.question("a"), []
    memo = question.memo_channel if scheme.survey.longitudinal else None
    for town in range(TOWNS):
        random = np.random.default_rng(town)
        values = random.choice(K, size=DEVICES, p=BASE)
        counts, truth = [], []
        for t in range(PERIODS):
            values = LIVES[life](values, t, random)
            counts.append(counts_of(scheme, "a", values, np.zeros(DEVICES, dtype=int), seed=town, period=t)[0][0])
            truth.append(np.bincount(values, minlength=K) / DEVICES)
        n = np.full(PERIODS, DEVICES)
        raw = estimate(counts, n, question.channel, population=n)
        for t in LATER:
            past = slice(t + 1)
            smoothed = smooth(counts[past], n[past], question.channel, memo, population=DEVICES)
            lived.append((smoothed, raw[t], truth[t]))
    return question, lived


def _coverage(pairs: list[tuple[Estimates, np.ndarray]]) -> float:
    return float(np.mean([(estimates.low <= truth) & (truth <= estimates.high) for estimates, truth in pairs]))


def _loss(pairs: list[tuple[Estimates, np.ndarray]]) -> float:
    return float(np.mean([(estimates.value - truth) ** 2 for estimates, truth in pairs]))


@pytest.mark.parametrize("mechanism", list(TERMS))
def test_where_nothing_moves_most_of_the_fresh_noise_is_averaged_away(mechanism: str) -> None:
    _, lived = _lived(mechanism, "nothing moves")
    raw = _loss([(raw, truth) for _, raw, truth in lived])
    assert _loss([(smoothed, truth) for smoothed, _, truth in lived]) < raw / 3


@pytest.mark.parametrize("mechanism", ["l-osue", "l-grr"])
def test_it_does_not_pretend_to_have_averaged_the_memos_away(mechanism: str) -> None:
    question, lived = _lived(mechanism, "nothing moves")
    floor = variance(BASE, DEVICES, question.memo_channel, DEVICES)
    assert all((smoothed.error**2 > 0.8 * floor).all() for smoothed, _, _ in lived)


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("life", LIVES)
@pytest.mark.parametrize("mechanism", list(TERMS))
def test_intervals_hold_the_truth_whether_it_rests_drifts_or_jumps(mechanism: str, life: str) -> None:
    _, lived = _lived(mechanism, life)
    expected = 0.9 if life == EVERY_OTHER else 0.93  # a jump in every period is not what the filter expects
    assert _coverage([(smoothed, truth) for smoothed, _, truth in lived]) >= expected


def test_an_interval_is_never_wider_than_that_of_the_unbiased_estimate() -> None:
    """With little noise, who happened to report matters more than what can be averaged."""
    question = scheme_of(f"{{name: a, range: {{last: {K - 1}}}, mechanism: grr}}", "eps: 6").question("a")
    counts = np.random.default_rng(1).multinomial(DEVICES, question.channel.support(BASE), PERIODS)
    smoothed = smooth(counts, np.full(PERIODS, DEVICES), question.channel, None, population=DEVICES)
    assert (smoothed.error <= 1.1 * estimate(counts[-1], DEVICES, question.channel, population=DEVICES).error).all()


WHO: dict[str, Callable[[np.ndarray, int, np.random.Generator], np.ndarray]] = {
    "half of them, by chance": lambda devices, t, random: random.random(len(devices)) < 0.5,
    "every other period": lambda devices, t, random: (devices + t) % 2 == 0,
    "a quarter of them at weekends": lambda devices, t, random: (t % 7 < 5) | (devices % 4 == 0),
    "ever more of them": lambda devices, t, random: devices < 100 + (DEVICES - 100) * t // PERIODS,
}


@pytest.mark.parametrize("who", WHO)
def test_people_who_stay_away_and_come_back_bring_the_same_memos(who: str) -> None:
    """The truth is what values were drawn from; values and memos are the same whenever a device is there."""
    scheme = scheme_of(f"{{name: a, range: {{last: {K - 1}}}, mechanism: l-grr}}", "eps_inf: 3, eps_1: 2")
    question, held = scheme.question("a"), []
    for town in range(25):
        random, respondent = np.random.default_rng(town), Respondent(scheme, seeded_keyring(town))
        devices = np.arange(DEVICES, dtype=np.uint64)
        memos = respondent.memoise(question, devices, random.choice(K, size=DEVICES, p=BASE))
        counts = []
        for t in range(PERIODS):
            there = WHO[who](devices.astype(int), t, random)
            answers = respondent.report(question, devices[there], t, memos[there])
            counts.append(np.bincount(answers, minlength=K))
        smoothed = smooth(counts, np.sum(counts, axis=1), question.channel, question.memo_channel)
        held.append((smoothed.low <= BASE) & (smoothed.high >= BASE))
    assert np.mean(held) > 0.93


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("life", list(LIVES)[1:])
@pytest.mark.parametrize("mechanism", list(TERMS))
def test_where_things_move_it_is_not_worse_than_the_raw_estimate(mechanism: str, life: str) -> None:
    _, lived = _lived(mechanism, life)
    assert _loss([(smoothed, truth) for smoothed, _, truth in lived]) <= _loss(
        [(raw, truth) for _, raw, truth in lived]
    )


def test_periods_without_reports_are_bridged() -> None:
    question = scheme_of("{name: a, values: [x, y], mechanism: l-grr}").question("a")
    n, there = np.array([1000, 1000, 0, 0, 1000]), [0, 1, 4]
    counts = n[:, None] * [0.6, 0.4]
    alone, near, bridged = (
        smooth(counts[rows], n[rows], question.channel, question.memo_channel) for rows in ([4], there, slice(None))
    )
    assert (near.error < bridged.error).all() and (bridged.error < alone.error).all()


@pytest.mark.parametrize("n", [[0, 0, 0], [1000, 1000, 0]])
def test_without_reports_in_the_last_period_nothing_is_known(n: list[int]) -> None:
    question = scheme_of("{name: a, values: [x, y], mechanism: l-grr}").question("a")
    counts = np.array(n)[:, None] * [0.6, 0.4]
    assert np.isnan(smooth(counts, n, question.channel, question.memo_channel).value).all()


# What is published.

TOWN = scenario("commuters", devices=2000, periods=30, rows=2, columns=2)
FLOWS = ", ".join(f"'{value}'" for value in TOWN.attributes["transition"])
ATTRIBUTES = f"{{name: area, values: [r0c0, r0c1, r1c0, r1c1]}}, {{name: transition, values: [{FLOWS}]}}"


def _published(terms: str) -> dict[int, MobilityReport]:
    """The published reports of a town's hours, by period, each from what the merge holds when the period closes."""
    text = f"{{id: town, start: 2026-01-05T00:00:00Z, period: 1h, {terms}, attributes: [{ATTRIBUTES}]}}"
    scheme, keyring = Scheme(parse_survey(text)), Keyring(bytes(16))
    counts = live(scheme, TOWN)
    closed: dict[int, Counts | Release] = {}
    reports = {}
    for t in counts.periods:
        statistics = {
            name: Statistics(n[t].gaps.astype(np.uint16), n[t].counts, counts.supports[name][t].counts)
            for name, n in counts.reports.items()
        }
        closed[t] = statistics
        if scheme.presence is not None:
            before = closed.get(t - 1)
            assert before is None or isinstance(before, Release)
            closed[t] = release(statistics, scheme, t, before, keyring)
        closed.pop(t - scheme.survey.horizon, None)
        record, again = (MOBILITY.messages(FinalKey("town", t), build_mobility(scheme, t, closed)) for _ in "12")
        assert record == again, "a republication is the same bytes"
        (reports[t],) = Memory(record).mobility("town")
    return reports


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize(
    "terms",
    [
        "eps_inf: 4, eps_1: 2",
        "eps_inf: 5, eps_1: 4, solution: spl",
        "eps: 2",
        "eps: 2, solution: spl, presence_epsilon: 4",
    ],
    ids=["smp", "spl", "one-shot", "noised"],
)
def test_published_intervals_hold_the_truth_and_are_narrower(terms: str) -> None:
    reports = _published(f"{terms}, horizon: 12")
    held, narrower = [], []
    for t in range(1, TOWN.periods):
        window, presences = reports[t].window(t, t), TOWN.presences(t)
        for attribute in window.attributes:
            values, shares = presences.values[attribute.name], attribute.values
            assert shares and shares.smoothed
            truth = np.bincount(values, minlength=len(shares.share.value)) / len(values)
            held += ((shares.smoothed.low <= truth) & (truth <= shares.smoothed.high)).tolist()
            narrower += (shares.smoothed.error / shares.share.error).tolist()
    assert len(held) == 29 * 20
    assert np.mean(held) >= 0.93 and np.mean(narrower) < 0.97


def test_a_suppressed_period_does_not_show_in_later_smoothed_shares() -> None:
    scheme = scheme_of("{name: a, values: [x, y], mechanism: grr}", "eps: 2, horizon: 3, minimum: 100")

    def report(few: list[int]) -> MobilityReport:
        supports = by_gap(np.array([[[0, 0], [0, 0], row] for row in ([300, 200], few, [250, 250])]))
        n = [ByGap(period.gaps, period.counts.sum(axis=1)) for period in supports]
        whole, nothing = np.array([1]), np.zeros(0, dtype=np.int64)  # the second period is not released
        return mobility_report(CountHistory(scheme, 0, {"a": n}, {"a": supports}, ranges=[whole, nothing, whole]))

    once, again = (report(few).window(2, 2).model_dump_json() for few in ([40, 5], [1, 90]))
    assert once == again
