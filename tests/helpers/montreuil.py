"""People present in six regions around Montreuil, every half hour: a real series, and LDP estimates of it."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from analytics.forecasting import Series
from protocols.arrays import Floats
from protocols.mechanisms import SupportChannel
from protocols.mechanisms.rounds import grr

PATH = Path(__file__).parents[2] / "examples/series/montreuil.csv"
SEASONS, WEEK = (48, 336), 336  # half hours of a day and of a week; the last week is the test week of the literature


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
