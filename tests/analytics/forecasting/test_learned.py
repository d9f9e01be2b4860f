"""What forecasts learn: courses of weekends, what is only noise, how little a short series says, the local clock."""

from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest

from analytics.forecasting import Series, Structure, backtest, forecast
from analytics.forecasting.backtesting import LAST_FOUR, LONGEST, OURS
from analytics.forecasting.fitting import Fit, fit
from protocols.arrays import Floats
from protocols.survey.calendar import HOUR, Calendar, resolve

HOURS_AND_WEEKS, WEEK = Structure.of([24, 168]), Structure.of([7])


def hours(weeks: int, weekends: bool = True) -> Floats:
    """Commuters on working days; on weekends an afternoon, if they differ."""
    random, t = np.random.default_rng(3), np.arange(168 * weeks)
    hour, free = t % 24, (t // 24 % 7 >= 5) & weekends
    working = 300 + 900 * np.exp(-(((hour - 8) / 1.8) ** 2)) + 1000 * np.exp(-(((hour - 18) / 2.2) ** 2))
    deviation = np.zeros(len(t))
    for now in range(1, len(t)):
        deviation[now] = 0.95 * deviation[now - 1] + random.normal(0, 20)
    course = np.where(free, 600 + 500 * np.exp(-(((hour - 15) / 4.5) ** 2)), working)
    return np.asarray(course + deviation + random.normal(0, 10, len(t)))


def test_weekends_have_a_course_of_their_own_and_forecasts_beat_last_week() -> None:
    scored = backtest(Series.exact("city", hours(8)), HOURS_AND_WEEKS, 168)
    rmse = {one.method: one.publication.rmse for one in scored if one.publication}
    assert rmse[OURS] <= 0.6 * rmse[LONGEST] and rmse[OURS] < rmse[LAST_FOUR]


def test_side_bands_are_only_where_weekends_differ() -> None:
    assert fit(Series.exact("city", hours(6)), HOURS_AND_WEEKS).structure.sides == 3
    assert fit(Series.exact("city", hours(6, weekends=False)), HOURS_AND_WEEKS).structure.sides == 0


def areas(noise: float, days: int = 240, tested: int = 60) -> tuple[float, float]:
    """Mean absolute errors against the truth of daily counts of 33 areas, half of which have a week, seen with noise.

    Of forecasts that may use a week, and of the best plain rule, with or without a week.
    """
    ours, rules = [], []
    random, t = np.random.default_rng([11, int(noise)]), np.arange(days)
    for area in range(33):
        week = 1 + (0.3 if area % 2 else 0.0) * np.cos(2 * np.pi * (t / 7 + random.random()))
        truth = random.poisson(np.exp(random.uniform(np.log(4), np.log(60))) * week).astype(np.float64)
        series = Series(str(area), truth + random.normal(0, noise, days), np.full(days, noise**2), np.zeros(days))
        with_week, without = (
            [one.truth.mae for one in backtest(series, structure, tested, truth=truth) if one.truth]
            for structure in (WEEK, Structure())
        )
        ours.append(with_week[0])
        rules.append([*with_week[1:], *without[1:]])
    return float(np.mean(ours)), float(np.mean(rules, axis=0).min())


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("noise", [6, 15, 25, 40])
def test_what_is_mostly_noise_is_forecast_as_well_as_by_the_best_plain_rule(noise: float) -> None:
    ours, best_rule = areas(noise)
    assert ours <= 1.03 * best_rule


LEVEL, CALM, DEVIATING, WEEKLY = "level", "calm", "deviating", "weekly"


def simulated(kind: str, days: int, noise: float, seed: int, ahead: int) -> tuple[Series, Floats]:
    """A series with an irregular part of sd 5, seen with noise; and the truth that comes."""
    random, t = np.random.default_rng([seed, days]), np.arange(days + ahead)
    truth = 100 + np.cumsum(random.normal(0, 1.0 if kind == LEVEL else 0.0, len(t))) + random.normal(0, 5, len(t))
    if kind == WEEKLY:
        truth += 15 * np.cos(2 * np.pi * t / 7)
    if kind == DEVIATING:
        steps = random.normal(0, 3, len(t))
        truth += [float((0.8 ** np.arange(now + 1)[::-1] * steps[: now + 1]).sum()) for now in t]
    seen = truth[:days] + random.normal(0, noise, days)
    return Series(kind, seen, np.full(days, noise**2), np.zeros(days)), truth[days:]


def coverage(kind: str, days: int, noise: float, cautious: bool = True) -> float:
    """How often 95 % intervals hold the truth, over 800 series and 7 days."""
    structure, inside = WEEK if kind == WEEKLY else Structure(), []
    for seed in range(800):
        series, truth = simulated(kind, days, noise, seed, 7)
        found: Fit = fit(series, structure)
        made = forecast(series, structure, 7, found if cautious else replace(found, cautious=found.likeliest))
        low, high = made.interval("truth", 0.95)
        inside.append((low <= truth) & (truth <= high))
    return float(np.mean(inside))


SETTINGS = [
    (kind, days, noise) for kind in (CALM, LEVEL, DEVIATING, WEEKLY) for days, noise in ((90, 5), (90, 10), (250, 10))
]


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize(("kind", "days", "noise"), SETTINGS)
def test_intervals_cover_the_truth_of_short_noisy_series(kind: str, days: int, noise: float) -> None:
    assert 0.93 <= coverage(kind, days, noise) <= 0.97


@pytest.mark.long(part="statistics")
def test_without_caution_they_do_not() -> None:
    assert coverage(CALM, 90, 10, cautious=False) < 0.91


def test_seasons_follow_the_clock_on_the_wall() -> None:
    start = datetime.fromisoformat("2026-03-16T00:00:00+01:00")
    calendar = Calendar(start, HOUR, resolve("Europe/Paris", start))
    periods = np.arange(24 * 17)  # clocks change after 13 days
    hour = calendar.on_the_wall(periods) % 24
    seen = Series.exact("visits", 100 + 50.0 * (hour == 8) + 30.0 * (hour == 18))
    day, errors = Structure.of([24]), []
    for series in (replace(seen, clock=calendar.on_the_wall), seen):
        known = series.before(24 * 14)
        errors.append(np.abs(forecast(known, day, 24).mean - seen.values[24 * 14 : 24 * 15]).max())
    assert errors[0] < 0.6 * errors[1]
