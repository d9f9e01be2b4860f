"""The figures on a real series: the literature's persistence to the digit, and what noise costs."""

import csv
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from analytics.forecasting import Series, Structure, backtest
from analytics.forecasting.backtesting import LAST, OURS, Scored
from protocols.arrays import Floats
from protocols.mechanisms import SupportChannel
from protocols.mechanisms.rounds import grr

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
