"""Grids: places as the cells of a rectangle in metres, and how much of them is protected."""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from hearsay_device.draws import bits_of
from protocols.arrays.aliases import Floats, Whole
from protocols.mechanisms.places.area import Area
from protocols.mechanisms.places.projection import TransverseMercator, known_projection
from protocols.survey.names import Strict

RUN = r"^x(0|[1-9][0-9]{0,4})(-[1-9][0-9]{0,4})?y(0|[1-9][0-9]{0,4})$"


def numbers_of(runs: Iterable[str], columns: int, rows: int) -> tuple[int, ...]:
    """The numbers of all cells, row * columns + column, ascending. Raises ValueError.

    >>> numbers_of(["x1-3y0", "x0y1"], 5, 2)
    (1, 2, 3, 5)
    """
    found: list[int] = []
    for run in runs:
        across, _, up = run.removeprefix("x").partition("y")
        ends = [int(end) for end in across.split("-")]
        first, last, row = ends[0], ends[-1], int(up)
        if not (first <= last < columns and row < rows):
            raise ValueError(f"{run!r} is not on a grid of {columns} x {rows} cells")
        found += range(row * columns + first, row * columns + last + 1)
    if len(set(found)) < len(found):
        raise ValueError("names a cell twice; name each once")
    return tuple(sorted(found))


def runs_of(numbers: Sequence[int], columns: int) -> tuple[str, ...]:
    """The same cells, in as few words as possible.

    >>> runs_of((1, 2, 3, 5), 5)
    ('x1-3y0', 'x0y1')
    """
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1 and number % columns:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return tuple(
        f"x{first % columns}{f'-{last % columns}' if last > first else ''}y{first // columns}" for first, last in runs
    )


MOST_CELLS = 1 << 16
LOCAL = "local"
_LENGTH = r"^[0-9]{1,9}(\.[0-9]{1,6})?(m|km)?$"


def parse_length(given: Any) -> Any:
    """Metres, from a number or from text such as 500m or 1.5km.

    >>> parse_length("1.5km"), parse_length(400)
    (1500.0, 400)
    """
    if isinstance(given, str):
        found = re.fullmatch(_LENGTH, given)
        if found is None:
            raise ValueError("not a length; write metres, such as 500m or 1.5km")
        unit = found[2] or ""
        return float(given.removesuffix(unit)) * (1000 if unit == "km" else 1)
    return given


Length = Annotated[
    float,
    Field(ge=0.1, le=1e7),
    BeforeValidator(parse_length),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": _LENGTH}, {"type": "number", "minimum": 0.1}]}),
]


class Reach(Strict):
    """How well places are protected: two positions within `radius` are told apart by `level` at most."""

    level: float = Field(ge=0.001, le=100)
    radius: Length


