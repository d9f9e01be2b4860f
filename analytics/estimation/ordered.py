"""The histogram of an ordered attribute: expectation-maximisation that stops early (docs/PROTOCOLS.md, section 6).

Neighbouring values of an ordered mechanism are hard to tell apart, so the likeliest histogram is spiky. A few steps of
the iterative Bayesian update (IBU) from the even histogram are far closer to the truth than its limit. How many steps
are right is decided without looking at the truth, by binomial thinning: a tenth of the reports is held out at random,
the others are fitted, and the fit stops when the held-out reports become less likely. Thinned multinomial counts are
independent of the rest given the truth, so the held-out likelihood is an honest judge. This is repeated with other
tenths, and the median number of steps is taken with all reports.

Intervals come from a parametric bootstrap: counts drawn from the fitted channel, each fitted with the same steps. All
draws are seeded by the counts, so the same counts give the same histogram to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.votes import Floats
from protocols.mechanisms import MatrixChannel

HELD_OUT = 0.1
SPLITS = 9
MOST_STEPS = 4000
MOST_WORK = 4_000_000_000  # multiplications, which bounds the steps of wide attributes
PATIENCE = 5  # steps without a better held-out likelihood after which a split is decided
RESAMPLES = 200
ROUGHER = 20
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class OrderedHistogram:
    """A histogram that is non-negative and sums to 1, with a bootstrap interval for each value."""

    share: Floats
    low: Floats
    high: Floats
    steps: int


def ordered_histogram(
    counts: NDArray[np.int64], channel: MatrixChannel, confidence: float = 0.95, resamples: int = RESAMPLES
) -> OrderedHistogram:
    """The early-stopped histogram for `counts[value]` reports that name each value.

    >>> from protocols.mechanisms.rounds import geometric
    >>> channel = MatrixChannel(geometric(20, 0.5).matrix)
    >>> truth = np.exp(-((np.arange(20) - 8) ** 2) / 18)
    >>> counts = np.random.default_rng(0).multinomial(5000, truth / truth.sum() @ channel.matrix)
    >>> fitted = ordered_histogram(counts, channel)
    >>> bool(((fitted.share - truth / truth.sum()) ** 2).mean() < 2e-5), float(fitted.share.sum().round(9))
    (True, 1.0)
    """
    total = int(counts.sum())
    if total == 0:
        even = np.full(channel.k, 1 / channel.k)
        return OrderedHistogram(even, np.zeros(channel.k), np.ones(channel.k), 0)
    rng = np.random.default_rng(int.from_bytes(sha256(counts.astype("<i8").tobytes()).digest()[:8], "little"))
    steps = _steps(counts, channel.matrix, rng)
    share = updated(counts[None] / total, channel.matrix, steps)[0]
    # Drawn from a rougher histogram than the fitted one, so that the errors show what stopping early smooths away.
    rough = updated(counts[None] / total, channel.matrix, ROUGHER * steps)[0]
    drawn = rng.multinomial(total, _normalised(rough @ channel.matrix), size=resamples)
    errors = updated(drawn / total, channel.matrix, steps) - rough
    tail = (1 - confidence) / 2
    low, high = np.quantile(errors, [tail, 1 - tail], axis=0)
    return OrderedHistogram(share, np.minimum(share - high, share).clip(0, 1), np.maximum(share - low, share).clip(0, 1), steps)


def updated(shares: Floats, matrix: Floats, steps: int) -> Floats:
    """So many steps of IBU from the even histogram, for rows of observed shares."""
    fitted = np.full(shares.shape, 1 / shares.shape[1])
    for _ in range(steps):
        fitted = _step(fitted, shares, matrix)
    return fitted


def _step(fitted: Floats, shares: Floats, matrix: Floats) -> Floats:
    return np.asarray(fitted * ((shares / np.maximum(fitted @ matrix, TINY)) @ matrix.T))


def _steps(counts: NDArray[np.int64], matrix: Floats, rng: np.random.Generator) -> int:
    """The median, over random tenths, of how many steps make the held-out reports likeliest."""
    held = rng.binomial(counts, HELD_OUT, size=(SPLITS, len(counts)))
    kept = counts - held
    shares = kept / np.maximum(kept.sum(axis=1, keepdims=True), 1)
    fitted = np.full(shares.shape, 1 / len(counts))
    best, at, waited = np.full(SPLITS, -np.inf), np.zeros(SPLITS, dtype=np.int64), np.zeros(SPLITS, dtype=np.int64)
    most = max(50, min(MOST_STEPS, MOST_WORK // (2 * SPLITS * len(counts) ** 2)))
    for step in range(1, most + 1):
        fitted = _step(fitted, shares, matrix)
        likelihood = (held * np.log(np.maximum(fitted @ matrix, TINY))).sum(axis=1)
        better = likelihood > best
        open_ = waited < PATIENCE
        at = np.where(better & open_, step, at)
        waited = np.where(better, np.where(open_, 0, waited), waited + 1)
        best = np.maximum(best, likelihood)
        if (waited >= PATIENCE).all():
            break
    return max(1, int(np.median(at)))


def _normalised(shares: Floats) -> Floats:
    return np.asarray(shares / shares.sum())
