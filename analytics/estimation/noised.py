"""Estimates from cells with noise of their own: surveys with `presence_epsilon` (PROTOCOLS 7).

The number of reports n and the supports N of each value are released with noise. A share is still the one f for which

    T(f) = sum_i a_i N_i + (c - f) n

is 0 on average (a and c from the votes: an estimate is a . N / n + c), and the variance of T at f has three parts:

    n V(f)  +  var(N) |a|^2  +  (f - c)^2 var(n)        the answers' own noise, and the noise on N and on n

The interval is all f with T(f)^2 at most z^2 times that (Fieller's method), the ends of which are roots of a quadratic.
It covers at any n. Where n may be 0 as far as its noise shows, every share is possible.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.estimates import CONFIDENCE, Estimates, drawn_share, largest, quantile
from analytics.estimation.votes import mean_squares, norm_sub, unbiased, with_votes
from protocols.arrays import Floats, Mask, Places
from protocols.mechanisms import Channel, MatrixChannel, SupportChannel
from protocols.privacy import geometric_variance
from protocols.scheme import Scheme


@dataclass(frozen=True)
class CellNoise:
    """The variances of the noise on each N[value], and on n, which is a sum of `cells`."""

    supports: float
    reports: float
    cells: int

    @classmethod
    def of(cls, scheme: Scheme, name: str) -> "CellNoise | None":
        """The noise on one attribute's counts of a period; None where they are exact."""
        noise, cells = scheme.presence, len(scheme.survey.visits.cells)
        if noise is None:
            return None
        supports = geometric_variance(noise.supports_scale(name))
        return cls(supports, cells * geometric_variance(noise.reports_scale), cells)


def estimate_noised(
    counts: ArrayLike,
    n: int,
    channel: Channel,
    noise: CellNoise,
    *,
    population: float,
    groups: Mask | None = None,
    confidence: float = CONFIDENCE,
) -> Estimates:
    """Frequencies from noised counts, `counts[value]` out of `n`; `population` and `groups` as for `estimate`.

    >>> from protocols.mechanisms import SupportChannel
    >>> from protocols.mechanisms.rounds import grr
    >>> channel, noise = SupportChannel(2, grr(2, 1.0), exclusive=True), CellNoise(200.0, 1800.0, 1)
    >>> shares = estimate_noised([7012, 2985], 10_040, channel, noise, population=10_040)
    >>> shares.value.round(3).tolist(), shares.error.round(4).tolist()
    ([0.929, 0.061], [0.0119, 0.0104])
    >>> estimate_noised([7, 2], 10, channel, noise, population=10).high.tolist()
    [1.0, 1.0]
    """
    if isinstance(channel, SupportChannel):  # how many answers are about each slot has noise, too
        channel = replace(channel, slots=0)
    reports = float(max(n, 1))
    frequencies = unbiased(np.asarray(counts, dtype=np.float64) / reports, channel)
    spread = norm_sub(frequencies) if isinstance(channel, MatrixChannel) else frequencies
    inside, outside = mean_squares(channel, groups, spread)
    value = frequencies if groups is None else frequencies @ groups.T
    squares, fourths, constant = _votes(channel, groups)
    if n <= 0:
        return Estimates(np.full_like(value, np.nan), np.full_like(value, np.inf), 0 * value, 0 * value + 1)
    most = largest(channel, groups)
    drawn = float(drawn_share(reports, population)) if most == 1 else 0.0
    squared, slope = 1 - drawn, inside - outside - drawn
    of_supports, of_reports = noise.supports * squares / n**2, noise.reports / n**2
    possible = np.clip(value, 0, most)
    from_reports = (possible - constant) ** 2 * of_reports
    own = np.maximum(outside + slope * possible - squared * possible**2, 0) / n
    variance = own + of_supports + from_reports
    fourth = noise.supports**2 * fourths / n**4 + from_reports**2 / noise.cells
    z2 = _quantile(confidence, 3 * fourth / variance**2) ** 2
    a = 1 + z2 * (squared / n - of_reports)
    half = value + z2 * (slope / n / 2 - constant * of_reports)
    c = value**2 - z2 * (outside / n + of_supports + constant**2 * of_reports)
    known = (a > 0) & (half**2 >= a * c)
    width = np.sqrt(np.where(known, half**2 - a * c, 0))
    low, high = ((half + side * width) / np.where(known, a, 1) for side in (-1, 1))
    return Estimates(
        value,
        np.sqrt(variance),
        np.where(known, low, np.minimum(value, 0)),
        np.where(known, high, np.maximum(value, most)),
    )


def noise_covariance(shares: Floats, n: int, channel: Channel, noise: CellNoise, places: Places | None) -> Floats:
    """What the noise adds to the covariance of the shares, of all values or of some."""
    channel, some = with_votes(channel), np.arange(channel.k) if places is None else places
    possible = np.clip(shares, 0, 1)
    if isinstance(channel, MatrixChannel):
        products, level = channel.votes[:, some].T @ channel.votes[:, some], possible[some]
    else:
        products, level = np.eye(len(some)) / channel.gain**2, channel.support(possible)[some] / channel.gain
    return np.asarray((noise.supports * products + noise.reports * np.outer(level, level)) / n**2)


def _votes(channel: Channel, groups: Mask | None) -> tuple[Floats, Floats, Floats]:
    """Of each value or group: the sums of the squares and of the fourth powers of its votes, and their constant."""
    channel = with_votes(channel)
    if isinstance(channel, MatrixChannel):
        votes = channel.votes if groups is None else channel.votes @ groups.T
        return (votes**2).sum(axis=0), (votes**4).sum(axis=0), np.zeros(votes.shape[1])
    members = np.ones(channel.k) if groups is None else groups.sum(axis=1)
    floors = channel.floor if groups is None else groups @ channel.floor
    return members / channel.gain**2, members / channel.gain**4, -floors / channel.gain


def _quantile(confidence: float, excess: Floats) -> Floats:
    """Half the width of an interval in standard errors, for noise with this excess kurtosis (Cornish and Fisher).

    Geometric noise has heavier tails than the normal distribution: an excess of 3 for one draw, less for sums.
    """
    z = quantile(confidence)
    return np.asarray(z + (z**3 - 3 * z) / 24 * excess)
