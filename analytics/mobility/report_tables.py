"""The report as flat tables, for spreadsheets and data frames; docs/results.md lists them.

Tables with a row for each value can have millions of rows. So they are made column by column, in parts of a limited
number of rows, in which a column that is the same in all of them takes no room.

What the columns mean, and in which unit they are (`columns.json`), is a table of its own, written beside them.
"""

from __future__ import annotations  # pyarrow is loaded when it is used, and not for a type

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from importlib import resources
from itertools import chain, product
from typing import Any

from analytics.columns import SEVERAL, Part, Types, flat, types_of
from analytics.estimation.consistent_shares import shortened
from analytics.estimation.estimates import Estimates
from analytics.estimation.estimates import product as times
from analytics.mobility.model import (
    PARTS,
    Amount,
    AskedAttribute,
    AttributeReport,
    Change,
    Dwell,
    Gaps,
    MobilityReport,
    Place,
    Quantities,
    Quantity,
    Shares,
    WindowReport,
    measured,
)
from protocols.arrays import lazy_arrow as pa
from protocols.survey import origin_and_destination

Columns = dict[str, Any]  # arrays of one length, or what stands in every row; None: null
Cells = Callable[[WindowReport, AskedAttribute, AttributeReport], Columns | None]
PART_ROWS = 32_768
"""The most rows of a part of a table."""
MEANINGS: Mapping[str, list[str]] = json.loads((resources.files(__package__) / "columns.json").read_text("utf-8"))
WINDOW: dict[str, Any] = {"first": int, "last": int, "begin": datetime, "end": datetime, "kind": str}
ATTRIBUTE: dict[str, Any] = {**WINDOW, "attribute": str, "role": str, "counted": str}
CONSISTENT = dict.fromkeys(["consistent", "consistent_low", "consistent_high"], float)
SHARES = types_of(
    ATTRIBUTE,
    {"value": str, "share": Quantity, **CONSISTENT, "people": Quantity, "nowcast": Quantity},
    {"change": Change, "baseline": Change, "truth": float},
)
CROSSES = types_of(
    ATTRIBUTE,
    dict.fromkeys(["row_attribute", "row", "column_attribute", "column"], str),
    {"group": bool, "share": Quantity, "adjusted": Quantity, **CONSISTENT, "people": Quantity, "truth": float},
)


def tables(report: MobilityReport) -> dict[str, pa.Table]:
    """All tables, by name."""
    return {name: pa.concat_tables([part.table() for part in parts]) for name, parts in tables_in_parts(report).items()}


def tables_in_parts(report: MobilityReport) -> dict[str, Iterator[Part]]:
    """The same, each table in parts that are made one after the other, and have `PART_ROWS` rows where it is long."""

    attributes = list(_attributes(report))

    def by_row(types: Types, rows: Iterable[Columns]) -> Iterator[Part]:
        listed = list(rows)
        return _parts(types, [{name: [row.get(name) for row in listed] for name in types}] if listed else [])

    def by_value(types: Types, cells: Cells) -> Iterator[Part]:
        made = ((header, cells(window, asked, part)) for header, window, asked, part in attributes)
        return _parts(types, (header | found for header, found in made if found is not None))

    places = (header | flat(one) for header, *_, part in attributes if part.ranking for one in part.ranking.places)
    amounts = (header | row for header, *_, part in attributes if part.amount for row in statistics(part.amount))
    return {
        "visitors": by_row(types_of(WindowReport), map(flat, report.windows)),
        "gaps": by_row(types_of(WINDOW, Gaps), (_header(w) | flat(gap) for w in report.windows for gap in w.gaps)),
        "values": by_value(SHARES, of_values),
        "groups": by_value(SHARES, of_groups),
        "rankings": by_row(types_of(ATTRIBUTE, Place), places),
        "dwell": by_row(
            types_of(ATTRIBUTE, Dwell), (header | flat(part.dwell) for header, *_, part in attributes if part.dwell)
        ),
        "sizes": by_value(types_of(ATTRIBUTE, {"size": str, "share": Quantity, "mean_size": Quantity}), of_sizes),
        "amounts": by_row(types_of(ATTRIBUTE, {"statistic": str, "number": Quantity}), amounts),
        "flows": by_value(types_of(ATTRIBUTE, {"origin": str, "destination": str, "people": Quantity}), of_flows),
        "trips": by_value(types_of(ATTRIBUTE, {"area": str, "began": Quantity, "ended": Quantity}), of_trips),
        "crosses": chain(*(by_value(CROSSES, partial(of_pairs, group=group)) for group in (False, True))),
    }


def of_shares(everybody: Quantity | None, names: Sequence[str], shares: Shares | None) -> Columns | None:
    """Shares of values, or of groups of values. Products and ratios have more digits than their errors carry.

    `everybody` is how many devices, or visits, shares are shares of.
    """
    if shares is None or everybody is None:
        return None
    found = flat(shares) | {"value": names} | _named("people", shortened(measured(shares.people(everybody))))
    for name, changes in (("change", shares.change), ("baseline", shares.baseline)):
        found |= {} if changes is None else _named(name, shortened(measured(changes.percent)))
    return found


