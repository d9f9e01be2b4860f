"""Places on a grid (docs/device-protocol.md, "Plane"): the law of noise, and which cell a position is in.

The same basic operations in the same order give the same integers in every language.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import atan, atan2, atanh, ceil, cos, cosh, floor, hypot, isfinite, radians, sin, sinh, sqrt
from typing import Any

from hearsay_device.draws import Draws
from hearsay_device.tables import WORD, below, digest

ANYWHERE = 1 << 24  # of 2^64: the chance of each cell to be reported whatever the truth is
LEAST_RATE, MOST_RATE = 0.05, 20.0
KEPT = 0.75  # cell sides from the middle of its last cell within which a device stays in it
_INVERSE_LN2 = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
_COEFFICIENTS = list(accumulate(range(1, 18), lambda before, i: before / -i, initial=1.0))


@dataclass(frozen=True)
class Grid:
    """Square cells in metres, numbered row by row."""

    columns: int
    rows: int
    cell: float
    origin: tuple[float, float]
    at: tuple[float, float] | None
    crs: str

    @property
    def widest(self) -> float:
        """The largest distance of two cells, in cell sides."""
        return hypot(self.columns - 1, self.rows - 1)

    def cell_of(self, given: Mapping[str, Any], last: int | None) -> int | None:
        """The cell of a position: the last one while the device is near its middle; None if it is no position."""
        found = self._metres(given)
        if found is None:
            return None
        across, up = ((each - start) / self.cell for each, start in zip(found, self.origin))
        if last is not None:
            row, column = divmod(last, self.columns)
            if abs(across - column - 0.5) <= KEPT and abs(up - row - 0.5) <= KEPT:
                return last
        row, column = (min(max(floor(each), 0), size - 1) for each, size in ((up, self.rows), (across, self.columns)))
        return row * self.columns + column

    def apart(self, metres: float) -> float:
        """How far apart, in cell sides, the cells of two positions can be that are so many metres apart."""
        far = metres / self.cell
        if far >= self.columns + self.rows:
            return self.widest
        most, j = 0.0, floor(far + 2 * KEPT)
        for i in range(j + 1):
            while hypot(max(0, i - 2 * KEPT), max(0, j - 2 * KEPT)) > far:
                j -= 1
            most = max(most, hypot(i, j))
        return min(self.widest, most)

    def _metres(self, given: Mapping[str, Any]) -> tuple[float, float] | None:
        try:
            if "latitude" in given and self._plane is not None:
                x, y = _metres(*self._plane, float(given["latitude"]), float(given["longitude"]))
            else:
                x, y = float(given["x"]), float(given["y"])
        except (KeyError, TypeError, ValueError, OverflowError):
            return None
        return (x, y) if isfinite(x) and isfinite(y) else None

    @cached_property
    def _plane(self) -> tuple[float, float, float, float, float] | None:
        """Latitude and longitude of the point 0, 0, the scale, and what is added to x and y; None where unknown."""
        if self.at is not None:
            return (*self.at, 1.0, 0.0, 0.0)
        zone = re.fullmatch(r"EPSG:32([67])(0[1-9]|[1-5][0-9]|60)", self.crs)
        return zone and (0.0, 6.0 * int(zone[2]) - 183, 0.9996, 5e5, 1e7 if zone[1] == "7" else 0.0)


class Displacement:
    """One round of noise on the cells of a grid: all are displaced alike."""

    def __init__(self, grid: Grid, rate: float) -> None:
        self._columns, self._rows = grid.columns, grid.rows
        law = _folded(grid.columns, grid.rows, rate)
        columns = [abs(across) for across in range(1 - grid.columns, grid.columns)]
        flat = [law[abs(up)][across] for up in range(1 - grid.rows, grid.rows) for across in columns]
        total, share = sum(flat), WORD - ANYWHERE * grid.columns * grid.rows
        self._cuts = [running * share // total for running in accumulate(flat)]

    @property
    def digest(self) -> str:
        return digest([self._cuts])

    def one(self, cell: int, draws: Draws) -> int:
        word, other = draws.longs(2)
        drawn = bisect_right(self._cuts, word)
        if drawn == len(self._cuts):
            return below(self._columns * self._rows, other)
        up, across = divmod(drawn, 2 * self._columns - 1)
        row = min(max(cell // self._columns + up - (self._rows - 1), 0), self._rows - 1)
        column = min(max(cell % self._columns + across - (self._columns - 1), 0), self._columns - 1)
        return row * self._columns + column


def _folded(columns: int, rows: int, rate: float) -> list[list[int]]:
    """Weights by displacement, [row][column]; what is beyond the grid's size is added to the outermost."""
    bound = 1 + 2 * 1.4142135623730951 / rate
    bits = 62 - int(bound * bound + 1).bit_length()
    reach = ceil(bits / _INVERSE_LN2 / rate) + 1
    law = [[0] * columns for _ in range(rows)]
    for up in range(reach + 1):
        row = law[min(up, rows - 1)]
        for across in range(reach + 1):
            row[min(across, columns - 1)] += _weight(rate * sqrt(up * up + across * across), bits)
    return law


def _weight(x: float, bits: int) -> int:
    """floor(e^-x 2^bits)."""
    n = floor(x * _INVERSE_LN2)
    rest = (x - n * _LN2_HIGH) - n * _LN2_LOW
    total = _COEFFICIENTS[-1]
    for coefficient in _COEFFICIENTS[-2::-1]:
        total = total * rest + coefficient
    return floor(total * 2.0 ** (bits - n))


_FLATTENING = 1 / 298.257223563
_N = _FLATTENING / (2 - _FLATTENING)
_MERIDIAN = 6378137 / (1 + _N) * (1 + _N**2 / 4 + _N**4 / 64)
_E = sqrt(_FLATTENING * (2 - _FLATTENING))
_ALPHA = (
    _N / 2 - 2 * _N**2 / 3 + 5 * _N**3 / 16 + 41 * _N**4 / 180,
    13 * _N**2 / 48 - 3 * _N**3 / 5 + 557 * _N**4 / 1440,
    61 * _N**3 / 240 - 103 * _N**4 / 140,
    49561 * _N**4 / 161280,
)


def _metres(
    start: float, meridian: float, scale: float, east: float, north: float, latitude: float, longitude: float
) -> tuple[float, float]:
    """The transverse Mercator projection of WGS 84, by Krüger's series to n^4."""
    away = radians((longitude - meridian + 540) % 360 - 180)
    t, begin = _tangent(latitude), atan(_tangent(start))
    xi, eta = atan2(t, cos(away)), atanh(sin(away) / sqrt(1 + t * t))
    up, across = xi - begin, eta
    for j, alpha in enumerate(_ALPHA, 1):
        up += alpha * (sin(2 * j * xi) * cosh(2 * j * eta) - sin(2 * j * begin))
        across += alpha * cos(2 * j * xi) * sinh(2 * j * eta)
    return east + scale * _MERIDIAN * across, north + scale * _MERIDIAN * up


def _tangent(latitude: float) -> float:
    sine = sin(radians(latitude))
    return sinh(atanh(sine) - _E * atanh(_E * sine))
