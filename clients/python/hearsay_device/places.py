"""Places on a grid (docs/device-protocol.md, "Plane"): the law of noise, and which cell a position is in.

The same basic operations in the same order give the same integers in every language.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from functools import cached_property
from itertools import accumulate
from math import atan, atan2, atanh, ceil, cos, cosh, floor, hypot, isfinite, radians, sin, sinh, sqrt
from typing import Any

from hearsay_device.checks import keys, need, number, text, whole
from hearsay_device.draws import WORD, Draws, below, bits_of, digest

MOST_CELLS = 1 << 16
ANYWHERE = 1 << 24  # of 2^64: the chance of each cell to be reported whatever the truth is
KEPT = 0.75  # cell sides from the middle of its last cell within which a device stays in it
_INVERSE_LN2 = 1.4426950408889634
_COEFFICIENTS = list(accumulate(range(1, 18), lambda before, i: before / -i, initial=1.0))
_MERIDIAN, _ECCENTRICITY = 6367449.145823415, 0.08181919084262149  # of WGS 84, and Krüger's series for it
_ALPHA = (0.0008377318206303529, 7.608527714248998e-7, 1.1976380015605232e-9, 2.4433761945220637e-12)


class Grid:
    """Square cells in metres, numbered row by row; `widest` is the largest distance of two, in cell sides."""

    def __init__(self, given: Any) -> None:
        keys(given, "at cell columns crs origin rows", "grid")
        self.columns, self.rows = (whole(given[key], 2, MOST_CELLS // 2, key) for key in ("columns", "rows"))
        self.widest = hypot(self.columns - 1, self.rows - 1)
        self.cell, self.crs = given["cell"], text(given.get("crs", "local"))
        self.at, self.origin = given.get("at"), given.get("origin", (0.0, 0.0))
        need(self.columns * self.rows <= MOST_CELLS and number(self.cell) and self.cell > 0, "grid")
        pairs = [given[key] for key in ("at", "origin") if key in given]
        need(all(isinstance(pair, list) and len(pair) == 2 and all(map(number, pair)) for pair in pairs), "grid")

    def cell_of(self, given: Mapping[str, Any], last: int | None) -> int | None:
        """The cell of a position: the last one while the device is near its middle; None if it is no position."""
        try:
            metres = self._metres(given)
        except (KeyError, TypeError, ValueError, OverflowError):
            return None
        if not all(map(isfinite, metres)):
            return None
        across, up = ((each - start) / self.cell for each, start in zip(metres, self.origin))
        if last is not None:
            row, column = divmod(last, self.columns)
            if abs(across - column - 0.5) <= KEPT and abs(up - row - 0.5) <= KEPT:
                return last
        return self.nearest(floor(up), floor(across))

    @property
    def written(self) -> str:
        """All its numbers; those in metres or degrees as their bits."""
        metres = [bits_of(each) for each in (*(self.at or ()), *self.origin, self.cell)]
        return " ".join([self.crs, *metres, str(self.columns), str(self.rows)])

    def nearest(self, row: int, column: int) -> int:
        """The cell there, or the nearest one inside."""
        return min(max(row, 0), self.rows - 1) * self.columns + min(max(column, 0), self.columns - 1)

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

    def _metres(self, given: Mapping[str, Any]) -> tuple[float, float]:
        """Of latitude and longitude where they can be projected, around `at` or in a UTM zone."""
        zone = re.fullmatch(r"EPSG:32([67])(0[1-9]|[1-5][0-9]|60)", self.crs)
        if "latitude" not in given or not (self.at or zone):
            return float(given["x"]), float(given["y"])
        latitude, longitude = float(given["latitude"]), float(given["longitude"])
        if zone is None or self.at:
            return _mercator(self.at[0], self.at[1], 1.0, latitude, longitude)
        across, up = _mercator(0.0, 6.0 * int(zone[2]) - 183, 0.9996, latitude, longitude)
        return 5e5 + across, (1e7 if zone[1] == "7" else 0.0) + up


class Move:
    """A round that displaces the cells of a grid, all alike; a cell side costs `rate`. It is its own table."""

    def __init__(self, given: Any, grid: Any) -> None:
        keys(given, "rate", "rate")
        self.rate, self._grid, self.tables = given["rate"], grid, [self]
        need(number(self.rate) and 0.05 <= self.rate <= 20, "rate")

    @cached_property
    def _cuts(self) -> list[int]:
        columns, rows = self._grid.columns, self._grid.rows
        bound = 1 + 2 * 1.4142135623730951 / self.rate
        bits = 62 - int(bound * bound + 1).bit_length()
        reach = ceil(bits / _INVERSE_LN2 / self.rate) + 1
        law = [[0] * columns for _ in range(rows)]  # what is beyond the grid's size is added to the outermost
        for up in range(reach + 1):
            for across in range(reach + 1):
                weight = _weight(self.rate * sqrt(up * up + across * across), bits)
                law[min(up, rows - 1)][min(across, columns - 1)] += weight
        flat = [law[abs(up)][abs(across)] for up in range(1 - rows, rows) for across in range(1 - columns, columns)]
        total, share = sum(flat), WORD - ANYWHERE * columns * rows
        return [running * share // total for running in accumulate(flat)]

    def digest(self) -> str:
        return digest([self._cuts])

    def one(self, cell: int, draws: Draws) -> int:
        columns, rows = self._grid.columns, self._grid.rows
        word, other = draws.longs(2)
        drawn = bisect_right(self._cuts, word)
        if drawn == len(self._cuts):
            return below(columns * rows, other)
        up, across = divmod(drawn, 2 * columns - 1)
        return int(self._grid.nearest(cell // columns + up - (rows - 1), cell % columns + across - (columns - 1)))


def _weight(x: float, bits: int) -> int:
    """floor(e^-x 2^bits)."""
    n = floor(x * _INVERSE_LN2)
    rest = (x - n * 0.6931471803691238) - n * 1.9082149292705877e-10  # the logarithm of 2, in two parts
    total = 0.0
    for coefficient in reversed(_COEFFICIENTS):
        total = total * rest + coefficient
    return floor(total * 2.0 ** (bits - n))


def _mercator(start: float, meridian: float, scale: float, latitude: float, longitude: float) -> tuple[float, float]:
    """The transverse Mercator projection of WGS 84, by Krüger's series to n^4."""
    away = radians((longitude - meridian + 540) % 360 - 180)
    sines = [sin(radians(each)) for each in (latitude, start)]
    t, begin = (sinh(atanh(sine) - _ECCENTRICITY * atanh(_ECCENTRICITY * sine)) for sine in sines)
    xi, eta, begin = atan2(t, cos(away)), atanh(sin(away) / sqrt(1 + t * t)), atan(begin)
    up, across = xi - begin, eta
    for j, alpha in zip((2, 4, 6, 8), _ALPHA):
        up += alpha * (sin(j * xi) * cosh(j * eta) - sin(j * begin))
        across += alpha * cos(j * xi) * sinh(j * eta)
    return scale * _MERIDIAN * across, scale * _MERIDIAN * up