def of_values(window: WindowReport, asked: AskedAttribute, part: AttributeReport) -> Columns | None:
    return of_shares(window.counted_by(part), asked.values, part.values)


def of_groups(window: WindowReport, asked: AskedAttribute, part: AttributeReport) -> Columns | None:
    return of_shares(window.counted_by(part), asked.groups, part.groups)


def of_pairs(window: WindowReport, asked: AskedAttribute, part: AttributeReport, group: bool) -> Columns | None:
    """Each pair of values of a cross, or each pair of which one is, or both are, a group."""
    everybody = window.counted_by(part)
    columns = of_shares(everybody, (), part.groups if group else part.values) if asked.axes else None
    if columns is None:
        return None
    first, second = asked.axes
    parts = [(first.values, second.values)]
    if group:
        parts = [(first.groups, second.values), (first.values, second.groups), (first.groups, second.groups)]
    pairs = [pair for part in parts for pair in product(*part)]
    named = {"row_attribute": first.name, "column_attribute": second.name, "group": group}
    return columns | named | {"row": [row for row, _ in pairs], "column": [column for _, column in pairs]}


def of_sizes(window: WindowReport, asked: AskedAttribute, part: AttributeReport) -> Columns | None:
    """How many devices have sets of each size; the mean is the same in every row. None if there are no sets."""
    if part.sizes is None or asked.several is None:
        return None
    names = [*map(str, range(asked.several)), f"{asked.several} or more"]
    return {"size": names, **_named("share", part.sizes.share), **_named("mean_size", part.sizes.mean)}


def statistics(amount: Amount) -> Iterator[Columns]:
    known = [("mean", amount.mean), ("sum", amount.sum), ("top", amount.top)]
    known += [(f"{q.at:g}", Quantity(value=q.value, error=None, low=q.low, high=q.high)) for q in amount.quantiles]
    return ({"statistic": name} | _named("number", number) for name, number in known if number)


def of_flows(window: WindowReport, asked: AskedAttribute, part: AttributeReport) -> Columns | None:
    """People from each origin to each destination; None if the attribute has another role, or no answers."""
    everybody = window.counted_by(part)
    if asked.role != "transition" or part.values is None or everybody is None:
        return None
    people = _named("people", shortened(measured(part.values.people(everybody))))
    origins, destinations = zip(*map(origin_and_destination, asked.values), strict=True)
    return {"origin": origins, "destination": destinations, **people}


def of_trips(window: WindowReport, asked: AskedAttribute, part: AttributeReport) -> Columns | None:
    """People whose transition began, and ended, in each place; None if there are no transitions, or no answers."""
    everybody = window.counted_by(part)
    if part.trips is None or everybody is None:
        return None
    columns: Columns = {"area": asked.places}
    for name, shares in (("began", part.trips.began), ("ended", part.trips.ended)):
        columns |= _named(name, shortened(times(measured(shares), measured(everybody))))
    return columns


def _named(name: str, numbers: Quantities | Estimates | Quantity) -> Columns:
    names = (name if part == "value" else f"{name}_{part}" for part in PARTS)
    return dict(zip(names, (getattr(numbers, part) for part in PARTS), strict=True))


def _header(window: WindowReport) -> Columns:
    return {name: getattr(window, name) for name in WINDOW}


def _attributes(report: MobilityReport) -> Iterator[tuple[Columns, WindowReport, AskedAttribute, AttributeReport]]:
    """The attributes of all windows, with what stands in all of their rows."""
    asked = {attribute.name: attribute for attribute in report.attributes}
    for window in report.windows:
        for part in window.attributes:
            named = {"attribute": part.name, "role": asked[part.name].role, "counted": part.counted}
            yield _header(window) | named, window, asked[part.name], part


def _parts(types: Types, made: Iterable[Columns]) -> Iterator[Part]:
    """The rows that were made, in parts; first a part that has columns and no rows."""
    yield Part.without_rows(types)
    for found in made:
        rows = max(len(each) for each in found.values() if isinstance(each, SEVERAL))
        for first in range(0, rows, PART_ROWS):
            some = slice(first, first + PART_ROWS)
            cut = {name: each[some] if isinstance(each, SEVERAL) else each for name, each in found.items()}
            yield Part.of(types, min(rows - first, PART_ROWS), cut)


def explained(tables: Mapping[str, pa.Table]) -> pa.Table:
    """One row for each column of these tables."""
    rows = [(table, column, *MEANINGS[column]) for table, listed in tables.items() for column in listed.column_names]
    return pa.table(dict(zip(("table", "column", "unit", "meaning"), map(list, zip(*rows, strict=True)), strict=True)))
