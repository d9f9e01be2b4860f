"""The tables with a row for each value, made column by column: of values, of groups and of flows.

They can have millions of rows, so each is made in parts of a limited number of rows, in
which a column that is the same in all of them takes no room.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import product
from typing import Any

from analytics.estimation.consistent_shares import shortened
from analytics.estimation.estimates import Estimates
from analytics.estimation.estimates import product as times
from analytics.mobility.model import (
    PARTS,
    AskedAttribute,
    AttributeReport,
    Changes,
    MobilityReport,
    Quantities,
    Shares,
    WindowReport,
    ends_of,
    measured,
)
from analytics.mobility.output.part import SEVERAL, Part, Types

Columns = dict[str, Any]  # arrays of one length; None: null in every row
PART_ROWS = 32_768
"""The most rows of a part of a table."""
WINDOW: dict[str, type] = {"first": int, "last": int, "begin": datetime, "end": datetime, "kind": str}
ATTRIBUTE: dict[str, type] = {"attribute": str, "role": str, "counted": str}


def _quantity(name: str) -> dict[str, type]:
    return dict.fromkeys([name if part == "value" else f"{name}_{part}" for part in PARTS], float)


def _change(name: str) -> dict[str, type]:
    return {**_quantity(name), f"{name}_against": str, f"{name}_first": int, f"{name}_last": int}


SHARES = {
    **WINDOW,
    **ATTRIBUTE,
    "value": str,
    **_quantity("share"),
    **dict.fromkeys(["consistent", "consistent_low", "consistent_high"], float),
    **_quantity("people"),
    **_quantity("nowcast"),
    **_change("change"),
    **_change("baseline"),
    "truth": float,
}
CROSSES = {
    **WINDOW,
    **ATTRIBUTE,
    **dict.fromkeys(["row_attribute", "row", "column_attribute", "column"], str),
    "group": bool,
    **_quantity("share"),
    **_quantity("adjusted"),
    **dict.fromkeys(["consistent", "consistent_low", "consistent_high"], float),
    **_quantity("people"),
    "truth": float,
}
SIZES = {**WINDOW, **ATTRIBUTE, "size": str, **_quantity("share"), **_quantity("mean_size")}
TRIPS = {**WINDOW, **ATTRIBUTE, "area": str, **_quantity("began"), **_quantity("ended")}
FLOWS = {**WINDOW, **ATTRIBUTE, "origin": str, "destination": str, **_quantity("people")}


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
    pairs = {place: both for place, both in enumerate(map(ends_of, asked.values)) if both}
    people = _parts("people", shortened(part.values.people(window.visitors).estimates[list(pairs)]))
    origins, destinations = zip(*pairs.values(), strict=True) if pairs else ((), ())
    return {"origin": origins, "destination": destinations, **people}


def of_trips(window: WindowReport, asked: AskedAttribute, part: AttributeReport) -> Columns | None:
    """People whose transition began, and ended, in each place; None if there are no transitions, or no answers."""
    if part.trips is None or window.visitors is None:
        return None
    columns: Columns = {"area": asked.places}
    for name, shares in (("began", part.trips.began), ("ended", part.trips.ended)):
        columns |= _parts(name, shortened(times(shares.estimates, measured(window.visitors))))
    return columns


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


def by_value(report: MobilityReport, types: Types, cells: Cells) -> Iterator[Part]:
    """The rows of each window and attribute, in parts; first a part that has columns and no rows."""
    yield Part.without_rows(types)
    asked = {attribute.name: attribute for attribute in report.attributes}
    for window in report.windows:
        header = {name: getattr(window, name) for name in WINDOW}
        for part in window.attributes:
            found = cells(window, asked[part.name], part)
            if found is not None:
                named = {"attribute": part.name, "role": asked[part.name].role, "counted": part.counted}
                given = {**header, **named, **found}
                rows = max(len(each) for each in found.values() if isinstance(each, SEVERAL))
                for first in range(0, rows, PART_ROWS):
                    some = slice(first, first + PART_ROWS)
                    cut = {name: each[some] if isinstance(each, SEVERAL) else each for name, each in given.items()}
                    yield Part.of(types, min(rows - first, PART_ROWS), cut)
