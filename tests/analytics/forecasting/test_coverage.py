"""Intervals keep their promise for the truth, whichever part of the noise is in memos; figures on a real series."""

import csv
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare

from analytics.forecasting import Forecast, Scored, Series, Structure, backtest, forecast
from analytics.forecasting.backtesting import LAST, OURS
from analytics.forecasting.fitting import fit
from protocols.arrays import Floats
from protocols.mechanisms import SupportChannel
from protocols.mechanisms.rounds import grr

RUNS, PERIODS, STEP, NOISE = 200, 250, 1.0, 36.0
SHARES_OF_MEMO = {"white": 0.0, "half memo": 0.5, "memo only": 1.0}


@cache
def runs(share: float) -> list[tuple[Forecast, NDArray[np.float64]]]:
    """Forecasts four steps ahead, and the truth that came; a share of the noise is in memos."""
    found = []
    memo = np.full(PERIODS, NOISE * share)
    for run in range(RUNS):
        random = np.random.default_rng([7, run])
        truth = 200 + np.cumsum(random.normal(0, STEP, PERIODS + 4))
        kept = random.normal(0, np.sqrt(NOISE * share))  # the devices' memos: the same in every period
        seen = truth[:PERIODS] + kept + random.normal(0, np.sqrt(NOISE * (1 - share)), PERIODS)
        found.append((forecast(Series("level", seen, NOISE - memo, memo), Structure(), 4), truth[PERIODS:]))
    return found


def covered(share: float, count_memo: bool) -> float:
    """How often the 95 % interval of the truth covers it."""
    inside = []
    for made, truth in runs(share):
        low, high = (made if count_memo else replace(made, memo=0 * made.memo)).interval("truth", 0.95)
        inside.append((low <= truth) & (truth <= high))
    return float(np.mean(inside))


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("kind", SHARES_OF_MEMO)
def test_the_interval_of_the_truth_covers_it(kind: str) -> None:
    # Cautious variances make intervals of series without any irregular part too wide: with white noise 0.986,
    # and 0.977 and 0.968 over 120 and 150 other walks.
    assert 0.93 <= covered(SHARES_OF_MEMO[kind], count_memo=True) <= 0.99


@pytest.mark.long(part="statistics")
def test_without_the_variance_of_memos_it_does_not() -> None:
    assert covered(1.0, count_memo=False) < 0.7


def well_specified(seed: int, periods: int) -> NDArray[np.float64]:
    """A week of days on a level that wanders around, with irregular parts."""
    random = np.random.default_rng(seed)
    deviation = np.zeros(periods)
    for t in range(1, periods):
        deviation[t] = 0.8 * deviation[t - 1] + random.normal(0, 3)
    week = 100 + 20 * np.cos(2 * np.pi * np.arange(periods) / 7) + np.cumsum(random.normal(0, 0.3, periods))
    return np.asarray(week + deviation + random.normal(0, 4, periods))


@cache
def weeks() -> list[tuple[list[Scored], float]]:
    """The scores of five series, and the mean variance of their fresh noise in the periods that are forecast."""
    found = []
    for seed in range(5):
        random = np.random.default_rng([6, seed])
        truth, fresh = well_specified(seed, 900), random.uniform(10, 40, 900)
        series = Series("week", truth + random.normal(0, np.sqrt(fresh)), fresh, np.zeros(900))
        found.append((backtest(series, Structure.of([7]), 300, truth=truth), float(fresh[600:].mean())))
    return found


def test_publications_and_truths_fall_evenly_into_their_forecast_distributions() -> None:
    for about in ("publication", "truth"):
        scores = [getattr(ours, about) for (ours, *_), _ in weeks()]
        assert all(sum(score.pit) == 300 for score in scores)
        # Of five p-values, two below 0.01 come about once in a thousand times.
        assert sum(chisquare(score.pit).pvalue < 0.01 for score in scores) <= 1
        assert 0.93 <= np.mean([score.coverage_95 for score in scores]) <= 0.97


def test_the_model_beats_the_rules_and_errors_against_publications_contain_the_noise() -> None:
    for (ours, *rules), fresh in weeks():
        assert ours.publication is not None and ours.truth is not None
        for rule in rules:
            assert rule.publication is not None and ours.publication.crps < rule.publication.crps
        assert ours.publication.rmse**2 - ours.truth.rmse**2 == pytest.approx(fresh, rel=0.35)


