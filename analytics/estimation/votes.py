"""Votes: the contribution of one report to the estimate of a value or a group of values.

The mean vote for value i over all reports is the unbiased frequency. The expected vote is 1 for reports of those who
have i and 0 for all others:

    affine channels    vote_i = (1[report supports i] - floor_i) / gain
    matrix channels    vote_i = W[report, i],   W the inverse of the channel matrix

A group's vote is the sum of its members' votes. Intervals need only the mean square of the votes, from those inside the
group and from those outside (PROTOCOLS 1). That holds for groups too: the covariance of supports is part of it.

`norm_sub` makes estimates consistent: non-negative and summing to 1 (PROTOCOLS 6). Consistent histograms are published
beside the unbiased estimates, never instead of them, and are not stored: only counts can be merged. Any leading
dimensions are allowed; the last axis is the values.

With `presence_epsilon` the number of reports n and the supports N of each value have noise of their own (PROTOCOLS 7).
A share is still the one f for which T(f) = sum_i a_i N_i + (c - f) n is 0 on average (a and c from the votes). Its
interval is all f with T(f)^2 at most z^2 times the variance of T at f (Fieller): the ends are roots of a quadratic. It
covers at any n. Where n may be 0 as far as its noise shows, every share is possible.
"""

from dataclasses import dataclass

import numpy as np

from protocols.arrays import Floats, Mask, Places
from protocols.mechanisms import Channel, MatrixRound, SupportChannel
from protocols.privacy import geometric_variance
from protocols.scheme import Scheme

TURNS = 5
"""Of both conditions on consistent shares of sets: more change no digit that is published."""
HALVINGS = 60
Voted = SupportChannel | MatrixRound
"""Channels whose estimates are means of votes: those of places (`analytics.estimation.places`) are not."""


def norm_sub(frequencies: Floats) -> Floats:
    """Subtract the same amount from every frequency, and cut at 0: the nearest distribution (default).

    >>> norm_sub(np.array([0.7, 0.5, -0.1])).round(9).tolist()
    [0.6, 0.4, 0.0]
    """
    return np.maximum(frequencies - subtracted(frequencies, 1.0), 0)


def subtracted(numbers: Floats, sums: Floats | float) -> Floats:
    """What to subtract from each row, so that with everything below 0 cut it has its sum, which is above 0."""
    descending = -np.sort(-numbers, axis=-1)
    ranks = np.arange(1, numbers.shape[-1] + 1)
    excess = (np.cumsum(descending, axis=-1) - sums) / ranks  # if the first `rank` values stay positive
    kept = np.sum(descending > excess, axis=-1, keepdims=True)
    return np.take_along_axis(excess, np.maximum(kept, 1) - 1, axis=-1)


def nearest(frequencies: Floats, channel: Channel) -> Floats:
    """The nearest frequencies that are possible: a distribution, or, of sets, shares from 0 to 1 that sum to L.

    Of sets, fewer devices have the second padding than the first, and so on. Both conditions are met in turn. Of
    thresholds, fewer numbers are above the second slot than above the first; a slot without answers stays NaN.
    """
    if not isinstance(channel, SupportChannel) or channel.several == 1:
        return norm_sub(frequencies)
    from scipy.optimize import isotonic_regression  # takes a while to import

    if channel.slots:
        above = np.array(frequencies[: channel.items])
        known = np.isfinite(above)
        if known.any():  # one NaN would make all of them NaN
            above[known] = np.clip(isotonic_regression(above[known], increasing=False).x, 0, 1)
        return np.concatenate([above, 1 - above])

    found, items = np.array(frequencies), channel.items
    for _ in range(TURNS):
        found = _capped(found, channel.several)
        found[items:] = isotonic_regression(found[items:], increasing=False).x
    return _capped(found, channel.several)


def _capped(frequencies: Floats, total: float) -> Floats:
    """The same amount less of every frequency, cut at 0 and 1, so that they sum to a total; found by halving.

    >>> _capped(np.array([1.3, 0.9, 0.2, -0.1]), 2).round(6).tolist()
    [1.0, 0.85, 0.15, 0.0]
    """
    low, high = frequencies.min() - 1, frequencies.max()
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if np.clip(frequencies - middle, 0, 1).sum() > total:
            low = middle
        else:
            high = middle
    return np.asarray(np.clip(frequencies - high, 0, 1))


def unbiased(shares: Floats, channel: Voted) -> Floats:
    """The mean vote for every value, from the shares of reports that support each.

    >>> from protocols.mechanisms.rounds import grr
    >>> channel = SupportChannel(3, grr(3, 1.0), exclusive=True)
    >>> truth = np.array([0.2, 0.3, 0.5])
    >>> unbiased(channel.support(truth), channel).round(12).tolist()
    [0.2, 0.3, 0.5]
    """
    if isinstance(channel, SupportChannel):
        return np.asarray((shares - channel.floor) / channel.gain)
    flat = np.linalg.solve(channel.matrix.T, shares.reshape(-1, channel.k).T).T
    return np.asarray(flat.reshape(shares.shape))


