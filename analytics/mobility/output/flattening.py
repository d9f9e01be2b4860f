"""Models as columns: a nested model has its columns beside the others, with the names of both.

A quantity takes four columns: its name alone, and its name with `_error`, `_low` and `_high`. Lists of models are left
out: they have tables of their own.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel

_WHOLE_NAMES = {"value", "percent"}  # nested fields whose column has the name of the outer field


class _Column(NamedTuple):
    name: str
    path: tuple[str | int, ...]
    type: type


def types_of(*parts: Mapping[str, Any] | type[BaseModel]) -> dict[str, type]:
    """The columns of some models, and of fields with such types, which all may be nullable.

    >>> from analytics.mobility.model import Quantity
    >>> list(types_of({"place": int, "people": Quantity | None}))
    ['place', 'people', 'people_error', 'people_low', 'people_high']
    """
    found = (column for part in parts for column in (_columns(part) if isinstance(part, type) else _spread_all(part)))
    return {column.name: column.type for column in found}


def flat(model: BaseModel) -> dict[str, Any]:
    """A model as the entries of a row; of one whose numbers are columns, as columns.

    >>> from analytics.mobility.model import Place, Quantity
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


@cache
def _columns(model: type[BaseModel]) -> tuple[_Column, ...]:
    return _spread_all({name: field.annotation for name, field in model.model_fields.items()})


def _spread_all(fields: Mapping[str, Any]) -> tuple[_Column, ...]:
    return tuple(column for name, annotation in fields.items() for column in _spread(name, annotation))


def _spread(name: str, annotation: Any) -> Iterator[_Column]:
    """The columns of one field: those of its fields for a nested model, one per place for a tuple of fixed length."""
    inner = _without_none(annotation)
    if isinstance(inner, type) and issubclass(inner, BaseModel):
        for column in _columns(inner):
            own = name if column.path[-1] in _WHOLE_NAMES else f"{name}_{column.name}".replace("_percent", "")
            yield _Column(own, (name, *column.path), column.type)
    elif get_origin(inner) is not tuple:
        yield _Column(name, (name,), _plain(inner))
    elif Ellipsis not in get_args(inner):
        for place, part in enumerate(get_args(inner)):
            yield _Column(f"{name}_{place + 1}", (name, place), _plain(part))


def _plain(annotation: Any) -> Any:
    """The type of a field that holds one number, time or text."""
    inner = _without_none(annotation)
    return str if get_origin(inner) is Literal else inner


def _without_none(annotation: Any) -> Any:
    """X for X | None."""
    parts = [part for part in get_args(annotation) if part is not NoneType]
    return parts[0] if len(parts) == 1 and NoneType in get_args(annotation) else annotation