def test_calibration_widens_what_is_too_narrow_never_narrows_and_needs_enough_publications() -> None:
    series = Series.exact("week", well_specified(1, 500))
    fitted = fit(series.before(250), Structure.of([7]))
    assert forecast(series, Structure.of([7]), 3, fitted).stretch < 1.3
    wilder = series.values.copy()
    wilder[300:] += np.random.default_rng(1).normal(0, 40, 200)
    stretched = forecast(Series.exact("week", wilder), Structure.of([7]), 3, fitted)
    assert stretched.stretch > 3 and stretched.calibrated == 200
    series = Series.exact("week", well_specified(1, 60))
    short = forecast(series, Structure.of([7]), 3)
    assert (short.stretch, short.calibrated, short.trained) == (1.0, 0, 60)


def test_far_ahead_the_deviation_is_forgotten_and_intervals_grow_with_the_level_alone() -> None:
    far = forecast(Series.exact("week", well_specified(2, 700)), Structure.of([7]), 200)
    width = far.deviation("truth")
    assert width[6] > width[0] and width[-1] < 2.5 * width[6]


AHEAD = 48
SEASONS, WEEK = (48, 336), 336  # half hours of a day and of a week; the last week is the test week of the literature


@cache
def scored(eps: float | None) -> list[list[Scored]]:
    """For each region, the scores against the truth of all ways to forecast the test week."""
    truth = montreuil()
    regions = [Series.exact(str(i), truth[:, i]) for i in range(6)] if eps is None else reported(truth, eps)
    structure = Structure.of(SEASONS)
    return [backtest(region, structure, WEEK, (1, AHEAD), truth[:, i]) for i, region in enumerate(regions)]


def mean(eps: float | None, figure: str, method: str = OURS, step: int = 1) -> float:
    """A figure against the truth, averaged over the regions as the literature does."""
    chosen = [s for region in scored(eps) for s in region if (s.method, s.step) == (method, step)]
    return float(np.mean([getattr(s.truth, figure) for s in chosen]))


@pytest.mark.long(part="statistics")
def test_persistence_is_what_the_literature_printed() -> None:
    assert abs(mean(None, "rmse", LAST) - 1503.6) < 0.05
    assert abs(mean(None, "mae", LAST) - 1107.1) < 0.05


@pytest.mark.long(part="statistics")
def test_without_noise_forecasts_are_as_good_as_required_and_noise_costs_little() -> None:
    without = mean(None, "rmse")
    assert without <= 1260
    assert mean(2.0, "rmse") <= 1.02 * without
    assert mean(1.0, "rmse") <= 1.12 * without


@pytest.mark.long(part="statistics")
def test_a_day_ahead_intervals_are_neither_too_wide_nor_too_narrow() -> None:
    for eps in (None, 1.0):
        assert 0.92 <= mean(eps, "coverage_95", step=AHEAD) <= 0.98


PATH = Path(__file__).parents[3] / "examples/series/montreuil.csv"


def montreuil() -> Floats:
    """`[half hour, region]`, without the total."""
    with PATH.open() as file:
        return np.array([row[2:8] for row in list(csv.reader(file))[1:]], dtype=np.float64)


def reported(truth: Floats, eps: float, seed: int = 1) -> list[Series]:
    """Unbiased estimates of every region, in people, if everybody present reports their region by GRR each time."""
    n, k = truth.sum(axis=1), truth.shape[1]
    channel = SupportChannel(k, grr(k, eps), exclusive=True)
    supports = channel.support(truth / n[:, None])
    random = np.random.default_rng(seed)
    counts = np.array([random.multinomial(int(m), p / p.sum()) for m, p in zip(n, supports, strict=True)])
    floor, gain = channel.floor, channel.gain
    values = (counts - n[:, None] * floor) / gain
    pooled = channel.support((values / n[:, None]).mean(axis=0))
    fresh = n[:, None] * (pooled * (1 - pooled)) / gain**2
    return [Series(str(i), values[:, i], fresh[:, i], np.zeros(len(n))) for i in range(k)]
