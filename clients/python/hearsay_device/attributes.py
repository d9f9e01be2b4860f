"""What the app gives values of (docs/device-protocol.md, "Values"): lists, ranges, and positions on a grid."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from math import atan, atan2, atanh, cos, cosh, floor, hypot, isfinite, nan, radians, sin, sinh, sqrt
from numbers import Real
from typing import Any

from hearsay_device.draws import bits_of
from hearsay_device.errors import keys, listed, need, not_terms, number, sum_to_1, text, whole

ATTRIBUTE = "geo geo_inf grid mechanism name other parameter prior range share values"
MAX_VALUES = 1 << 16
MOST_VALUES = 1_000_000  # of answers with fresh hashes
KEPT = 0.75  # cell sides from the middle of its last cell within which a device stays in it
MERIDIAN, ECCENTRICITY = 6367449.145823415, 0.08181919084262149  # of WGS 84, and Krüger's series for it
ALPHA = (0.0008377318206303529, 7.608527714248998e-7, 1.1976380015605232e-9, 2.4433761945220637e-12)


class Attribute:
    """`span` are the first numbers of the values of a range; `rates`, what a cell side may cost, once and for ever."""

    def __init__(self, given: Any, solution: str, version: int) -> None:
        several = "several" if version < 3 else "multi_select"
        keys(given, f"{ATTRIBUTE} {several}", "attribute")
        self.name = text(given["name"], "[a-z][a-z0-9_]{0,62}", "name")
        self.grid = Grid(given["grid"]) if "grid" in given else None
        self.values, self.span = _listed(given, self.grid)
        self.places = {value: place for place, value in enumerate(self.values)}
        need(len(self.places) == len(self.values) >= 2, "values")
        self.other = given.get("other")
        need("other" not in given or self.other in self.places, "other")
        self.rates = [_rate(given[key], self.grid, version) if key in given else None for key in ("geo", "geo_inf")]
        self.placed = self.rates != [None, None]
        need(not self.placed or solution == "smp", "geo")
        self.several = whole(given[several], 2, len(self.values) - 1, several) if several in given else 1
        need(self.several == 1 or (solution == "smp" and not (self.grid or self.span)), several)
        self.prior = None
        need(("prior" in given) == (solution == "rs+rfd"), "prior")
        if "prior" in given:
            need(given["prior"].keys() == self.places.keys(), "prior")
            self.prior = sum_to_1([given["prior"][value] for value in self.values], "prior")

    @cached_property
    def sorted_values(self) -> list[str]:
        return sorted(self.values, key=str.encode)

    def set_of(self, given: Any) -> tuple[set[int], bool]:
        """The places of some values, and whether all are listed: others are `other`, or left out.

        Any iterable but a text, whose letters are no values, or a mapping.
        """
        is_set = isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping))
        found = {self.place(each, None) for each in (given if is_set else [given])}
        others = {self.places.get(self.other)} if None in found else set()
        return {place for place in found | others if place is not None}, None not in found

    def place(self, given: Any, last: int | None) -> int | None:
        """The place of a value in the survey's list, or None; never an error. `last`: the cell of a grid it was in."""
        if self.grid is not None and isinstance(given, Mapping):
            return self.grid.cell_of(given, last)
        if isinstance(given, bool):
            given = "true" if given else "false"
        is_number = isinstance(given, Real)
        number = float(min(max(given, -1e300), 1e300)) if is_number else nan
        if number.is_integer() and abs(number) <= 1 << 53:
            given = str(int(number))
        if isinstance(given, str) and given in self.places:
            return self.places[given]
        if isinstance(given, str) and re.fullmatch("-?[0-9]{1,15}", given):
            number = float(given)
        if self.span is None or number != number:
            return None
        return (floor(min(max(number, self.span.start), self.span.stop - 1)) - self.span.start) // self.span.step


