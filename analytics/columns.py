"""What published results are made of: frozen models, and columns of numbers.

A column is an array in the program and a list in JSON, with no object for each number.
"""

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from protocols.arrays import Floats
from protocols.survey import Told


class ResultModel(Told):
    """A part of a result. What its keys mean may stand in keys.txt."""


def _column(entries: Any) -> Floats:
    column = np.asarray(entries, dtype=np.float64)  # None becomes NaN
    if column.ndim != 1:
        raise ValueError("a column is a list of numbers")
    return column


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
