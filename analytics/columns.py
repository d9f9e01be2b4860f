"""What published results are made of: frozen models, columns of numbers, and tables.

A column is an array in the program and a list in JSON, with no object for each number. In a table a nested model has
its columns beside the others, with both names; lists of models have tables of their own. Columns of tables have types
of Python; which types of Arrow these are is written here alone.
"""

from __future__ import annotations  # pyarrow is loaded when it is used, and not for a type

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from math import isfinite
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, PlainSerializer, PlainValidator, WithJsonSchema

from protocols.arrays import Floats
from protocols.arrays import lazy_arrow as pa
from protocols.survey import Told


class ResultModel(Told):
    """A part of a result. What its keys mean may stand in keys.txt.

    A number is finite, or the field is None. One that is not is written as it is: written as null, it would be read as
    a number that is not known, or be refused where there is always one. So whoever checks a document finds it.
    """

    model_config = ConfigDict(allow_inf_nan=False, ser_json_inf_nan="constants")


def _column(entries: Any) -> Floats:
    column = np.asarray(entries, dtype=np.float64)  # None becomes NaN
    if column.ndim != 1:
        raise ValueError("a column is a list of numbers")
    infinite = np.isinf(column)
    return np.where(infinite, np.nan, column) if infinite.any() else column


def _listed(column: Floats) -> list[float | None]:
    if np.isfinite(column).all():
        return list(column.tolist())
    entries = column.astype(object)
    entries[~np.isfinite(column)] = None
    return list(entries.tolist())


def _counts(entries: Any) -> NDArray[np.int64]:
    return np.asarray(entries, dtype=np.int64)