class Grid:
    """Square cells in metres, numbered row by row."""

    def __init__(self, given: Any) -> None:
        keys(given, "at cell columns crs origin rows", "grid")
        self.columns, self.rows = (whole(given[key], 2, MAX_VALUES // 2, key) for key in ("columns", "rows"))
        self.cell, self.crs = given["cell"], text(given.get("crs", "local"))
        self.at, self.origin = given.get("at"), given.get("origin", (0.0, 0.0))
        need(self.columns * self.rows <= MAX_VALUES and number(self.cell) and self.cell > 0, "grid")
        pairs = [given[key] for key in ("at", "origin") if key in given]
        need(all(isinstance(pair, list) and len(pair) == 2 and all(map(number, pair)) for pair in pairs), "grid")

    @property
    def written(self) -> str:
        """All its numbers; those in metres or degrees as their bits."""
        metres = [bits_of(each) for each in (*(self.at or ()), *self.origin, self.cell)]
        return " ".join([self.crs, *metres, str(self.columns), str(self.rows)])

    def cell_of(self, given: Mapping[str, Any], last: int | None) -> int | None:
        """The cell of a position: the last one while the device is near its middle; None if it is no position."""
        try:
            metres = self._metres(given)
        except (KeyError, TypeError, ValueError, OverflowError):
            return None
        if not all(map(isfinite, metres)):
            return None
        steps = ((each - start) / self.cell for each, start in zip(metres, self.origin))
        across, up = (min(max(each, 0), size) for each, size in zip(steps, (self.columns, self.rows)))
        if last is not None:
            row, column = divmod(last, self.columns)
            if abs(across - column - 0.5) <= KEPT and abs(up - row - 0.5) <= KEPT:
                return last
        return self.nearest(up, across)

    def nearest(self, row: float, column: float) -> int:
        """The cell there, or the nearest one inside."""
        row, column = min(max(row, 0), self.rows - 1), min(max(column, 0), self.columns - 1)
        return floor(row) * self.columns + floor(column)

    def apart(self, metres: float) -> float:
        """How far apart, in cell sides, the cells of two positions can be that are that far apart."""
        far, most, j = metres / self.cell, 0.0, self.rows - 1
        for i in (i for i in range(self.columns) if i - 2 * KEPT <= far):
            while hypot(max(0, i - 2 * KEPT), max(0, j - 2 * KEPT)) > far:
                j -= 1
            most = max(most, hypot(i, j))
        return most

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


def _mercator(start: float, meridian: float, scale: float, latitude: float, longitude: float) -> tuple[float, float]:
    """The transverse Mercator projection of WGS 84, by Krüger's series to n^4."""
    away = radians((longitude - meridian + 540) % 360 - 180)
    sines = [sin(radians(each)) for each in (latitude, start)]
    t, begin = (sinh(atanh(sine) - ECCENTRICITY * atanh(ECCENTRICITY * sine)) for sine in sines)
    xi, eta, begin = atan2(t, cos(away)), atanh(sin(away) / sqrt(1 + t * t)), atan(begin)
    up, across = xi - begin, eta
    for j, alpha in zip((2, 4, 6, 8), ALPHA):
        up += alpha * (sin(j * xi) * cosh(j * eta) - sin(j * begin))
        across += alpha * cos(j * xi) * sinh(j * eta)
    return scale * MERIDIAN * across, scale * MERIDIAN * up


def _listed(given: Any, grid: Grid | None) -> tuple[list[str], range | None]:
    """The values, and of a range the first number of each. Those of a long range are not in the terms."""
    if grid is not None:
        need("values" not in given and "range" not in given, "values")
        return [f"x{column}y{row}" for row in range(grid.rows) for column in range(grid.columns)], None
    values = [text(value) for value in listed(given["values"], MAX_VALUES, "values")] if "values" in given else []
    if "range" not in given:
        return values, None
    keys(given["range"], "first last step", "range")
    first = whole(given["range"].get("first", 0), -(1 << 53), 1 << 53, "range")
    last = whole(given["range"]["last"], first, 1 << 53, "range")
    step = whole(given["range"].get("step", 1), 1, 1 << 53, "range")
    span = range(first, last + 1, step)
    need(len(values) == len(span) if values else MAX_VALUES < len(span) <= MOST_VALUES, "range")
    return values or [str(each) if step == 1 else f"{each}-{min(each + step, last + 1) - 1}" for each in span], span


def _rate(given: Any, grid: Grid | None, version: int) -> float:
    """In version 1, distances were those between the middles of cells."""
    keys(given, "level radius", "geo")
    level, radius = given["level"], given["radius"]
    if grid is None or not all(number(each) and each > 0 for each in (level, radius)):
        not_terms("geo")
    return float(level * grid.cell / radius if version == 1 else level / grid.apart(radius))