class Grid(Strict):
    """A rectangle of square cells, in metres."""

    crs: str = Field(LOCAL, pattern=r"^[A-Za-z0-9:._ -]{1,60}$")
    at: tuple[float, float] | None = None
    origin: tuple[float, float] = (0.0, 0.0)
    cell: Length
    columns: int = Field(ge=2, le=MOST_CELLS // 2)
    rows: int = Field(ge=2, le=MOST_CELLS // 2)
    inside: tuple[Annotated[str, Field(pattern=RUN)], ...] | Literal["areas"] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.columns * self.rows > MOST_CELLS:
            raise ValueError(
                f"columns: {self.columns} x {self.rows} are {self.columns * self.rows:,} cells; at most {MOST_CELLS:,}:"
                " choose larger cells"
            )
        if (self.crs == LOCAL) != (self.at is not None):
            raise ValueError("at: give the latitude and longitude of the point 0, 0 for `crs: local`, and only there")
        if self.at is not None and not (-80 <= self.at[0] <= 84 and -180 <= self.at[1] <= 180):
            raise ValueError(f"at: {list(self.at)} is no latitude (-80 to 84) and longitude (-180 to 180)")
        if max(map(abs, self.origin)) > 1e8:
            raise ValueError(f"origin: {list(self.origin)} is not on Earth; write metres")
        if isinstance(self.inside, tuple):
            try:
                known = len(numbers_of(self.inside, self.columns, self.rows))
            except ValueError as error:
                raise ValueError(f"inside: {error}") from None
            if known < 2:
                raise ValueError("inside: name at least 2 cells, or leave it out")
        return self

    @cached_property
    def area(self) -> Area:
        """The cells inside; all, as long as the file with the areas was not read."""
        if not isinstance(self.inside, tuple):
            return Area(self.columns, self.rows)
        return Area(self.columns, self.rows, numbers_of(self.inside, self.columns, self.rows))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The cells inside, row by row from the south-west corner.

        >>> Grid(at=(47, 6), cell="500m", columns=2, rows=2).names
        ('x0y0', 'x1y0', 'x0y1', 'x1y1')
        """
        return tuple(f"x{column}y{row}" for row, column in self.area.positions.tolist())

    @property
    def written(self) -> str:
        """All its numbers, for the ids of questions; those in metres or degrees as the digits of their doubles."""
        metres = [bits_of(number) for number in (*(self.at or ()), *self.origin, self.cell)]
        return " ".join([self.crs, *metres, str(self.columns), str(self.rows)])

    @cached_property
    def projection(self) -> TransverseMercator | None:
        """From latitude and longitude to the grid's metres; None where only its owner knows how."""
        return TransverseMercator(*self.at) if self.at is not None else known_projection(self.crs)

    def cells_at(self, x: Floats, y: Floats) -> Whole:
        """The cell of each point in metres, by its place among those inside; of points outside the nearest cell.

        >>> grid = Grid(at=(47, 6), cell="500m", columns=3, rows=2)
        >>> grid.cells_at(np.array([0.0, 700.0, 9e9]), np.array([-5.0, 501.0, 999.0])).tolist()
        [0, 4, 5]
        >>> some = Grid(at=(47, 6), cell="500m", columns=3, rows=2, inside=("x1y0", "x2y1"))
        >>> some.cells_at(np.array([0.0, 1400.0]), np.array([0.0, 999.0])).tolist()
        [0, 1]
        """
        return self.area.nearest(self._numbers(x, y))

    def rate(self, reach: Reach) -> float:
        """What a cell side may cost, so that no two positions within the radius lose more than the level.

        >>> grid = Grid(at=(47, 6), cell="100m", columns=60, rows=45)
        >>> round(grid.rate(Reach(level=1.1, radius="400m")), 4)
        0.1886
        """
        return reach.level / self.area.apart(reach.radius / self.cell)

    def outside(self, x: Floats, y: Floats) -> Whole:
        """1 where a point in metres is outside the grid, or in a cell that is not inside."""
        column, row = self._steps(x, y)
        off = (column < 0) | (column >= self.columns) | (row < 0) | (row >= self.rows)
        if self.area.inside is not None:
            off |= ~np.isin(self._numbers(x, y), self.area.inside)
        return np.asarray(off).astype(np.int64)

    def corners(self) -> tuple[Floats, Floats]:
        """Where its lines are: metres east of the sides of all columns, and north of those of all rows."""
        east, north = (np.arange(count + 1) * self.cell for count in (self.columns, self.rows))
        return np.asarray(self.origin[0] + east), np.asarray(self.origin[1] + north)

    @property
    def diameter(self) -> float:
        """Metres between the centres of the two cells that are furthest apart."""
        return self.cell * self.area.widest

    def _numbers(self, x: Floats, y: Floats) -> Whole:
        """row * columns + column of each point; of points outside the grid those of the nearest cell."""
        column, row = self._steps(x, y)
        inside = [np.floor(part).clip(0, most - 1) for part, most in ((column, self.columns), (row, self.rows))]
        return np.asarray(inside[1] * self.columns + inside[0]).astype(np.int64)

    def _steps(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        return (x - self.origin[0]) / self.cell, (y - self.origin[1]) / self.cell
