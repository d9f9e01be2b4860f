"""Nowcasts: errors and intervals for truths of many kinds, and what goes wrong if filters are told wrong things."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from analytics import nowcasting
from analytics.nowcasting import Nowcaster
from protocols.arrays import Floats

PERIODS, SETTLED, SERIES = 150, 40, 100
LITTLE, MUCH = 0.0144, 0.0786  # standard errors of an estimate: of the telemetry example, and with one_in: 30
TIME = np.arange(PERIODS)[:, None]

Truth = Callable[[np.random.Generator, int], Floats]


def walk(step: float) -> Truth:
    return lambda random, series: 0.3 + np.cumsum(random.normal(0, step, (PERIODS, series)), axis=0)


def jumps(random: np.random.Generator, series: int) -> Floats:
    size = random.uniform(0.05, 0.2, (PERIODS, series)) * random.choice([-1, 1], (PERIODS, series))
    return 0.3 + np.cumsum(np.where((TIME + random.integers(0, 50, series)) % 50 == 0, size, 0), axis=0)


def week(random: np.random.Generator, series: int) -> Floats:
    days = random.normal(0, 0.04, (7, series))
    return 0.3 + np.resize(days - days.mean(axis=0), (PERIODS, series))


def autoregressive(random: np.random.Generator, series: int) -> Floats:
    found = np.full((PERIODS, series), 0.3)
    for t in range(1, PERIODS):
        found[t] = 0.3 + 0.9 * (found[t - 1] - 0.3) + random.normal(0, 0.01, series)
    return found


def outliers(random: np.random.Generator, series: int) -> Floats:
    return 0.3 + np.where(random.random((PERIODS, series)) < 0.02, 0.1, 0.0)


def late(random: np.random.Generator, series: int) -> Floats:
    return 0.3 + np.cumsum(np.where(TIME < 75, 0.0, random.normal(0, 0.01, (PERIODS, series))), axis=0)


STATED: dict[str, tuple[Truth, int, float, float]] = {  # the season, and errors of nowcasts at little and at much noise
    "constant": (walk(0), 1, 0.0031, 0.0170),
    "0.05 points": (walk(0.0005), 1, 0.0035, 0.0174),
    "0.2 points": (walk(0.002), 1, 0.0056, 0.0188),
    "1 point": (walk(0.01), 1, 0.0103, 0.0286),
    "jumps": (jumps, 1, 0.0064, 0.0316),
    "week": (week, 7, 0.0056, 0.0263),
}
OTHERS: dict[str, Truth] = {  # nothing was chosen by these
    "ramp": lambda random, series: 0.2 + 0.002 * TIME + np.zeros(series),
    "growth": lambda random, series: 0.1 + 0.4 / (1 + np.exp((75 - TIME) / random.uniform(5, 20, series))),
    "autoregressive": autoregressive,
    "outliers": outliers,
    "late": late,
}


class Kept(NamedTuple):
    """How nowcasts did in the periods after the first 40."""

    error: float
    cover: float
    surprised: float


def nowcast(
    truth: Truth,
    noise: float,
    season: int = 1,
    *,
    stated: float = 1.0,  # by this factor the stated noise is wrong
    memo: float = 0.0,
    told_memo: float | None = None,
    largest_drift: float = np.inf,
    series: int = SERIES,
) -> Kept:
    random = np.random.default_rng(7)
    true = truth(random, series)
    seen = true + random.normal(0, noise, true.shape) + random.normal(0, memo, series)
    filters = Nowcaster(series, season, largest_drift)
    fresh, added = (
        np.full(series, (stated * noise) ** 2),
        np.full(series, (memo if told_memo is None else told_memo) ** 2),
    )
    off, covered, surprised = [], [], []
    for period in range(PERIODS):
        filters.predict(period)
        surprise = filters.update(seen[period], fresh)
        if period >= SETTLED:
            surprised.append(surprise < nowcasting.UNEXPECTED)
        if period >= SETTLED and period % 3 == 0:
            now = filters.now(added)
            off.append(now.value - true[period])
            covered.append((now.low <= true[period]) & (true[period] <= now.high))
    return Kept(float(np.sqrt(np.mean(np.square(off)))), float(np.mean(covered)), float(np.mean(surprised)))


def test_errors_and_intervals_are_as_stated_for_a_drift_and_for_jumps() -> None:
    for name in ("0.2 points", "jumps"):
        truth, season, _, error = STATED[name]
        kept = nowcast(truth, MUCH, season, series=25)
        assert kept.error < 1.2 * error and kept.cover > 0.92, (name, kept)


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("noise", [LITTLE, MUCH])
def test_errors_and_intervals_are_as_stated_for_truths_of_every_kind(noise: float) -> None:
    for name, (truth, season, little, much) in STATED.items():
        kept = nowcast(truth, noise, season)
        assert kept.error <= 1.1 * (little if noise == LITTLE else much) and kept.cover >= 0.92, (name, kept)
    for name, truth in OTHERS.items():
        kept = nowcast(truth, noise)
        assert kept.cover >= 0.92, (name, kept)


@pytest.mark.long(part="statistics")
def test_hours_have_a_day() -> None:
    days = np.random.default_rng(1).normal(0, 0.04, (24, 40))
    kept = nowcast(lambda random, series: 0.3 + np.resize(days - days.mean(axis=0), (PERIODS, 40)), MUCH, 24, series=40)
    assert kept.error < 1.1 * 0.034 and kept.cover > 0.95, kept


def test_few_estimates_of_a_healthy_series_are_unexpected() -> None:
    assert 0.004 <= nowcast(walk(0.002), LITTLE).surprised <= 0.011


def test_intervals_fail_if_the_filters_are_told_wrong_things(monkeypatch: pytest.MonkeyPatch) -> None:
    assert nowcast(walk(0.01), LITTLE, stated=0.5, series=25).cover < 0.85
    assert nowcast(week, MUCH, series=25).cover < 0.85 < nowcast(week, MUCH, 7, series=25).cover
    memos = nowcast(walk(0.0), 0.012, memo=0.008).cover
    assert nowcast(walk(0.0), 0.012, memo=0.008, told_memo=0.0).cover < 0.7 < 0.92 < memos
    monkeypatch.setattr(nowcasting, "JUMP_PROBABILITY", 0.0)
    assert nowcast(jumps, LITTLE, largest_drift=0.001, series=25).cover < 0.6


def test_periods_without_answers_widen_the_interval_and_change_nothing_else() -> None:
    filters = Nowcaster(2)
    for period in range(20):
        filters.predict(period)
        filters.update(np.array([0.3, 0.3]), np.full(2, 0.02**2))
    before = filters.now(np.zeros(2))
    filters.predict(20)
    surprise = filters.update(np.array([np.nan, 0.3]), np.full(2, 0.02**2))
    after = filters.now(np.zeros(2))
    assert np.isnan(surprise[0]) and surprise[1] > 0.5
    assert after.value[0] == pytest.approx(before.value[0], abs=1e-6)
    assert after.error[0] > before.error[0] > after.error[1]
