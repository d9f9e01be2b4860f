"""The tables with a row for each value, made column by column: of values, of groups and of flows.

They can have millions of rows, so each is made in parts of a limited number of rows, in
which a column that is the same in all of them takes no room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from analytics.estimation.consistent_shares import shortened
from analytics.estimation.estimates import Estimates
from analytics.mobility.model import (
    PARTS,
    AskedAttribute,
    AttributeReport,
    Changes,
    MobilityReport,
    Quantities,
    Shares,
    WindowReport,
)


class Part(NamedTuple):
    """Some rows of a table: of each column an array, or the entry that all rows have."""

    rows: int
    columns: Mapping[str, pa.Array | pa.Scalar]

    @staticmethod
    def without_rows(schema: pa.Schema) -> Part:
        return Part(0, {field.name: pa.array([], field.type) for field in schema})

    @property
    def schema(self) -> pa.Schema:
        return pa.schema({name: column.type for name, column in self.columns.items()})

    def table(self) -> pa.Table:
        """The rows with all columns.

        >>> Part(2, {"a": pa.array([1, 2]), "b": pa.scalar("x")}).table().to_pylist()
        [{'a': 1, 'b': 'x'}, {'a': 2, 'b': 'x'}]
        """
        columns = self.columns.values()
        arrays = [pa.repeat(c, self.rows) if isinstance(c, pa.Scalar) else c for c in columns]
        return pa.table(arrays, schema=self.schema)


ARROW = ">"  # between origin and destination in the values of a transition attribute


Columns = dict[str, Any]  # arrays of one length; None: null in every row
_NUMBER, _WHOLE, _TEXT = pa.float64(), pa.int64(), pa.string()
_TIME = pa.timestamp("us", tz="UTC")
PART_ROWS = 32_768
"""The most rows of a part of a table."""
WINDOW = {"first": _WHOLE, "last": _WHOLE, "begin": _TIME, "end": _TIME, "kind": _TEXT}
ATTRIBUTE = {"attribute": _TEXT, "role": _TEXT, "counted": _TEXT}


def _quantity(name: str) -> dict[str, pa.DataType]:
    return dict.fromkeys([name if part == "value" else f"{name}_{part}" for part in PARTS], _NUMBER)


def _change(name: str) -> dict[str, pa.DataType]:
    return {**_quantity(name), f"{name}_against": _TEXT, f"{name}_first": _WHOLE, f"{name}_last": _WHOLE}


SHARES = pa.schema(
    WINDOW
    | ATTRIBUTE
    | {
        "value": _TEXT,
        **_quantity("share"),
        **dict.fromkeys(["consistent", "consistent_low", "consistent_high"], _NUMBER),
        **_quantity("people"),
        **_quantity("nowcast"),
        **_change("change"),
        **_change("baseline"),
        "truth": _NUMBER,
    }
)
CROSSES = pa.schema(
    WINDOW
    | ATTRIBUTE
    | {
        **dict.fromkeys(["row_attribute", "row", "column_attribute", "column"], _TEXT),
        "group": pa.bool_(),
        **_quantity("share"),
        **_quantity("adjusted"),
        **dict.fromkeys(["consistent", "consistent_low", "consistent_high"], _NUMBER),
        **_quantity("people"),
        "truth": _NUMBER,
    }
)
SIZES = pa.schema(WINDOW | ATTRIBUTE | {"size": _TEXT, **_quantity("share"), **_quantity("mean_size")})
FLOWS = pa.schema(WINDOW | ATTRIBUTE | {"origin": _TEXT, "destination": _TEXT, **_quantity("people")})


def of_pairs(window: WindowReport, asked: AskedAttribute, part: AttributeReport, group: bool) -> Columns | None:
    """Each pair of values of a cross, or each pair of which one is, or both are, a group."""
    shares = part.groups if group else part.values
    columns = of_shares(window, (), shares) if asked.axes else None
    if columns is None or shares is None:
        return None
    first, second = asked.axes
    parts = [(first.values, second.values)]
    if group:
        parts = [(first.groups, second.values), (first.values, second.groups), (first.groups, second.groups)]
    pairs = [pair for part in parts for pair in product(*part)]
    named = {"row_attribute": first.name, "column_attribute": second.name, "group": group}
    return columns | named | {"row": [row for row, _ in pairs], "column": [column for _, column in pairs]}


def of_shares(window: WindowReport, names: Sequence[str], shares: Shares | None) -> Columns | None:
    """Shares of values, or of groups of values."""
    if shares is None or window.visitors is None:
        return None
    single = ("consistent", "consistent_low", "consistent_high", *_quantity("adjusted"), "truth")
    return {
        "value": names,
        **_parts("share", shares.share),
        **_shortened("people", shares.people(window.visitors)),
        **_parts("nowcast", shares.nowcast),
        **_changes("change", shares.change),
        **_changes("baseline", shares.baseline),
        **{name: getattr(shares, name) for name in single},
    }


def of_sizes(window: WindowReport, asked: AskedAttribute, part: AttributeReport) -> Columns | None:
    """How many devices have sets of each size; the mean is the same in every row. None if there are no sets."""
    if part.sizes is None or asked.several is None:
        return None
    mean = dict(zip(_quantity("mean_size"), (getattr(part.sizes.mean, each) for each in PARTS), strict=True))
    return {"size": size_names(asked.several), **_parts("share", part.sizes.share), **mean}


def size_names(several: int) -> list[str]:
    """What the sizes of sets are called.

    >>> size_names(2)
    ['0', '1', '2 or more']
    """
    return [*map(str, range(several)), f"{several} or more"]


def of_flows(window: WindowReport, asked: AskedAttribute, part: AttributeReport) -> Columns | None:
    """People from each origin to each destination; values that do not name both are left out.

    None if the attribute has another role, or no answers.
    """
    if asked.role != "transition" or part.values is None or window.visitors is None:
        return None
    pairs = [[place.strip() for place in value.split(ARROW)] for value in asked.values]
    places = [place for place, pair in enumerate(pairs) if len(pair) == 2]
    people = _parts("people", shortened(part.values.people(window.visitors).estimates[places]))
    return {"origin": [pairs[at][0] for at in places], "destination": [pairs[at][1] for at in places], **people}


def _parts(name: str, numbers: Quantities | Estimates | None) -> Columns:
    return {column: numbers and getattr(numbers, part) for column, part in zip(_quantity(name), PARTS, strict=True)}


def _shortened(name: str, numbers: Quantities) -> Columns:
    """The same of products and ratios: they have more digits than their errors carry."""
    return _parts(name, shortened(numbers.estimates))


def _changes(name: str, changes: Changes | None) -> Columns:
    if changes is None:
        return {}
    said = {f"{name}_against": changes.against, f"{name}_first": changes.first, f"{name}_last": changes.last}
    return {**_shortened(name, changes.percent), **said}


Cells = Callable[[WindowReport, AskedAttribute, AttributeReport], Columns | None]


def by_value(report: MobilityReport, schema: pa.Schema, cells: Cells) -> Iterator[Part]:
    """The rows of each window and attribute, in parts; first a part that has columns and no rows."""
    yield Part.without_rows(schema)
    asked = {attribute.name: attribute for attribute in report.attributes}
    for window in report.windows:
        header = {name: getattr(window, name) for name in WINDOW}
        for part in window.attributes:
            found = cells(window, asked[part.name], part)
            if found is not None:
                named = {"attribute": part.name, "role": asked[part.name].role, "counted": part.counted}
                given = {**header, **named, **found}
                rows = max(len(each) for each in found.values() if isinstance(each, list | tuple | np.ndarray))
                for first in range(0, rows, PART_ROWS):
                    places = range(first, min(rows, first + PART_ROWS))
                    yield Part(
                        len(places),
                        {field.name: _column(given.get(field.name), field.type, places) for field in schema},
                    )


def _column(entries: Any, kind: pa.DataType, places: range) -> pa.Array | pa.Scalar:
    """Some rows of a column: from an array, where NaN becomes null; from a sequence; or the entry of all rows."""
    if isinstance(entries, np.ndarray):
        return pa.array(entries[places.start : places.stop], kind, from_pandas=True)
    if isinstance(entries, (list, tuple)):
        return pa.array(entries[places.start : places.stop], kind)
    return pa.scalar(entries, kind)
