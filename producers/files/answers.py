"""From a column of text to positions in a survey's list of values."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from protocols.arrays import Floats, Mask, Whole
from protocols.errors import ReplayError
from protocols.respondent import UNKNOWN
from protocols.survey import Attribute, Grid, origin_and_destination

QUARTERS = 4  # of a cell side: with them it is known whether a position is within a quarter of another cell
PARTS = QUARTERS * QUARTERS  # of a cell, from west to east and then from south to north


def places(column: pa.Array, attribute: Attribute) -> NDArray[np.int32]:
    """The position of each cell's value, or UNKNOWN. In an ordered range, a number has the position of its step.

    Numbers beyond the range have that of the nearest end; decimals that of the whole number below.

    >>> ages = Attribute.model_validate({"name": "age", "range": {"first": 10, "last": 39, "step": 10}})
    >>> places(pa.array(["10-19", "25", "29.9", "40", "", "young"]), ages).tolist()
    [0, 1, 1, 2, -1, -1]
    """
    found = named(column, attribute.values)
    unnamed = np.flatnonzero(found == UNKNOWN)
    if attribute.range is not None and len(unnamed):
        texts = column.take(unnamed)
        written = np.asarray(pc.match_substring_regex(texts, r"^-?\d{1,15}(\.\d{1,20})?$"))
        numbers = np.floor(texts.filter(pa.array(written)).cast(pa.float64()).to_numpy()).astype(np.int64)
        nearest = numbers.clip(attribute.range.first, attribute.range.last)
        found[unnamed[written]] = (nearest - attribute.range.first) // attribute.range.step
    return found


def set_places(column: pa.Array, attribute: Attribute) -> tuple[Mask, Whole, Whole]:
    """Whether all values of each cell are listed; then a row and a position for each value of a cell, rows ascending.

    Values of a cell are separated by semicolons. Those that are not listed are `other`, or left out.

    >>> on = Attribute(name="on", values=("mqtt", "hue", "knx"), several=2)
    >>> [part.tolist() for part in set_places(pa.array(["mqtt; hue", "", "knx;smoke;"]), on)]
    [[True, True, False], [0, 0, 2], [0, 1, 2]]
    """
    cells = pc.split_pattern(column, ";")
    texts, rows = pc.utf8_trim_whitespace(pc.list_flatten(cells)), np.asarray(pc.list_parent_indices(cells))
    written = np.asarray(pc.not_equal(texts, ""))
    rows, found = rows[written], places(texts.filter(pa.array(written)), attribute)
    complete = np.ones(len(column), dtype=np.bool_)
    complete[rows[found == UNKNOWN]] = False
    if attribute.other is not None:
        found[found == UNKNOWN] = attribute.values.index(attribute.other)
    return complete, rows[found != UNKNOWN], found[found != UNKNOWN]


def named(column: pa.Array, names: Sequence[str]) -> NDArray[np.int32]:
    """The position of each cell among these names, or UNKNOWN."""
    return np.array(pc.fill_null(pc.index_in(column, value_set=pa.array(names)), UNKNOWN), dtype=np.int32)


def origins_and_destinations(attribute: Attribute) -> tuple[list[tuple[str, str]], list[str]]:
    """The two places of each transition that an attribute lists, and the names of all places, each once."""
    pairs = [origin_and_destination(value) for value in attribute.values]
    return pairs, list(dict.fromkeys(place for pair in pairs for place in pair))


def cells(first: pa.Array, second: pa.Array, attribute: Attribute, metres: bool) -> NDArray[np.int32]:
    """The cell of each position, or UNKNOWN: where it is no position, or outside the grid.

    The columns are latitude and longitude (WGS 84), or metres east and north in the system of the attribute's grid.

    >>> grid = {"at": [47.0, 6.0], "cell": "500m", "columns": 3, "rows": 2}
    >>> place = Attribute.model_validate({"name": "place", "grid": grid, "geo": {"level": 1, "radius": "400m"}})
    >>> cells(pa.array(["47.001", "47.008", "48", ""]), pa.array(["6.001", "6.012", "6", "6"]), place, False).tolist()
    [0, 4, -1, -1]
    """
    grid, x, y, known = _metres(first, second, attribute, metres)
    return np.where(known & (grid.outside(x, y) == 0), grid.cells_at(x, y), UNKNOWN).astype(np.int32)


def parts(first: pa.Array, second: pa.Array, attribute: Attribute, metres: bool) -> NDArray[np.int32]:
    """The part of the grid's cells that each position is in, or UNKNOWN where it is no position.

    It is `(row * columns + column) * PARTS + part`. Positions outside the grid are in the nearest part.

    >>> grid = {"at": [47.0, 6.0], "cell": "500m", "columns": 3, "rows": 2}
    >>> place = Attribute.model_validate({"name": "place", "grid": grid, "geo": {"level": 1, "radius": "400m"}})
    >>> parts(pa.array(["10", "300", "740", "-9"]), pa.array(["260", "10", "740", "10"]), place, True).tolist()
    [8, 2, 69, 0]
    """
    grid, x, y, known = _metres(first, second, attribute, metres)
    quarters = [
        np.floor((at - start) / grid.cell * QUARTERS).clip(0, size * QUARTERS - 1)
        for at, start, size in zip((x, y), grid.origin, (grid.columns, grid.rows), strict=True)
    ]
    (column, across), (row, up) = (np.divmod(each, QUARTERS) for each in quarters)
    numbers = (row * grid.columns + column) * PARTS + up * QUARTERS + across
    return np.where(known, numbers, UNKNOWN).astype(np.int32)


def _metres(first: pa.Array, second: pa.Array, attribute: Attribute, metres: bool) -> tuple[Grid, Floats, Floats, Mask]:
    """The grid, where each position is in its metres, and whether it is one; if not, it is at 0, 0."""
    grid = attribute.grid
    if grid is None:
        raise ReplayError(f"attribute {attribute.name!r} has no grid", "map one column to it, or declare a grid")
    one, other = (_numbers(column) for column in (first, second))
    if metres:
        x, y = one, other
    elif grid.projection is None:
        raise ReplayError(
            f"latitude and longitude cannot be turned into metres of {grid.crs}",
            "give metres, with --metres; or use a grid with crs: local or a UTM zone",
        )
    else:
        possible = (np.abs(one) <= 90) & (np.abs(other) <= 180)
        x, y = grid.projection.metres(np.where(possible, one, 0.0), np.where(possible, other, 0.0))
        x = np.where(possible, x, np.nan)
    known = np.isfinite(x) & np.isfinite(y)
    return grid, np.where(known, x, 0.0), np.where(known, y, 0.0), known


def _numbers(column: pa.Array) -> Floats:
    """A column of text as numbers; NaN where it has none."""
    written = pc.match_substring_regex(column, r"^[+-]?\d{1,12}(\.\d{1,20})?$")
    found = pc.if_else(written, column, None).cast(pa.float64())
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.float64)
