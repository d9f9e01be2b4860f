"""Nowcasts: errors and intervals for truths of many kinds, and what goes wrong if filters are told wrong things."""

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
    """Every 50 periods on average."""
    size = random.uniform(0.05, 0.2, (PERIODS, series)) * random.choice([-1, 1], (PERIODS, series))
    return 0.3 + np.cumsum(np.where(random.random((PERIODS, series)) < 1 / 50, size, 0), axis=0)


def season_of(periods: int) -> Truth:
    return lambda random, series: 0.3 + np.resize(random.normal(0, 0.04, (periods, series)), (PERIODS, series))


STATED: dict[str, tuple[Truth, int, float, float]] = {  # the season, and errors of nowcasts at little and at much noise
    "constant": (walk(0), 1, 0.0031, 0.0170),
    "0.05 points": (walk(0.0005), 1, 0.0035, 0.0174),
    "0.2 points": (walk(0.002), 1, 0.0056, 0.0188),
    "1 point": (walk(0.01), 1, 0.0103, 0.0286),
    "jumps": (jumps, 1, 0.0064, 0.0316),
    "week": (season_of(7), 7, 0.0056, 0.0263),
}
OTHERS: dict[str, Truth] = {  # nothing was chosen by these
    "ramp": lambda random, series: 0.2 + 0.002 * TIME + np.zeros(series),
    "growth": lambda random, series: 0.1 + 0.4 / (1 + np.exp((75 - TIME) / random.uniform(5, 20, series))),
    "autoregressive": lambda random, series: (
        0.3 + np.tril(0.9 ** np.maximum(TIME - TIME.T, 0)) @ random.normal(0, 0.01, (PERIODS, series))
    ),
    "outliers": lambda random, series: 0.3 + np.where(random.random((PERIODS, series)) < 0.02, 0.1, 0.0),
    "late": lambda random, series: 0.3 + np.cumsum((TIME >= 75) * random.normal(0, 0.01, (PERIODS, series)), axis=0),
}


class Kept(NamedTuple):
    error: float
    cover: float
    surprised: float


def nowcast(
    truth: Truth,
    noise: float,
    season: int = 1,
    *,
    stated: float = 1.0,  # by this factor the stated noise is wrong
    memos: tuple[float, float] = (0.0, 0.0),  # the noise that stays, and what of it is stated
    largest_drift: float = np.inf,
    series: int = SERIES,
) -> Kept:
    """How nowcasts do in the periods after the first 40."""
    random = np.random.default_rng(7)
    true = truth(random, series)
    seen = true + random.normal(0, noise, true.shape) + random.normal(0, memos[0], series)
    filters = Nowcaster(series, season, largest_drift)
    fresh, memo = np.full(series, (stated * noise) ** 2), np.full(series, memos[1] ** 2)
    off, covered, surprised = [], [], []
    for period in range(PERIODS):
        filters.predict(period)
        surprise = filters.update(seen[period], fresh)
        if period >= SETTLED:
            now = filters.now(memo)
            surprised.append(surprise < nowcasting.UNEXPECTED)
            off.append(now.value - true[period])
            covered.append((now.low <= true[period]) & (true[period] <= now.high))
    return Kept(float(np.sqrt(np.mean(np.square(off)))), float(np.mean(covered)), float(np.mean(surprised)))


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("noise", [LITTLE, MUCH])
def test_errors_and_intervals_are_as_stated_for_truths_of_every_kind(noise: float) -> None:
    for name, (truth, season, little, much) in STATED.items():
        kept = nowcast(truth, noise, season)
        assert kept.error <= 1.1 * (little if noise == LITTLE else much) and kept.cover >= 0.92, (name, kept)
    for name, truth in OTHERS.items():
        assert nowcast(truth, noise).cover >= 0.92, name


@pytest.mark.long(part="statistics")
def test_hours_have_a_day_and_their_smaller_bank_follows_drifts() -> None:
    """Errors are those of least squares with 24 unknowns, which no filter can beat before it knows the day."""
    kept, squares = nowcast(season_of(24), MUCH, 24, series=40), 24 / np.arange(SETTLED + 1, PERIODS + 1)
    assert kept.error < 1.1 * MUCH * np.sqrt(squares.mean()) and kept.cover > 0.95, kept
    assert nowcast(walk(0.01), LITTLE, 24, series=40).cover > 0.92


def test_few_estimates_of_a_healthy_series_are_unexpected() -> None:
    assert 0.004 <= nowcast(walk(0.002), LITTLE, series=40).surprised <= 0.011


def test_intervals_fail_if_the_filters_are_told_wrong_things(monkeypatch: pytest.MonkeyPatch) -> None:
    assert nowcast(walk(0.01), LITTLE, stated=0.5, series=25).cover < 0.85
    assert nowcast(season_of(7), MUCH, series=25).cover < 0.85 < nowcast(season_of(7), MUCH, 7, series=25).cover
    assert nowcast(walk(0.0), 0.012, memos=(0.008, 0.0), series=25).cover < 0.7
    assert nowcast(walk(0.0), 0.012, memos=(0.008, 0.008), series=25).cover > 0.92
    monkeypatch.setattr(nowcasting, "JUMP_PROBABILITY", 0.0)
    assert nowcast(jumps, LITTLE, largest_drift=0.001, series=25).cover < 0.6
