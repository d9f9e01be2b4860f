"""Estimates of a period with the help of earlier periods, by a filter that knows the noise (PROTOCOLS 3).

The unbiased estimate of a value in period t is a sum of three things:

    estimate_t = truth_t + memo_t + fresh_t

    truth    moves from period to period by steps of unknown size
    memo     noise of the first round, and who of the population happened to report. A device that comes back brings the
             same memo. How many come back is unknown, so this part never counts as averaged away
    fresh    noise of the second round, new in every report

Truth and memo together are one level that drifts, seen through fresh noise of known variance. A Kalman filter follows
the level of each value; the whole variance of the memo part is then added to the filter's own.

The size of the steps is not chosen: the filter runs with every variance of a grid (`DRIFTS`), and the results are
weighted by how well each one predicts the data. The newest step may also be a jump (`JUMP`): without that, a filter is
too sure of itself whenever something changes abruptly. So most of the fresh noise is averaged away in calm data, and
restless data is left nearly as it is.

Only this period and earlier ones are used, never later ones: a published estimate does not change.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.estimates import CONFIDENCE, Estimates, drawn_share, estimate, quantile, vote_variance
from analytics.estimation.noised import CellNoise, noise_variance
from analytics.estimation.votes import norm_sub, unbiased
from protocols.arrays import Floats
from protocols.mechanisms import Channel

DRIFTS = np.concatenate([[0.0], np.logspace(-4, 3, 15)])  # variances of a step, in units of one estimate's variance
JUMP, JUMP_PROBABILITY = 4.0, 0.3  # variance of a jump in the same units, and how often the newest step is one


def smooth(
    counts: ArrayLike,
    n: ArrayLike,
    channel: Channel,
    memo_channel: Channel | None,
    population: float | None = None,
    noise: CellNoise | None = None,
) -> Estimates:
    """Frequencies `[value]` of the last period, from `counts[period, value]` and `n[period]`.

    Earlier periods without reports are bridged; without reports in the last one nothing is known.

    `memo_channel` is that of the memos alone (Question.memo_channel); None for one-shot surveys, whose noise is all
    fresh. `population` is as for `estimate`, in the last period: the error is never larger than that of the unbiased
    estimate. `noise` on counts and n is drawn anew in every period, like fresh noise.

    >>> from protocols.mechanisms import Flip
    >>> from protocols.mechanisms.rounds import oue
    >>> from protocols.mechanisms import SupportChannel
    >>> memo, second = oue(2.0), Flip(0.75, 0.25)
    >>> one = SupportChannel(2, memo.then(second), exclusive=False)
    >>> calm = smooth(np.full((30, 2), [2650, 2200]), np.full(30, 6000), one, SupportChannel(2, memo, exclusive=False))
    >>> raw = estimate([2650, 2200], 6000, one)
    >>> (raw.error / calm.error).round(1).tolist()
    [1.6, 1.7]
    """
    counts, n = np.asarray(counts, dtype=np.float64), np.asarray(n, dtype=np.float64)
    if n[-1] == 0:
        return estimate(counts[-1], n[-1], channel)
    known = np.flatnonzero(n > 0)
    reports = n[known, None]
    seen = unbiased(counts[known] / reports, channel)
    pooled = norm_sub(seen.mean(axis=0))
    between = pooled * (1 - pooled)
    total = vote_variance(pooled, channel)  # of one report, as all variances up to here
    memo = vote_variance(pooled, memo_channel) if memo_channel is not None else between
    fresh = np.maximum(total - memo, 1e-3 * total)
    typical = np.median(reports, axis=0)
    step = total / typical
    fresh_variance = fresh / reports
    if noise is not None:
        fresh_variance = fresh_variance + noise_variance(pooled, n[known], channel, noise)
        step = np.median(fresh_variance, axis=0) + memo / typical
    level, spread = _filtered(seen, fresh_variance, step, np.diff(known))
    drawn = drawn_share(reports[-1], population)
    unbiased_variance = (total - drawn * between) / reports[-1]
    if noise is not None:
        unbiased_variance = unbiased_variance + noise_variance(pooled, n[-1], channel, noise)
    error = np.sqrt(np.minimum(spread + memo / reports[-1], unbiased_variance))
    half_width = quantile(CONFIDENCE) * error
    return Estimates(level, error, level - half_width, level + half_width)


class _State(NamedTuple):
    """The level's mean and variance under each drift, and the logarithm of how well the drift has predicted so far.

    All three have the shape [drift, value].
    """

    mean: Floats
    variance: Floats
    fit: Floats

    def moved(self, steps: Floats) -> _State:
        return self._replace(variance=self.variance + steps)

    def updated(self, seen: Floats, noise: Floats) -> _State:
        """After an estimate with this noise was seen."""
        expected, surprise = self.variance + noise, seen - self.mean
        gain = self.variance / expected
        fit = self.fit - (np.log(expected) + surprise**2 / expected) / 2
        return _State(self.mean + gain * surprise, gain * noise, fit)


def _filtered(seen: Floats, noise: Floats, step: Floats, distances: np.ndarray) -> tuple[Floats, Floats]:
    """The level in the last period and its variance, from estimates and their noise, `[period, value]`.

    `step` is the unit of drifts and jumps, `distances` how many periods lie between successive estimates.
    """
    steps = np.multiply.outer(DRIFTS, step)
    state = _State(np.broadcast_to(seen.mean(axis=0), steps.shape), np.ones_like(steps), np.zeros_like(steps))
    state = state.updated(seen[0], noise[0])
    for t, distance in enumerate(distances[:-1], start=1):
        state = state.moved(distance * steps).updated(seen[t], noise[t])
    if len(distances):
        moved = state.moved(distances[-1] * steps)
        calm, jump = moved.updated(seen[-1], noise[-1]), moved.moved(JUMP * step).updated(seen[-1], noise[-1])
        calm = calm._replace(fit=calm.fit + np.log(1 - JUMP_PROBABILITY))
        jump = jump._replace(fit=jump.fit + np.log(JUMP_PROBABILITY))
        state = _State(*map(np.concatenate, zip(calm, jump, strict=True)))
    weight = np.exp(state.fit - state.fit.max(axis=0))
    weight /= weight.sum(axis=0)
    level = (weight * state.mean).sum(axis=0)
    return level, (weight * (state.variance + (state.mean - level) ** 2)).sum(axis=0)
