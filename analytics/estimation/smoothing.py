"""Period-to-period smoothing that knows the noise it faces (PROTOCOLS 3). Optional, and published beside the raw.

What a period's estimate of a value shows is a sum of three things:

    estimate_t = truth_t + memo_t + fresh_t

    truth    moves from period to period by steps of unknown size `drift`
    memo     noise of the first round. Whoever comes back brings the same memo, tomorrow or after a month away; how many
             do is not known, so no averaging may be taken to remove any of it
    fresh    noise of the second round, new in every report

So truth and memo together are one level that drifts, seen through fresh noise. A Kalman filter and the smoother that
runs back over it (Rauch, Tung, Striebel) find the level, value by value, and the memo's whole variance is added to what
is left. The drift is not chosen: every drift on a grid is tried, and the answers are weighted by how well each predicts
the data. So calm data is averaged down to the memo's floor, and restless data is left nearly as it is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analytics.estimation.consistent import norm_sub
from analytics.estimation.estimates import CONFIDENCE, Estimates, estimate, quantile, variance
from analytics.estimation.votes import Floats
from protocols.mechanisms import Channel

DRIFTS = np.concatenate([[0.0], np.logspace(-5, 3, 33)])  # step variances, in units of one estimate's variance


def smooth(
    counts: ArrayLike,
    n: ArrayLike,
    channel: Channel,
    memo_channel: Channel | None,
    *,
    population: ArrayLike | None = None,
    confidence: float = CONFIDENCE,
) -> Estimates:
    """Smoothed frequencies `[period, value]` from `counts[period, value]` and `n[period]`.

    `memo_channel` is what memos alone say (Question.memo_channel); None for one-shot surveys, whose noise is all fresh.
    Periods without reports are bridged.

    >>> from protocols.mechanisms import Flip
    >>> from protocols.mechanisms.rounds import oue
    >>> from protocols.mechanisms import SupportChannel
    >>> memo, second = oue(2.0), Flip(0.75, 0.25)
    >>> one = SupportChannel(2, memo.then(second), exclusive=False)
    >>> calm = smooth(np.full((30, 2), [2650, 2200]), np.full(30, 6000), one, SupportChannel(2, memo, exclusive=False))
    >>> raw = estimate([2650, 2200], 6000, one)
    >>> (raw.error / calm.error[15]).round(1).tolist()
    [1.9, 2.1]
    """
    counts, n = np.asarray(counts, dtype=np.float64), np.asarray(n, dtype=np.float64)
    known = n > 0
    if not known.any():
        return estimate(counts, n, channel)
    seen = estimate(counts, n, channel).value
    pooled = norm_sub(seen[known].mean(axis=0))
    usual = np.where(known, n, np.median(n[known]))  # a bridged period's memos count as many as usual
    at = np.broadcast_to(pooled, counts.shape)
    total = variance(at, usual, channel, population)
    memo = variance(at, usual, memo_channel, population) if memo_channel is not None else np.zeros_like(total)
    fresh = np.maximum(total - memo, 1e-3 * total)
    value, spread = _weighted(seen, known, fresh, DRIFTS[:, None] * np.median(total, axis=0))
    error = np.sqrt(spread + memo)
    reach = quantile(confidence) * error
    return Estimates(value, error, value - reach, value + reach)


def _weighted(seen: Floats, known: NDArray[np.bool_], fresh: Floats, steps: Floats) -> tuple[Floats, Floats]:
    """The smoothed level and its variance [period, value], over all drifts by how well each predicts."""
    means, spreads, fit = _forward(seen, known, fresh, steps)
    level, spread = _backward(means, spreads, steps)
    weight = np.exp(fit - fit.max(axis=0))
    weight /= weight.sum(axis=0)  # [drift, value]
    mean = (weight * level).sum(axis=1)
    return mean, (weight * (spread + (level - mean[:, None]) ** 2)).sum(axis=1)


def _forward(seen: Floats, known: NDArray[np.bool_], fresh: Floats, steps: Floats) -> tuple[Floats, Floats, Floats]:
    """Kalman filter: the level's mean and variance [period, drift, value] given the past, and the fit of each drift."""
    means, spreads = np.empty((2, len(seen), *steps.shape))
    fit = np.zeros_like(steps)
    mean, spread = np.broadcast_to(seen[known].mean(axis=0), steps.shape), np.ones_like(steps)
    for t in range(len(seen)):
        if t:
            spread = spread + steps
        if known[t]:
            expected = spread + fresh[t]
            surprise = seen[t] - mean
            fit -= (np.log(expected) + surprise**2 / expected) / 2
            mean = mean + spread / expected * surprise
            spread = spread * fresh[t] / expected
        means[t], spreads[t] = mean, spread
    return means, spreads, fit


def _backward(means: Floats, spreads: Floats, steps: Floats) -> tuple[Floats, Floats]:
    """Smoother: the level's mean and variance [period, drift, value] given all periods, in place of given the past."""
    means, spreads = means.copy(), spreads.copy()
    for t in range(len(means) - 2, -1, -1):
        ahead = spreads[t] + steps
        back = spreads[t] / ahead
        means[t] += back * (means[t + 1] - means[t])
        spreads[t] += back**2 * (spreads[t + 1] - ahead)
    return means, spreads