def _array_of(entries: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema({"type": "array", "items": entries})


Column = Annotated[
    Floats,
    PlainValidator(_column),
    PlainSerializer(_listed, return_type=list[float | None]),
    _array_of({"anyOf": [{"type": "number"}, {"type": "null"}]}),
]
"""Numbers, one for each value of an attribute; null (NaN in the array) where one is not known."""

Columns = Annotated[
    Floats,
    PlainValidator(lambda rows: np.stack([_column(row) for row in rows]) if len(rows) else np.zeros((0, 0))),
    PlainSerializer(lambda columns: [_listed(column) for column in columns], return_type=list[list[float | None]]),
    _array_of({"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "null"}]}}),
]
"""Columns of numbers."""

CountColumn = Annotated[
    NDArray[np.int64],
    PlainValidator(_counts),
    PlainSerializer(np.ndarray.tolist, return_type=list[int]),
    _array_of({"type": "integer"}),
]
"""Whole numbers."""

CountColumns = Annotated[
    NDArray[np.int64],
    PlainValidator(lambda rows: np.stack([_counts(row) for row in rows]) if len(rows) else np.zeros((0, 0), np.int64)),
    PlainSerializer(np.ndarray.tolist, return_type=list[list[int]]),
    _array_of({"type": "array", "items": {"type": "integer"}}),
]
"""Columns of whole numbers: one for each gap."""

Types = Mapping[str, type]  # of columns: of str, int, float, bool and datetime
SEVERAL = (list, tuple, np.ndarray)
_WHOLE_NAMES = {"value", "percent"}  # nested fields whose column has the name of the outer field


class Part(NamedTuple):
    """Some rows of a table: of each column an array, or the entry that all rows have."""

    rows: int
    columns: Mapping[str, pa.Array | pa.Scalar]

    @staticmethod
    def of(types: Types, rows: int, entries: Mapping[str, Any]) -> Part:
        """Rows: of each column a sequence of their entries, or the entry that all have.

        NaN and infinity become null.

        >>> Part.of({"a": float, "b": float}, 2, {"a": [1.5, np.inf], "b": np.nan}).table().to_pylist()
        [{'a': 1.5, 'b': None}, {'a': None, 'b': None}]
        """
        return Part(rows, {name: _arrow_column(entries.get(name), _arrow_type(kind)) for name, kind in types.items()})

    @staticmethod
    def without_rows(types: Types) -> Part:
        return Part.of(types, 0, dict.fromkeys(types, ()))

    @property
    def schema(self) -> pa.Schema:
        return pa.schema({name: column.type for name, column in self.columns.items()})

    def table(self) -> pa.Table:
        """The rows with all columns.

        >>> Part.of({"a": int, "b": str}, 2, {"a": [1, 2], "b": "x"}).table().to_pylist()
        [{'a': 1, 'b': 'x'}, {'a': 2, 'b': 'x'}]
        """
        columns = self.columns.values()
        arrays = [pa.repeat(c, self.rows) if isinstance(c, pa.Scalar) else c for c in columns]
        return pa.table(arrays, schema=self.schema)


def _arrow_column(entry: Any, kind: pa.DataType) -> pa.Array | pa.Scalar:
    if not isinstance(entry, SEVERAL):
        missing = isinstance(entry, float) and not isfinite(entry)
        return pa.scalar(None if missing else entry, kind)
    if kind != pa.float64():
        return pa.array(entry, kind, from_pandas=True)
    numbers = np.asarray(entry, dtype=np.float64)  # None becomes NaN
    return pa.array(numbers, kind, mask=~np.isfinite(numbers))


@cache
def _arrow_type(kind: type) -> pa.DataType:
    if kind is datetime:
        return pa.timestamp("us", tz="UTC")
    return pa.type_for_alias({str: "string", int: "int64", float: "float64", bool: "bool"}[kind])


def types_of(*parts: Mapping[str, Any] | type[BaseModel]) -> dict[str, type]:
    """The columns of some models, and of fields with such types, which all may be nullable.

    There are those of its fields for a nested model, and one per place for a tuple of fixed length.

    >>> from analytics.mobility.model import Quantity
    >>> list(types_of({"place": int, "people": Quantity | None}))
    ['place', 'people', 'people_error', 'people_low', 'people_high']
    """
    found: dict[str, type] = {}
    for part in parts:
        fields = part.model_fields if isinstance(part, type) else part
        for name, field in fields.items():
            inner = _plain(getattr(field, "annotation", field))
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                found |= within(name, types_of(inner))
            elif get_origin(inner) is not tuple:
                found[name] = inner
            elif Ellipsis not in get_args(inner):
                found |= {f"{name}_{place}": _plain(kind) for place, kind in enumerate(get_args(inner), 1)}
    return found


def flat(model: BaseModel) -> dict[str, Any]:
    """A model as the entries of a row; of one whose numbers are columns, as columns. What is not known is left out.

    >>> from analytics.mobility.model import Place, Quantity
    >>> flat(Place(place=1, value="a", people=Quantity(value=5, error=1, low=3, high=7), probability=0.9))
    {'place': 1, 'value': 'a', 'people': 5.0, 'people_error': 1.0, 'people_low': 3.0, 'people_high': 7.0, \
'probability': 0.9}
    """
    row: dict[str, Any] = {}
    for name, entry in model:
        if isinstance(entry, BaseModel):
            row |= within(name, flat(entry))
        elif isinstance(entry, tuple):
            row |= {f"{name}_{place}": part for place, part in enumerate(entry, 1)}
        elif entry is not None:
            row[name] = entry
    return row


def within(name: str, columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a nested model, with the names that they have beside those of the outer one."""
    named = {own: name if own in _WHOLE_NAMES else f"{name}_{own}".replace("_percent", "") for own in columns}
    return {named[own]: column for own, column in columns.items()}


def _plain(annotation: Any) -> Any:
    """The type of what a field holds: X for X | None, and text for a choice of words."""
    parts = [part for part in get_args(annotation) if part is not NoneType]
    inner = parts[0] if len(parts) == 1 and NoneType in get_args(annotation) else annotation
    return str if get_origin(inner) is Literal else inner
