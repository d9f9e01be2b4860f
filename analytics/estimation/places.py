"""Shares of places: expectation-maximisation over the displacement, stopped early (PROTOCOLS 10).

Inverting the displacement would amplify its noise beyond use, and the likeliest shares are spikes that are not in the
truth. A few steps of expectation-maximisation from the even histogram are far closer. Their number is chosen by
binomial thinning: a tenth of the reports is held out at random, and the steps are taken that make it likeliest, over
several divisions: a single one may stop so early that errors double. They are seeded by the counts, so the same counts
give the same shares.

Stopping early smooths, so the estimate is biased: it takes from peaks and gives to what is around them. The half width
of an interval is z times the root of

    the variance of refits to reports drawn from the fitted shares (parametric bootstrap), without what is due to
    sampling the devices where everybody reported
    + the square of what twelve times as many further steps change
    + a part of what such steps change on average in areas of the same shape (`unseen`)

Groups are the sums of their cells, with intervals of their own from the same refits. `tests/analytics/test_places.py`
measures how often the intervals cover.

Further steps show what stopping has removed, but not all of it where cells are small against the noise: they change
nothing at places where too much and too little meet. There, intervals also have a part of the mean square of what they
change in an area of the same shape, wherever it lies. It follows from the mean product of what they change in two cells
at each displacement. The part is fitted: it gives intervals of 95 % their coverage at a rate of 0.3, and vanishes where
a cell side costs 0.6 or more, where nothing is missing.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from protocols.arrays import Floats, Mask, Places, Whole
from protocols.mechanisms import Area, PlanarChannel

UNSEEN_RATE = 0.24  # a cell side: at this rate as much is unseen as is seen


@dataclass(frozen=True, eq=False)
class Unseen:
    """The unseen part, as mean products by displacement: [row, column], negative ones from the end."""

    area: Area
    products: Floats = field(repr=False)

    def of(self, groups: Mask | None) -> Floats:
        """The variance that it adds to cells, or to groups of them."""
        if groups is None:
            return np.full(self.area.k, self.products[0, 0])
        found = [float((_products(group.astype(np.float64), self.area) * self.products).sum()) for group in groups]
        return np.asarray(np.maximum(found, 0.0), dtype=np.float64)


def unseen_of(removed: Floats, channel: PlanarChannel) -> Unseen:
    """From what further steps change in each cell.

    >>> from protocols.mechanisms import PlanarRound
    >>> channel, removed = PlanarChannel((PlanarRound(3, 2, 0.24),)), np.array([1.0, -1, 0, 0, 0, 0])
    >>> unseen = unseen_of(removed, channel)
    >>> pair = np.array([[True, True, False, False, False, False]])
    >>> unseen.of(None)[:2].round(9).tolist(), unseen.of(pair).round(9).tolist()
    ([0.333333333, 0.333333333], [0.166666667])
    """
    area, part = channel.rounds[0].area, min(1.0, (UNSEEN_RATE / channel.rate) ** 4)
    pairs = np.rint(_products(np.ones(area.k), area))
    return Unseen(area, part * _products(removed, area) / np.maximum(pairs, 1))


def _products(cells: Floats, area: Area) -> Floats:
    """The sum of products of two cells at each displacement."""
    size = 2 * area.rows, 2 * area.columns
    plane = np.zeros(size)
    plane[tuple(area.positions.T)] = cells
    return np.asarray(np.fft.irfft2(np.abs(np.fft.rfft2(plane)) ** 2, size))


HELD_OUT, DIVISIONS = 0.1, 5
MOST_STEPS = 600
PATIENCE = 10  # steps without a better likelihood of the held-out reports, plus as many as were taken
FURTHER = 12  # times as many steps show what stopping early has removed
REFITS = 20
LEAST_VARIANCE = 0.5  # of the refits': the share that stays, whatever sampling the devices is thought to add
TINY = 1e-300


class Fit(NamedTuple):
    """Shares of all cells, the number of steps, and what intervals need."""

    shares: Floats
    steps: int
    further: Floats
    refits: Floats
    unseen: Unseen


def fit_places(counts: Whole, channel: PlanarChannel) -> Fit:
    """The shares of the cells for `counts[cell]` reports that name each; at least one report.

    >>> from protocols.mechanisms import PlanarRound
    >>> channel, truth = PlanarChannel((PlanarRound(12, 10, 1.0),)), np.zeros(120)
    >>> truth[[27, 28, 39, 93]] = 0.25
    >>> reports = np.random.default_rng(0).multinomial(20_000, channel.support(truth))
    >>> fit = fit_places(reports, channel)
    >>> bool(np.abs(fit.shares - truth).sum() < np.abs(reports / 20_000 - truth).sum() / 2)
    True
    """
    return _fitted(counts.astype("<i8").tobytes(), channel)


def fitted_places(counts: Whole, channel: PlanarChannel) -> Floats:
    """The shares of the cells alone, without what intervals need."""
    steps = best_steps(counts, channel, _random(counts.astype("<i8").tobytes()))
    return advance(counts / counts.sum(), channel, steps)


@lru_cache(maxsize=16)  # cells, groups and the consistent histogram all ask for it
def _fitted(given: bytes, channel: PlanarChannel) -> Fit:
    counts = np.frombuffer(given, dtype="<i8").astype(np.int64)
    n, random = int(counts.sum()), _random(given)
    steps = best_steps(counts, channel, random)
    shares = advance(counts / n, channel, steps)
    further = advance(counts / n, channel, FURTHER * steps, shares)
    expected = channel.support(shares)
    drawn = random.multinomial(n, expected / expected.sum(), size=REFITS)
    unseen = unseen_of(further - shares, channel)
    return Fit(shares, steps, further, advance(drawn / n, channel, steps), unseen)


def best_steps(counts: Whole, channel: PlanarChannel, random: np.random.Generator) -> int:
    """How many steps make a tenth of the reports likeliest, fitted to the others; over all divisions."""
    held = random.binomial(counts, HELD_OUT, size=(DIVISIONS, channel.k))
    kept = counts - held
    observed = kept / np.maximum(kept.sum(axis=1, keepdims=True), 1)
    shares = np.full(held.shape, 1 / channel.k)
    expected = channel.support(shares)
    best, highest = 1, -np.inf
    for step in range(1, MOST_STEPS + 1):
        shares = shares * channel.back(observed / np.maximum(expected, TINY))
        expected = channel.support(shares)
        likelihood = float((held * np.log(np.maximum(expected, TINY))).sum())
        if likelihood > highest:
            best, highest = step, likelihood
        elif step >= 2 * best + PATIENCE:
            break
    return best


def advance(observed: Floats, channel: PlanarChannel, steps: int, start: Floats | None = None) -> Floats:
    """So many steps towards the likeliest shares, for rows of observed shares; from the even ones, or from others."""
    shares = np.full(observed.shape, 1 / channel.k) if start is None else start
    for _ in range(steps):
        shares = shares * channel.back(observed / np.maximum(channel.support(shares), TINY))
    return shares


def spread_of(fit: Fit, n: float, drawn: float, groups: Mask | None) -> tuple[Floats, Floats]:
    """The shares of cells or groups, and their standard errors; `drawn`: the share of the population that reported."""
    shares, further, refits = (_summed(part, groups) for part in (fit.shares, fit.further, fit.refits))
    variance = refits.var(axis=0, ddof=1)
    noise = np.maximum(variance - drawn * shares * (1 - shares) / n, LEAST_VARIANCE * variance)
    return shares, np.sqrt(noise + (further - shares) ** 2 + fit.unseen.of(groups))


def _summed(cells: Floats, groups: Mask | None) -> Floats:
    return cells if groups is None else np.asarray(cells @ groups.T.astype(np.float64))


def covariance_of(fit: Fit, places: Places | None) -> Floats:
    """The covariance of the shares of all cells or of some: that of the refits, and what stopping early has removed."""
    some = slice(None) if places is None else places
    apart = fit.refits[:, some] - fit.refits[:, some].mean(axis=0)
    removed = (fit.further - fit.shares)[some]
    return np.asarray(apart.T @ apart / (REFITS - 1) + np.diag(removed**2 + fit.unseen.of(None)[some]))


def _random(counts: bytes) -> np.random.Generator:
    digest = sha256(b"places" + counts).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "little"))
