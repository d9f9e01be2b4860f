"""A round of noise on the cells of any area: each cell has a weight, which falls with distance (PROTOCOLS 10).

A report names cell j with a chance proportional to m_j e^(-s d), d its distance from the true cell. The sums T_i of
these over all cells differ between true cells, so a cell side costs

    s + the largest |ln T_i - ln T_i'| / d(i, i')

which is at most 2 s whatever the masses m are. Where all sums are the same it is s: the mechanism is tight.
"""

from functools import cached_property, lru_cache
from itertools import accumulate

import numpy as np

from hearsay_device.draws import WORD
from protocols.arrays.aliases import Floats, Whole, Words
from protocols.mechanisms.places.area import Area
from protocols.mechanisms.places.law import ANYWHERE, falling
from protocols.mechanisms.places.rounds import PlaceRound

UNIT = 1 << 30  # a mass of 1
_BITS = 52


class WeighedRound(PlaceRound):
    """Noise on the cells of an area: `slope` is what weights fall by per cell side, `rate` what that side costs.

    >>> noise = WeighedRound(Area(3, 2, (0, 1, 5)), 0.5, (UNIT, UNIT, UNIT), 1.0)
    >>> noise.matrix.sum(axis=1).round(12).tolist(), bool(noise.matrix.argmax(axis=1).tolist() == [0, 1, 2])
    ([1.0, 1.0, 1.0], True)
    """

    slope: float
    masses: tuple[int, ...]
    carries = False

    def __init__(
        self, area: Area, slope: float, masses: tuple[int, ...], rate: float, through: float | None = None
    ) -> None:
        self._set(area=area, slope=slope, masses=masses, rate=rate, through=rate if through is None else through)

    @property
    def numbers(self) -> dict[str, float | list[int]]:  # type: ignore[override]
        """What its table follows from."""
        return {"slope": self.slope, "masses": list(self.masses)}

    @cached_property
    def table(self) -> Words:
        return cuts(self.area, self.slope, self.masses)

    @cached_property
    def matrix(self) -> Floats:
        """P(cell y | cell x), from the integers that devices draw with."""
        self.refuse_many()
        pieces = np.diff(self.table, prepend=np.uint64(0), append=np.uint64(0), axis=1)  # the last one up to 2^64
        return np.asarray(pieces.astype(np.float64) / WORD)


def by_distance(area: Area, slope: float) -> tuple[Floats, Floats, Whole]:
    """Weights e^(-s d) as mantissas and powers of 1/2, by distance; and which distance each two cells have."""
    squares, place = np.unique(area.squares, return_inverse=True)
    mantissa, power = falling(slope * np.sqrt(squares.astype(np.float64)))
    return mantissa, power, place.reshape(area.k, area.k)


@lru_cache(maxsize=16)
def cuts(area: Area, slope: float, masses: tuple[int, ...]) -> Words:
    """Where [0, 2^64) is cut: for each true cell, a piece for each cell.

    Each cell has a chance of `ANYWHERE` whatever the truth is. What rounding changes is far below this, so the promise
    is exact although the table has whole numbers.
    """
    mantissa, power, place = by_distance(area, slope)
    falls = np.floor(np.ldexp(mantissa, (_BITS - power).astype(np.int64))).astype(np.int64).tolist()
    share, found = WORD - ANYWHERE * area.k, []
    for row in place.tolist():
        running = list(accumulate(falls[each] * mass for each, mass in zip(row, masses, strict=True)))
        found.append([total * share // running[-1] + ANYWHERE * (j + 1) for j, total in enumerate(running[:-1])])
    table = np.array(found, dtype=np.uint64)
    table.flags.writeable = False
    return table
