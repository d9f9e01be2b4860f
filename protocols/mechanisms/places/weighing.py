"""A round of noise on the cells of any area: each cell has a weight, which falls with distance (PROTOCOLS 10).

Everything that ends up in a survey's terms is computed with the basic operations in a fixed order, or is the result of
a few bisections whose comparisons are far from equal: all machines find the same.
"""

from functools import cached_property, lru_cache
from itertools import accumulate

import numpy as np

from hearsay_device.draws import WORD
from protocols.arrays.aliases import Floats, Whole, Words
from protocols.mechanisms.places.area import Area
from protocols.mechanisms.places.rounds import ANYWHERE, PlaceRound, falling

SLOPES = 20  # bisections: the slope is the largest possible up to 2^-21 of the rate
SPARE = 1 - 1e-9  # of a promise: sums of positive floats are off by less
UNIT = 1 << 30  # a mass of 1
_BITS = 52
_SLACK = 1 - 2**-20  # of a rate: what the rounding of masses may cost


class WeighedRound(PlaceRound):
    """Noise on the cells of an area: `slope` is what weights fall by per cell side, `rate` what that side costs.

    >>> noise = WeighedRound(Area(3, 2, (0, 1, 5)), 0.5, (UNIT, UNIT, UNIT), 1.0)
    >>> noise.matrix.sum(axis=1).round(12).tolist(), bool(noise.matrix.argmax(axis=1).tolist() == [0, 1, 2])
    ([1.0, 1.0, 1.0], True)
    """

    def __init__(
        self, area: Area, slope: float, masses: tuple[int, ...], rate: float, through: float | None = None
    ) -> None:
        super().__init__(area, rate, through)
        self.slope, self.masses = slope, masses

    @property
    def tight(self) -> bool:
        """Whether every cell side costs what weights fall by; otherwise it is the exponential mechanism."""
        return self.slope >= self.rate * (1 - 1e-5)

    @property
    def numbers(self) -> dict[str, float | list[int]]:  # type: ignore[override]
        """What its table follows from."""
        return {"slope": self.slope, "masses": list(self.masses)}

    @cached_property
    def table(self) -> Words:
        """Where [0, 2^64) is cut: for each true cell, a piece for each cell.

        Each cell has a chance of `ANYWHERE` whatever the truth is. What rounding changes is far below this, so the
        promise is exact although the table has whole numbers.
        """
        mantissa, power, place = by_distance(self.area, self.slope)
        falls = np.floor(np.ldexp(mantissa, (_BITS - power).astype(np.int64))).astype(np.int64).tolist()
        share, found = WORD - ANYWHERE * self.k, []
        for row in place.tolist():
            running = list(accumulate(falls[each] * mass for each, mass in zip(row, self.masses, strict=True)))
            found.append([total * share // running[-1] + ANYWHERE * (j + 1) for j, total in enumerate(running[:-1])])
        return np.array(found, dtype=np.uint64)

    @cached_property
    def matrix(self) -> Floats:  # type: ignore[override]
        """P(cell y | cell x), from the integers that devices draw with."""
        pieces = np.diff(self.table, prepend=np.uint64(0), append=np.uint64(0), axis=1)  # the last one up to 2^64
        return np.asarray(pieces.astype(np.float64) / WORD)


def by_distance(area: Area, slope: float) -> tuple[Floats, Floats, Whole]:
    """Weights e^(-s d) as mantissas and powers of 1/2, by distance; and which distance each two cells have."""
    squares, place = np.unique(area.squares, return_inverse=True)
    mantissa, power = falling(slope * np.sqrt(squares.astype(np.float64)))
    return mantissa, power, place.reshape(area.k, area.k)


@lru_cache(maxsize=64)
def weighed(area: Area, rate: float) -> WeighedRound:
    """The noise of an area at which a cell side costs `rate`.

    The masses that make all sums equal are those of the tight mechanism. Where some would be negative, it does not
    exist: these are 0, and the slope is the largest one that keeps the rate (the exponential mechanism, with weights).

    >>> noise = weighed(Area(4, 1), 0.7)
    >>> noise.matrix[0].round(4).tolist(), noise.tight
    ([0.6682, 0.167, 0.0829, 0.0818], True)
    >>> weighed(Area(12, 12), 0.5).tight, weighed(Area(12, 12), 1.0).tight
    (False, True)
    """
    masses = np.maximum(np.rint(even_masses(_kernel(area, rate * _SLACK)) * UNIT), 0)
    low, high = rate / 2, rate
    for step in range(SLOPES):
        middle = rate * _SLACK if step == 0 else (low + high) / 2
        low, high = (middle, high) if cost(area, middle, masses) <= rate * SPARE else (low, middle)
    return WeighedRound(area, low, tuple(int(mass) for mass in masses), rate)


def cost(area: Area, slope: float, masses: Floats) -> float:
    """What a cell side costs if weights fall by `slope` over it."""
    sums = np.log((_kernel(area, slope) * masses).sum(axis=1))
    apart = np.abs(sums[:, None] - sums) / (area.distances + np.eye(area.k))
    return slope + float(apart.max())


def even_masses(kernel: Floats) -> Floats:
    """The masses for which all rows of a symmetric kernel have the sum 1, by elimination.

    >>> masses = even_masses(np.array([[1.0, 0.5], [0.5, 1.0]]))
    >>> masses.round(12).tolist()
    [0.666666666667, 0.666666666667]
    """
    left = np.concatenate([kernel, np.ones((len(kernel), 1))], axis=1)
    for step in range(len(left)):
        factors = left[step + 1 :, step] / left[step, step]
        left[step + 1 :, step:] -= factors[:, None] * left[step, step:]
    masses = left[:, -1].copy()
    for step in reversed(range(len(left))):
        masses[step] /= left[step, step]
        masses[:step] -= left[:step, step] * masses[step]
    return masses


def _kernel(area: Area, slope: float) -> Floats:
    mantissa, power, place = by_distance(area, slope)
    return np.asarray(np.ldexp(mantissa, -power.astype(np.int64))[place])
