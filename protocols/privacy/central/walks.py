"""Mixtures of tilted symmetric walks: what a crowd leaves of the difference between two reports (PROTOCOLS 11).

Every other device sends, with some chance, a message that does not depend on its value (the privacy blanket of Balle et
al. 2019). An attacker is told which devices do not, and what they sent. Among the others and the victim's report, t
messages favour one of both values alone, and s is how many more favour the first. Given t and the numbers of all other
kinds of messages, s is a symmetric walk of t steps, tilted by the victim:

    P(s) = walk_t(s) (1 + s/U)      Q(s) = walk_t(s) (1 - s/U)      loss of s: 2 artanh(s/U)
    delta(eps) = (1 + e^eps) * sum of weight * E[(s/U - tanh(eps/2))_+]

For every eps this grows with t and falls with U. So numbers of messages are put into bins: t is the upper end of its
bin in the walk, and all numbers are the lower ends in U.

Losses of many periods together are convolutions on a grid, rounded up.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import ceil, exp, expm1, inf, log, log1p, sqrt, tanh

import numpy as np

from protocols.arrays.aliases import Floats, Whole

TINY = 1e-14  # the chance of numbers of messages that are left out, at either end; it is added to delta
SUBTRACTED = 1 + 1e-9  # the one difference of large numbers, in `_excess`, is wrong by much less
FINEST = 1e-5  # of an epsilon: how far the bisection goes
REACH = 24_000  # grid points of losses in either direction; what is beyond is added to delta
CUT = 1e-13  # the chance of sums that may wrap around, at either end; it is added to delta
ROUNDING = 1e-15  # what Fourier transforms get wrong at a grid point, at most
RATES: tuple[float, ...] = tuple(np.geomspace(1e-6, 1, 80).tolist())  # at which sums of losses are bounded


@dataclass(frozen=True, eq=False)
class Walks:
    """Two laws that are at least as far apart as those of the published counts; on `lost`, nothing is promised."""

    weights: Floats
    steps: Whole  # t
    scale: Floats  # U
    lost: float
    most: float  # what it costs without a crowd

    @property
    def spread(self) -> float:
        """The standard deviation of the loss, about."""
        return 2 * sqrt(float((self.weights * self.steps / self.scale**2).sum()))

    def delta(self, eps: float) -> float:
        """The chance in excess of e^eps times that of the other law, at most."""
        return self._delta(eps, _Tails.of(self.steps))

    def _delta(self, eps: float, tails: "_Tails") -> float:
        over = tails.excess(self.scale * tanh(eps / 2)) / self.scale
        return float(self.lost + (1 + exp(eps)) * (self.weights * over).sum())

    def epsilon(self, delta: float) -> float:
        """The least epsilon for a delta, rounded up."""
        low, high, tails = 0.0, self.most, _Tails.of(self.steps)
        while high - low > FINEST * high and self.lost <= delta:
            middle = (low + high) / 2
            low, high = (middle, high) if self._delta(middle, tails) > delta else (low, middle)
        return high


@dataclass(frozen=True, eq=False)
class Losses:
    """How likely each privacy loss is: `mass` at multiples of `step` from the `first` one on, the rest infinite."""

    step: float
    first: int
    mass: Floats
    infinite: float

    def delta(self, eps: float) -> float:
        above = min(max(0, int(eps / self.step) - self.first), len(self.mass))  # losses before it are below eps
        mass = self.mass[above:]
        over = (np.arange(above, len(self.mass)) + self.first) * self.step - eps
        return float(self.infinite - (mass * np.expm1(-np.maximum(over, 0))).sum())

    def epsilon(self, delta: float, most: float) -> float:
        """The least epsilon for a delta, rounded up, or `most`."""
        low, high = 0.0, most
        for _ in range(45 if self.infinite <= delta else 0):
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return high


@lru_cache(maxsize=256)
def losses_of(walks: Walks, step: float) -> Losses:
    """The losses under the first law, rounded up to multiples of `step`; kept: those of a day are those of a year."""
    last = min(ceil(walks.most / step) + 1, REACH)
    mass = np.zeros(2 * last + 1)
    infinite = walks.lost
    order = np.argsort(walks.steps, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(walks.steps[order])) + 1):
        t = int(walks.steps[rows[0]])
        span = int(min(t, 40 + 9.5 * sqrt(t)))
        weights = walks.weights[rows, None]
        cut = 4 * exp(-span * span / (2 * t)) if span < t else 0.0  # Hoeffding, with both laws
        infinite += cut * float(weights.sum())
        ends, chances = _upper_half(t, span)
        tilts = ends / walks.scale[rows, None]
        with np.errstate(divide="ignore"):
            losses = np.arctanh(tilts) * (2 / step)
        # A walk and its mirror image have the same chance and opposite losses, each of which is rounded up.
        straight = weights * chances
        tilted = straight * tilts
        rising = straight + tilted
        if losses.max() > last:
            far = losses > last
            infinite += float(rising[far].sum())
            rising[far] = 0.0
            losses = np.minimum(losses, last)
        _add(mass, np.ceil(losses).astype(np.int64) + last, rising)
        _add(mass, last - losses.astype(np.int64), straight - tilted)
    first, final = np.flatnonzero(mass)[[0, -1]].tolist() if mass.any() else (last, last)
    return Losses(step, first - last, mass[first : final + 1], infinite)


def _upper_half(t: int, span: int) -> tuple[Floats, Floats]:
    """Where walks of t steps end that end at or above 0, and at most about `span` from it, and how likely that is.

    With their mirror images they are all walks. So an end at 0, which is its own image, counts as half in each.
    """
    first, chances = binomial(t, 0.5)
    ups = np.arange((t + 1) // 2, (t + span + 1) // 2 + 1)
    ends = (2 * ups - t).astype(np.float64)
    return ends, np.where(ends > 0, chances[ups - first], chances[ups - first] / 2)


def _add(mass: Floats, places: Whole, chances: Floats) -> None:
    first = int(places.min())
    found = np.bincount((places - first).ravel(), chances.ravel())
    mass[first : first + len(found)] += found


@lru_cache(maxsize=256)
def mixture(
    crowd: int,
    others: tuple[float, ...],
    victim: tuple[float, ...],
    factors: tuple[float, ...],
    bins: tuple[int, ...],
    most: float,
) -> Walks:
    """The walks of a crowd, the victim included.

    Messages are of several kinds, those that favour one value alone first. `others` are the chances of each kind among
    other devices whatever their value (the rest of their messages is given away), `victim` are those of the victim, and
    `factors` is what each kind counts for in U.
    """
    rest, left_over, lost = crowd - 1, 1.0, 0.0
    ratio = factors[0], _least_slack(rest, others, factors) / 8 if factors[0] == 1 else 0.0
    # A cell: its chance, and the least and the largest number of messages of each kind so far.
    cells: list[tuple[float, tuple[int, ...], tuple[int, ...]]] = [(1.0, (), ())]
    for kind, chance in enumerate(others):
        share, before, cells = min(1.0, chance / left_over), cells, []
        for mass, lows, highs in before:
            # If fewer other devices are left than there may be, the figure is larger.
            for low, high, part in _bins(rest - sum(highs), share, bins[kind], None if kind else ratio):
                cells.append((mass * part, (*lows, low), (*highs, high)))
            lost += mass * 2 * TINY
        left_over -= chance
    masses, least = np.array([cell[0] for cell in cells]), np.array([cell[1] for cell in cells])
    longest = np.array([cell[2][0] for cell in cells])
    weights = np.concatenate([masses * chance for chance in victim])
    steps = np.concatenate([longest + (kind == 0) for kind in range(len(victim))])
    scale = np.concatenate([(least + own) @ np.array(factors) for own in np.eye(len(victim))])
    kept = weights > TINY / len(weights)
    scale, lost = np.maximum(scale[kept], 1e-9), lost + float(weights[~kept].sum())
    return Walks(weights[kept], steps[kept], scale, lost, most)


def _least_slack(rest: int, others: Sequence[float], factors: Sequence[float]) -> float:
    """What the other kinds of messages count for in U at least, whatever the number of the first kind is."""
    high = _bins(rest, others[0], 1)[-1][1]
    left, left_over, slack = rest - high, 1 - others[0], 0.0
    for chance, factor in zip(others[1:], factors[1:], strict=True):
        low, most, _ = _bins(left, min(1.0, chance / left_over), 1)[0]
        slack, left, left_over = slack + factor * low, left - most, left_over - chance
    return slack


def _bins(n: int, share: float, parts: int, ratio: tuple[float, float] | None = None) -> list[tuple[int, int, float]]:
    """Bins of a binomial number: the least, the largest, and the chance of each; but for `TINY` at either end.

    With `ratio` a and b, the largest is at most a times the least plus b: U is never below t.
    """
    if n <= 0 or share <= 0:
        return [(0, 0, 1.0)]
    first, last = _likely(n, share)
    step = max(1, -(-(last + 1 - first) // parts))
    edges = [first]
    while edges[-1] <= last:
        low = edges[-1]
        high = low + step if ratio is None else max(low + 1, min(low + step, int(low * ratio[0] + ratio[1]) + 1))
        edges.append(min(high, last + 1))
    below = _at_most(np.array(edges) - 1, n, share)
    return [(low, high - 1, float(part)) for low, high, part in zip(edges, edges[1:], np.diff(below), strict=False)]


@lru_cache(maxsize=128)
def binomial(n: int, share: float) -> tuple[int, Floats]:
    """The chances of a binomial number, from the first one that is returned, on.

    Each follows from the one nearer to the likeliest by their ratio: that loses no digits, and needs no factorials. The
    numbers that are left out have a chance below 1e-19 together, which is nothing beside `TINY` (Bernstein).

    >>> binomial(2, 0.5)[0], binomial(2, 0.5)[1].tolist()
    (0, [0.25, 0.5, 0.25])
    """
    likeliest, reach = min(n, int((n + 1) * share)), int(40 + 9.5 * sqrt(n * share * (1 - share)))
    first, last = max(0, likeliest - reach), min(n, likeliest + reach)
    below, above = np.arange(likeliest, first, -1), np.arange(likeliest, last)
    down = np.cumprod(below * (1 - share) / ((n - below + 1) * share))
    up = np.cumprod((n - above) * share / ((above + 1) * (1 - share)))
    chances = np.concatenate([down[::-1], [1.0], up])
    return first, chances / chances.sum()


def quantile(n: int, share: float, chance: float) -> int:
    """The least number that a binomial number does not exceed with at least this chance."""
    first, chances = binomial(n, share)
    return min(n, first + int(np.searchsorted(np.cumsum(chances), chance)))


def _likely(n: int, share: float) -> tuple[int, int]:
    """The least and the largest binomial number, but for `TINY` at either end."""
    first, chances = binomial(n, share)
    below = int(np.searchsorted(np.cumsum(chances), TINY))
    above = int(np.searchsorted(np.cumsum(chances[::-1]), TINY))
    return first + below, first + len(chances) - 1 - above


def _at_most(numbers: Whole, n: int, share: float) -> Floats:
    """The chance that a binomial number is at most each of these."""
    first, chances = binomial(n, share)
    return np.append(0.0, np.cumsum(chances))[np.clip(numbers + 1 - first, 0, len(chances))]


@lru_cache(maxsize=128)
def _tails(t: int) -> tuple[int, Floats, Floats]:
    """Of a walk of t steps: P(B >= j) and E[s; B >= j], from the first j on. B is the number of steps up."""
    first, chances = binomial(t, 0.5)
    sums = chances * (2 * (first + np.arange(len(chances))) - t)
    tail, above = (np.append(np.cumsum(each[::-1])[::-1], 0.0) for each in (chances, sums))
    return first, tail, above


@dataclass(frozen=True, eq=False)
class _Tails:
    """The tails of walks, of all numbers of steps in one row, and where those of each walk begin."""

    steps: Whole
    firsts: Whole  # the number of steps up with which a tail begins
    begins: Whole
    ends: Whole  # the last entry of a tail, which is 0
    tail: Floats
    above: Floats

    @staticmethod
    def of(steps: Whole) -> "_Tails":
        known = sorted(set(steps.tolist()))
        found = [_tails(t) for t in known]
        ends = np.cumsum([len(tail) for _, tail, _ in found])
        begins = ends - [len(tail) for _, tail, _ in found]
        own = np.searchsorted(known, steps)
        return _Tails(
            steps=steps,
            firsts=np.array([first for first, _, _ in found])[own],
            begins=begins[own],
            ends=ends[own] - 1,
            tail=np.concatenate([tail for _, tail, _ in found]),
            above=np.concatenate([above for _, _, above in found]),
        )

    def excess(self, over: Floats) -> Floats:
        """E[(s - x)_+] of each walk, for its x >= 0: of the steps up that are above x."""
        ups = np.ceil((self.steps + over) / 2 - 1e-12).astype(np.int64)
        places = np.clip(self.begins + ups - self.firsts, self.begins, self.ends)
        found = self.above[places] - over * self.tail[places]
        return np.asarray(np.maximum(found, 0) * SUBTRACTED)


def together(parts: Sequence[tuple[Losses, int]]) -> Losses:
    """Of several releases, each so many times, on grids of the same step."""
    step = parts[0][0].step
    assert all(losses.step == step for losses, _ in parts), "losses on other grids"
    up, down = (ceil(_tail(parts, sign)) + 2 for sign in (1, -1))
    size = 1 << (max(up + down + 2, *(len(losses.mass) for losses, _ in parts)) - 1).bit_length()
    transformed = np.ones(size // 2 + 1, dtype=np.complex128)
    for losses, times in parts:
        wrapped = np.zeros(size)
        wrapped[(np.arange(len(losses.mass)) + losses.first) % size] = losses.mass
        transformed *= np.fft.rfft(wrapped) ** times
    mass = np.roll(np.maximum(np.fft.irfft(transformed, size), 0), size - 1 - up)  # the last is `up`
    infinite = -expm1(sum(times * log1p(-min(losses.infinite, 0.5)) for losses, times in parts))
    return Losses(step, up + 1 - size, mass, infinite + 2 * CUT + ROUNDING * size)


def _tail(parts: Sequence[tuple[Losses, int]], sign: int) -> float:
    """How many steps a sum of losses, or of their negatives, exceeds with a chance of `CUT` at most (Chernoff).

    Each rate gives a bound: (K(rate) - log CUT) / rate, with K the sum of the logarithms of the moments. K is convex,
    so the derivative of the bound has the sign of rate K' - K + log CUT, which never falls: the bound falls up to its
    least value and rises from there. So the search finds the one that a scan of all rates finds. Whatever it finds is
    a bound. Rates whose moments are too large for a number are the largest ones, and count as infinite.
    """

    @cache
    def bound(place: int) -> float:
        rate = RATES[place]
        if rate * farthest >= 700:
            return inf
        moments = [log(losses.mass @ np.exp(sign * rate * at)) for losses, at in zip(ends, numbers, strict=True)]
        total: float = sum(n * moment for n, moment in zip(times, moments, strict=True))
        return (total - log(CUT)) / rate

    ends, times = [losses for losses, _ in parts], [n for _, n in parts]
    numbers = [np.arange(len(losses.mass)) + losses.first for losses in ends]
    farthest = max(float(np.abs(at[[0, -1]]).max()) for at in numbers)
    low, high = 0, len(RATES) - 1
    while low < high:
        middle = (low + high) // 2
        if bound(middle) <= bound(middle + 1):
            high = middle
        else:
            low = middle + 1
    return bound(low)
