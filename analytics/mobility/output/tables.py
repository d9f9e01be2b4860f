"""The report as flat tables, for spreadsheets and data frames.

    visitors    one row per window: visitors, new and returning ones, changes, shortfall
    gaps        returning visitors by the time since their last visit
    values      one row per window, attribute and value: share, people, nowcast, changes, truth
    groups      the same for groups of values
    rankings    the busiest areas, by place
    dwell       mean and quartiles of dwell times
    sizes       of sets: shares of devices by how many values they have
    amounts     mean, sum and quantiles of numbers, a row each
    flows       people from each origin to each destination
    trips       people by where their transition began, and by where it ended
    crosses     shares and people of each pair of values of two attributes, and of pairs with groups

A quantity takes four columns: its name alone, and its name with `_error`, `_low` and `_high`.
"""

from __future__ import annotations  # pyarrow is loaded when it is used, and not for a type

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import chain
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel

from analytics.mobility.model import AttributeReport, Dwell, Gaps, MobilityReport, Place, Quantity, WindowReport
from analytics.mobility.output.part import Part, Types
from analytics.mobility.output.value_tables import (
    ATTRIBUTE,
    CROSSES,
    FLOWS,
    SHARES,
    SIZES,
    TRIPS,
    WINDOW,
    by_value,
    of_flows,
    of_pairs,
    of_shares,
    of_sizes,
    of_trips,
)
from protocols.arrays import lazy_arrow as pa


def _plain(annotation: Any) -> type:
    """The type of a field that holds one number, time or text; all are nullable."""
    inner = without_none(annotation)
    return str if get_origin(inner) is Literal else inner


def without_none(annotation: Any) -> Any:
    """X for X | None.

    >>> without_none(int | None)
    <class 'int'>
    """
    parts = [part for part in get_args(annotation) if part is not NoneType]
    return parts[0] if len(parts) == 1 and NoneType in get_args(annotation) else annotation


Row = dict[str, Any]
_WHOLE_NAMES = {"value", "percent"}  # nested fields whose column has the name of the outer field


def tables(report: MobilityReport) -> dict[str, pa.Table]:
    """All tables, by name."""
    return {name: pa.concat_tables([part.table() for part in parts]) for name, parts in tables_in_parts(report).items()}


def tables_in_parts(report: MobilityReport) -> dict[str, Iterator[Part]]:
    """The same, each table in parts that are made one after the other, and have `PART_ROWS` rows where it is long."""
    visitors = [flat(window) for window in report.windows]
    gaps = [_window_columns(window) | flat(gap) for window in report.windows for gap in window.gaps]
    dwells = _of_attributes(report, lambda attribute: [attribute.dwell] if attribute.dwell else [])
    return {
        "visitors": _table(visitors, _types(WindowReport)),
        "gaps": _table(gaps, WINDOW | _types(Gaps)),
        "values": by_value(report, SHARES, lambda window, asked, part: of_shares(window, asked.values, part.values)),
        "groups": by_value(report, SHARES, lambda window, asked, part: of_shares(window, asked.groups, part.groups)),
        "rankings": _table(_of_attributes(report, _places), WINDOW | ATTRIBUTE | _types(Place)),
        "dwell": _table(dwells, WINDOW | ATTRIBUTE | _types(Dwell)),
        "sizes": by_value(report, SIZES, of_sizes),
        "amounts": _table(_of_attributes(report, _statistics), WINDOW | ATTRIBUTE | _types(Statistic)),
        "flows": by_value(report, FLOWS, of_flows),
        "trips": by_value(report, TRIPS, of_trips),
        "crosses": chain(*(by_value(report, CROSSES, partial(of_pairs, group=group)) for group in (False, True))),
    }


def flat(model: BaseModel) -> Row:
    """A model as one row. Lists of models are left out: they have tables of their own.

    >>> from analytics.mobility.model import Quantity
    >>> flat(Place(place=1, value="a", people=Quantity(value=5, error=1, low=3, high=7), probability=0.9))
    {'place': 1, 'value': 'a', 'people': 5.0, 'people_error': 1.0, 'people_low': 3.0, 'people_high': 7.0, \
'probability': 0.9}
    """
    row = {}
    for column in _columns(type(model)):
        entry: Any = model
        for step in column.path:
            entry = None if entry is None else entry[step] if isinstance(step, int) else getattr(entry, step)
        row[column.name] = entry
    return row


class _Column(NamedTuple):
    name: str
    path: tuple[str | int, ...]
    type: type


@cache
def _columns(model: type[BaseModel]) -> tuple[_Column, ...]:
    return tuple(column for name, field in model.model_fields.items() for column in _spread(name, field.annotation))


def _spread(name: str, annotation: Any) -> Iterator[_Column]:
    """The columns of one field: those of its fields for a nested model, one per place for a tuple of fixed length."""
    inner = without_none(annotation)
    if isinstance(inner, type) and issubclass(inner, BaseModel):
        for column in _columns(inner):
            own = name if column.path[-1] in _WHOLE_NAMES else f"{name}_{column.name}".replace("_percent", "")
            yield _Column(own, (name, *column.path), column.type)
    elif getattr(inner, "__origin__", None) is not tuple:
        yield _Column(name, (name,), _plain(inner))
    elif Ellipsis not in inner.__args__:
        for place, part in enumerate(inner.__args__):
            yield _Column(f"{name}_{place + 1}", (name, place), _plain(part))


def _types(model: type[BaseModel]) -> dict[str, type]:
    return {column.name: column.type for column in _columns(model)}


def _window_columns(window: WindowReport) -> Row:
    return {name: getattr(window, name) for name in WINDOW}


def _of_attributes(report: MobilityReport, rows: Callable[[AttributeReport], Sequence[BaseModel]]) -> list[Row]:
    return [
        _window_columns(window)
        | {"attribute": attribute.name, "role": report.asked(attribute.name).role, "counted": attribute.counted}
        | flat(row)
        for window in report.windows
        for attribute in window.attributes
        for row in rows(attribute)
    ]


def _places(attribute: AttributeReport) -> Sequence[Place]:
    return attribute.ranking.places if attribute.ranking else ()


class Statistic(BaseModel):
    """A row of amounts."""

    statistic: str
    number: Quantity


def _statistics(attribute: AttributeReport) -> Sequence[Statistic]:
    found = attribute.amount
    if found is None:
        return ()
    quantiles = [
        Statistic(statistic=f"{one.at:g}", number=Quantity(value=one.value, error=None, low=one.low, high=one.high))
        for one in found.quantiles
    ]
    known = {"mean": found.mean, "sum": found.sum, "top": found.top}
    return [*(Statistic(statistic=name, number=number) for name, number in known.items() if number), *quantiles]


def _table(rows: list[Row], types: Types) -> Iterator[Part]:
    yield Part.of(types, len(rows), {name: [row[name] for row in rows] for name in types})
