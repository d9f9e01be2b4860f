"""Unbiased estimates with errors and intervals, for every mechanism (PROTOCOLS 1).

The interval is the score interval: all frequencies f for which the estimate lies within z standard errors *at f*. With
the mean squares of a vote from inside (A) and outside (B) the variance at f is a parabola, whatever the channel:

    n V(f) = B + (A - B) f - f^2                    reports of a sample: values and noise are random
    n V(f) = B + (A - B) f - f                      reports of everybody: only the noise is random
    n V(f) = B + (A - B) f - f^2 - c f (1 - f)      reports of a share c of a finite population
    n V(f) = B + (A - B) f - J f^2                  reports about one of J slots (thresholds)

so the interval's ends are the roots of a quadratic. For a plain binomial it is Wilson's interval. Its coverage is right
at small n and near 0 and 1 too, where that of value +- 1.96 errors is not.

Products and ratios of estimated quantities have intervals that are as asymmetric as those of their parts.
"""

from dataclasses import dataclass, replace
from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.places import fit_places, spread_of
from analytics.estimation.votes import CellNoise, mean_squares, norm_sub, unbiased, vote_sums, wider_quantile
from protocols.arrays import Floats, Mask
from protocols.errors import ResultsError
from protocols.mechanisms import Channel, MatrixRound, PlanarChannel, SupportChannel

CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimated quantities: frequencies, people, or changes of them. Four arrays of one shape.

    Where nothing was reported, `value` is NaN, `error` infinite and the interval covers everything possible.
    """

    value: Floats
    error: Floats
    low: Floats
    high: Floats

    def __getitem__(self, index: Any) -> "Estimates":
        return Estimates(*(np.asarray(part[index]) for part in self.parts))

    @property
    def parts(self) -> tuple[Floats, Floats, Floats, Floats]:
        return self.value, self.error, self.low, self.high


def estimate(
    counts: ArrayLike,
    n: ArrayLike,
    channel: Channel,
    *,
    population: ArrayLike | None = None,
    groups: Mask | None = None,
    noise: CellNoise | None = None,
    confidence: float = CONFIDENCE,
) -> Estimates:
    """Frequencies from support counts: `counts[..., value]` out of `n[...]` reports, one per device.

    `population` is the number of people the estimate is about: None if the reports are a sample of an unlimited
    population, `n` if it is about those who reported, all visitors if only some of them were asked (SMP).
    `groups[group, value]` adds up values (areas into regions) with their covariances; without it every value is its own
    group. With `noise` on the counts and on n, see `votes`.

    >>> from protocols.mechanisms import SupportChannel
    >>> from protocols.mechanisms.rounds import grr
    >>> channel = SupportChannel(2, grr(2, 1.0), exclusive=True)
    >>> shares = estimate([7000, 3000], 10_000, channel)
    >>> shares.value.round(3).tolist(), shares.error.round(4).tolist()
    ([0.933, 0.067], [0.0099, 0.0099])
    >>> estimate([7000, 3000], 10_000, channel, population=10_000).error.round(4).tolist()
    [0.0096, 0.0096]
    >>> noised = estimate([7012, 2985], 10_040, channel, population=10_040, noise=CellNoise(200.0, 1800.0, 1))
    >>> noised.value.round(3).tolist(), noised.error.round(4).tolist()
    ([0.929, 0.061], [0.0119, 0.0104])
    >>> estimate([7, 2], 10, channel, noise=CellNoise(200.0, 1800.0, 1)).high.tolist()
    [1.0, 1.0]
    >>> estimate([0, 0], 0, channel).high.tolist()
    [1.0, 1.0]
    """
    counts, n = np.asarray(counts, dtype=np.float64), np.asarray(n, dtype=np.float64)
    if counts.shape[-1:] != (channel.k,) or np.isnan(counts).any() or np.isnan(n).any():
        raise ResultsError(
            f"not counts of {channel.k} values, or not the number of their reports",
            "give numbers, and one for each value",
        )
    if isinstance(channel, PlanarChannel):
        return estimate_places(counts, n, channel, population, groups, confidence)
    if noise is not None and isinstance(channel, SupportChannel):  # how many answers are about each slot has noise, too
        channel = replace(channel, slots=0)
    reports = n[..., None]
    parts, slotted = (channel.parts, channel.slots > 0) if isinstance(channel, SupportChannel) else (1, False)
    if parts > 1 and groups is None:  # how many answers are about each slot is known, and n would know less
        reports = parts * (counts + np.roll(counts, parts, axis=-1))
    known = reports > 0
    reports = np.where(known, reports, 1.0)
    frequencies = unbiased(counts / reports, channel)
    spread = norm_sub(frequencies) if isinstance(channel, MatrixRound) else frequencies  # only matrices use it
    inside, outside = mean_squares(channel, groups, spread)
    value = np.where(known, frequencies if groups is None else frequencies @ groups.T, np.nan)
    # How large a frequency can be: of a group of values of sets, how many of them a device has on average.
    most = channel.several if groups is not None and isinstance(channel, SupportChannel) else 1
    if most > 1 or slotted:  # devices have a number of a group's values: how much it varies among them is not known
        population = None
    drawn = drawn_share(reports, None if population is None else np.asarray(population)[..., None])
    squared, slope = (1 if groups is not None else parts) - drawn, inside - outside - drawn
    possible = np.clip(value, 0, most)
    variance = np.maximum(outside + slope * possible - squared * possible**2, 0) / reports
    z: Floats | float = quantile(confidence)
    constant, of_supports, of_reports = (np.zeros(1) for _ in range(3))
    if noise is not None:
        squares, fourths, constant = vote_sums(channel, groups)
        of_supports, of_reports = noise.supports * squares / reports**2, noise.reports / reports**2
        from_reports = (possible - constant) ** 2 * of_reports
        variance += of_supports + from_reports
        fourth = noise.supports**2 * fourths / reports**4 + from_reports**2 / noise.cells
        z = wider_quantile(quantile(confidence), 3 * fourth / variance**2)
    z2 = z**2 / reports
    a = 1 + z2 * squared - z**2 * of_reports
    middle = value + z2 * slope / 2 - z**2 * constant * of_reports
    square = middle**2 - a * (value**2 - z2 * outside - z**2 * (of_supports + constant**2 * of_reports))
    half_width = np.sqrt(np.maximum(square, 0))
    bounded = known if noise is None else known & (a > 0) & (square >= 0)
    low, high = ((middle + side * half_width) / np.where(bounded, a, 1) for side in (-1, 1))
    return Estimates(
        value,
        np.where(known, np.sqrt(variance), np.inf),
        np.where(bounded, low, np.fmin(value, 0)),
        np.where(bounded, high, np.fmax(value, most)),
    )


def drawn_share(reports: ArrayLike, population: ArrayLike | None) -> Floats:
    """The finite population correction: 0 for a sample of an unlimited population, 1 where everybody reported.

    >>> [float(drawn_share(11, people)) for people in (None, 101, 11)]
    [0.0, 0.1, 1.0]
    """
    n = np.asarray(reports, dtype=np.float64)
    if population is None:
        return np.zeros_like(n)
    everybody = np.asarray(population, dtype=np.float64)
    return np.where(everybody <= n, 1.0, (n - 1) / np.maximum(everybody - 1, 1))


def estimate_places(
    counts: Floats,
    n: Floats,
    channel: PlanarChannel,
    population: ArrayLike | None,
    groups: Mask | None,
    confidence: float,
) -> Estimates:
    """Shares of cells, or of groups of them, by early-stopped expectation-maximisation; not unbiased (`places`)."""
    width = channel.k if groups is None else len(groups)
    found = np.stack([np.full((*n.shape, width), fill) for fill in (np.nan, np.inf, 0.0, 1.0)])
    drawn = np.broadcast_to(drawn_share(np.maximum(n, 1), population), n.shape)
    for place in np.ndindex(n.shape):
        if n[place] > 0:
            fit = fit_places(np.rint(np.maximum(counts[place], 0)).astype(np.int64), channel)
            shares, error = spread_of(fit, channel, float(n[place]), float(drawn[place]), groups)
            half = quantile(confidence) * error
            found[(slice(None), *place)] = shares, error, np.maximum(shares - half, 0), np.minimum(shares + half, 1)
    return Estimates(*found)


@cache
def quantile(confidence: float) -> float:
    """Half the width of an interval of this confidence, in standard errors.

    >>> round(quantile(0.95), 3)
    1.96
    """
    return NormalDist().inv_cdf((1 + confidence) / 2)


def product(left: Estimates, right: Estimates) -> Estimates:
    """Left times right, estimated independently, such as shares times visitors.

    >>> share, visitors = exact(np.array([0.25])), exact(np.array([200.0]))
    >>> product(share, visitors).value.tolist()
    [50.0]
    """
    value = left.value * right.value
    error = np.sqrt((left.error * right.value) ** 2 + (left.value * right.error) ** 2 + (left.error * right.error) ** 2)
    down = np.hypot((left.value - left.low) * right.value, left.value * (right.value - right.low))
    up = np.hypot((left.high - left.value) * right.value, left.value * (right.high - right.value))
    return Estimates(value, error, value - down, value + up)


def ratio(now: Estimates, then: Estimates) -> Estimates:
    """Now divided by then, estimated independently; NaN where `then` may be 0 or less.

    The interval recovers the variances at each end from the parts' own intervals (MOVER), so it is as asymmetric as
    they are. Where both share noise, as two periods of the same memos do, it is wider than it need be.

    >>> change = ratio(Estimates(*map(np.array, (90.0, 5.0, 80.0, 100.0))), exact(np.array(60.0)))
    >>> change.value.tolist(), change.low.round(3).tolist(), change.high.round(3).tolist()
    (1.5, 1.333, 1.667)
    """
    a, la, ua = now.value, now.low, now.high
    b, lb, ub = then.value, then.low, then.high
    with np.errstate(invalid="ignore", divide="ignore"):
        value = a / b
        error = np.hypot(now.error / b, a * then.error / b**2)
        low = (a * b - np.sqrt((a * b) ** 2 - la * ub * (2 * a - la) * (2 * b - ub))) / (ub * (2 * b - ub))
        high = (a * b + np.sqrt((a * b) ** 2 - ua * lb * (2 * a - ua) * (2 * b - lb))) / (lb * (2 * b - lb))
    known = (lb > 0) & (2 * b > ub) & np.isfinite(low) & np.isfinite(high)
    return Estimates(*(np.where(known, part, np.nan) for part in (value, error, low, high)))


def exact(value: np.ndarray) -> Estimates:
    """A quantity known exactly."""
    whole = np.asarray(value, dtype=np.float64)
    return Estimates(whole, np.zeros_like(whole), whole, whole)