def mean_squares(channel: Voted, groups: Mask | None, spread: Floats) -> tuple[Floats, Floats]:
    """Mean square of the vote for each group: from reports of those inside it, and of those outside.

    `groups[group, value]` is membership; None: every value is its own group. `spread[..., value]` is a rough
    distribution over the values. Only matrix channels use it: there the mean square depends a little on it.
    """
    if isinstance(channel, MatrixRound):
        members = np.eye(channel.k, dtype=np.bool_) if groups is None else groups
        votes = np.linalg.solve(channel.matrix, members.T.astype(np.float64))  # [report, group]
        given = (channel.matrix @ votes**2).T  # [group, truth]
        return _average(given, members, spread), _average(given, ~members, spread)
    if groups is None:
        floor, g = channel.floor, channel.gain
        outside = floor * (1 - channel.parts * floor) / g**2
        return outside + (1 - 2 * channel.parts * floor) / g, outside
    squares = [(_group_square(channel, group, group), _group_square(channel, group, ~group)) for group in groups]
    inside, outside = np.array(squares).reshape(-1, 2).T
    return inside, outside


def _group_square(channel: SupportChannel, group: Mask, holders: Mask) -> float:
    """The mean square of the group's vote if everybody has one of the holders' values, all equally likely."""
    truth = holders / max(holders.sum(), 1)
    both = channel.pairs(truth, group)
    floor, once = channel.floor[group].sum(), channel.support(truth)[group].sum()
    return float((both - 2 * floor * once + floor**2) / channel.gain**2)


def covariance(channel: Voted, frequencies: Floats, drawn: float = 0.0, places: Places | None = None) -> Floats:
    """The covariance of one report's votes if these are the frequencies; divide by n for that of estimates.

    `drawn` is the share of a finite population that reported: 1 leaves only the noise. `places`: of these values only.

    >>> from protocols.mechanisms.rounds import grr
    >>> even = np.full(2, 0.5)
    >>> covariance(SupportChannel(2, grr(2, 1.0), exclusive=True), even).round(3).tolist()
    [[1.171, -1.171], [-1.171, 1.171]]
    """
    some = np.arange(channel.k) if places is None else places
    supports, true = channel.support(frequencies), frequencies[some]
    if isinstance(channel, SupportChannel):
        votes = (channel.joint(frequencies, some) - np.outer(supports[some], supports[some])) / channel.gain**2
    else:
        half = np.linalg.solve(channel.matrix.T, channel.joint(frequencies) - np.outer(supports, supports))
        votes = np.linalg.solve(channel.matrix.T, half.T)[np.ix_(some, some)]
    return np.asarray(votes - drawn * (np.diag(true) - np.outer(true, true)))


def _average(given: Floats, where: Mask, spread: Floats) -> Floats:
    """The mean over the values of each group, weighted by `spread` (unweighted if it is 0 for all of them)."""
    thin = 1e-9
    weight = spread @ where.T + thin * where.sum(axis=1)
    total = spread @ (where * given).T + thin * (where * given).sum(axis=1)
    return np.asarray(np.divide(total, weight, out=np.zeros_like(total), where=weight > 0))


@dataclass(frozen=True)
class CellNoise:
    """The variances of the noise on each N[value], and on n: the number of answers, which `cells` noises add up to."""

    supports: float
    reports: float
    cells: int = 1

    @classmethod
    def of(cls, scheme: Scheme, name: str, window: str = "period") -> "CellNoise | None":
        """The noise on one attribute's table of a period, or of a calendar unit; None where tables are exact."""
        noise = scheme.presence
        if noise is None or window not in noise.released.tables:
            return None
        answers = noise.answers_scale(window)
        of_answers = 0.0 if answers is None else geometric_variance(answers)
        return cls(geometric_variance(noise.supports_scale(name, window)), of_answers)


def noise_covariance(shares: Floats, n: int, channel: Voted, noise: CellNoise, places: Places | None) -> Floats:
    """What the noise adds to the covariance of the shares, of all values or of some."""
    some = np.arange(channel.k) if places is None else places
    possible = np.clip(shares, 0, 1)
    if isinstance(channel, MatrixRound):
        products, level = channel.votes[:, some].T @ channel.votes[:, some], possible[some]
    else:
        products, level = np.eye(len(some)) / channel.gain**2, channel.support(possible)[some] / channel.gain
    return np.asarray((noise.supports * products + noise.reports * np.outer(level, level)) / n**2)


def vote_sums(channel: Voted, groups: Mask | None) -> tuple[Floats, Floats, Floats]:
    """Of each value or group: the sums of the squares and of the fourth powers of its votes, and their constant."""
    if isinstance(channel, MatrixRound):
        votes = channel.votes if groups is None else channel.votes @ groups.T
        return (votes**2).sum(axis=0), (votes**4).sum(axis=0), np.zeros(votes.shape[1])
    members = np.ones(channel.k) if groups is None else groups.sum(axis=1)
    floors = channel.floor if groups is None else groups @ channel.floor
    return members / channel.gain**2, members / channel.gain**4, -floors / channel.gain


def wider_quantile(z: float, excess: Floats) -> Floats:
    """Half the width of an interval in standard errors, for noise with this excess kurtosis (Cornish and Fisher).

    Geometric noise has heavier tails than the normal distribution: an excess of 3 for one draw, less for sums.
    """
    return np.asarray(z + (z**3 - 3 * z) / 24 * excess)
