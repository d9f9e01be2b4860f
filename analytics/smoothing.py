"""Period-to-period smoothing that knows the noise it faces (PROTOCOLS 3). Optional, and published beside the raw.

What a period's estimate of a value shows is a sum of three things:

    estimate_t = truth_t + memo_t + fresh_t

    truth    moves from period to period by steps of unknown size `drift`
    memo     noise of the first round. It is the same for whoever comes back with the same memo, so it moves only as
             far as people are replaced; no averaging removes it, and no smoothing may pretend to
    fresh    noise of the second round, new in every report

A Kalman filter and the smoother that runs back over it (Rauch, Tung, Striebel) separate them, value by value. The drift
is not chosen: every drift on a grid is tried, and the answers are weighted by how well each predicts the data. So calm
data is averaged down to the memo's floor, and restless data is left nearly as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analytics.consistent import norm_sub
from analytics.estimation import CONFIDENCE, Estimates, estimate, quantile, variance
from analytics.votes import Floats
from protocols.channels import Channel

DRIFTS = np.concatenate([[0.0], np.logspace(-5, 3, 33)])  # step variances, in units of one estimate's variance


def smooth(
    counts: ArrayLike,
    n: ArrayLike,
    channel: Channel,
    memo_channel: Channel | None,
    kept: ArrayLike = 1.0,
    *,
    population: ArrayLike | None = None,
    confidence: float = CONFIDENCE,
) -> Estimates:
    """Smoothed frequencies `[period, value]` from `counts[period, value]` and `n[period]`.

    `memo_channel` is what memos alone say (Question.memo_channel); None for one-shot surveys, whose noise is all fresh.
    `kept` is the share of each period's reporters who also reported in the one before: n[gap 1] / n. Periods without
    reports are bridged.

    >>> from protocols.rounds import Flip, oue
    >>> from protocols.channels import SupportChannel
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
    noise = _Noise(memo, np.maximum(total - memo, 1e-3 * total), np.broadcast_to(kept, n.shape))
    value, error = _weighted(seen, known, noise, DRIFTS[:, None] * np.median(total, axis=0))
    reach = quantile(confidence) * error
    return Estimates(value, error, value - reach, value + reach)


@dataclass(frozen=True, eq=False)
class _Noise:
    memo: Floats  # variance of the memos' part [period, value]
    fresh: Floats  # variance of the second round's part [period, value]
    kept: Floats  # share of a period's reporters who were there in the one before [period]


def _weighted(seen: Floats, known: NDArray[np.bool_], noise: _Noise, steps: Floats) -> tuple[Floats, Floats]:
    """The smoothed truth and its error, over all drifts by how well each predicts."""
    state, spread, fit = _forward(seen, known, noise, steps)
    value, spread_of = _backward(state, spread, noise, steps)
    weight = np.exp(fit - fit.max(axis=0))
    weight /= weight.sum(axis=0)  # [drift, value]
    mean = (weight * value).sum(axis=1)
    return mean, np.sqrt((weight * (spread_of + (value - mean[:, None]) ** 2)).sum(axis=1))


def _forward(seen: Floats, known: NDArray[np.bool_], noise: _Noise, steps: Floats) -> tuple[Floats, Floats, Floats]:
    """Kalman filter over the state (truth, memo): means [period, drift, value, 2], covariances, and the fit."""
    periods, k = seen.shape
    means, spreads = np.empty((periods, len(steps), k, 2)), np.empty((periods, len(steps), k, 2, 2))
    fit = np.zeros((len(steps), k))
    mean = np.zeros((len(steps), k, 2))
    mean[..., 0] = seen[known].mean(axis=0)
    spread = np.zeros((len(steps), k, 2, 2))
    spread[..., 0, 0], spread[..., 1, 1] = 1.0, noise.memo[0]
    for t in range(periods):
        if t:
            move, jitter = _move(noise, steps, t)
            mean, spread = mean * move, spread * move[..., :, None] * move[..., None, :] + jitter
        if known[t]:
            shared = spread.sum(axis=-1)  # covariance of the state with truth + memo
            expected = shared.sum(axis=-1) + noise.fresh[t]
            surprise = seen[t] - mean.sum(axis=-1)
            pull = shared / expected[..., None]
            mean = mean + pull * surprise[..., None]
            spread = spread - pull[..., :, None] * shared[..., None, :]
            fit -= (np.log(expected) + surprise**2 / expected) / 2
        means[t], spreads[t] = mean, spread
    return means, spreads, fit


def _backward(means: Floats, spreads: Floats, noise: _Noise, steps: Floats) -> tuple[Floats, Floats]:
    """Smoother: the truth's mean and variance [period, drift, value], given all periods."""
    mean, spread = means[-1], spreads[-1]
    values, variances = [mean[..., 0]], [spread[..., 0, 0]]
    for t in range(len(means) - 1, 0, -1):
        move, jitter = _move(noise, steps, t)
        earlier = spreads[t - 1]
        ahead = earlier * move[..., :, None] * move[..., None, :] + jitter
        back = (earlier * move[..., None, :]) @ np.linalg.pinv(ahead, hermitian=True)
        mean = means[t - 1] + np.einsum("...ij,...j->...i", back, mean - means[t - 1] * move)
        spread = earlier + back @ (spread - ahead) @ np.swapaxes(back, -1, -2)
        values.append(mean[..., 0])
        variances.append(spread[..., 0, 0])
    return np.array(values[::-1]), np.maximum(np.array(variances[::-1]), 0)


def _move(noise: _Noise, steps: Floats, t: int) -> tuple[Floats, Floats]:
    """How the state of period t follows from that of t - 1: its factors, and the variance that is added."""
    before, now, kept = noise.memo[t - 1], noise.memo[t], noise.kept[t]
    move = np.ones((*steps.shape, 2))
    ratio = np.divide(now, before, out=np.zeros_like(now), where=before > 0)
    move[..., 1] = kept * np.sqrt(ratio)
    jitter = np.zeros((*steps.shape, 2, 2))
    jitter[..., 0, 0] = steps
    jitter[..., 1, 1] = (1 - kept**2) * now
    return move, jitter
