"""The Arrow types of the report's models."""

from __future__ import annotations

from datetime import datetime
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import pyarrow as pa
from pydantic import BaseModel

_PLAIN: dict[Any, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    datetime: pa.timestamp("us", tz="UTC"),
}


def arrow_schema(model: type[BaseModel]) -> pa.Schema:
    """The Arrow schema of a model, field by field.

    >>> from analytics.mobility.model import Flow
    >>> arrow_schema(Flow).field("origin").type
    DataType(string)
    """
    return pa.schema([(name, arrow_type(field.annotation)) for name, field in model.model_fields.items()])


def arrow_type(annotation: Any) -> pa.DataType:
    """The Arrow type of a field: a list for a tuple, a struct for a model. All are nullable."""
    inner = without_none(annotation)
    if inner in _PLAIN:
        return _PLAIN[inner]
    if isinstance(inner, type) and issubclass(inner, BaseModel):
        return pa.struct(list(arrow_schema(inner)))
    if get_origin(inner) is tuple:
        return pa.list_(arrow_type(get_args(inner)[0]))
    assert get_origin(inner) is Literal, f"no Arrow type for {annotation}"
    return pa.string()


def without_none(annotation: Any) -> Any:
    """X for X | None.

    >>> without_none(int | None)
    <class 'int'>
    """
    parts = [part for part in get_args(annotation) if part is not NoneType]
    return parts[0] if len(parts) == 1 and NoneType in get_args(annotation) else annotation
