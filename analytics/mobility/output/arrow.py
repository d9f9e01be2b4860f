"""The Arrow types of the plain fields of models."""

from __future__ import annotations

from datetime import datetime
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import pyarrow as pa

_PLAIN: dict[Any, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    datetime: pa.timestamp("us", tz="UTC"),
}


def arrow_type(annotation: Any) -> pa.DataType:
    """The Arrow type of a field that holds one number, time or text; all are nullable.

    >>> arrow_type(float | None)
    DataType(double)
    """
    inner = without_none(annotation)
    assert inner in _PLAIN or get_origin(inner) is Literal, f"no Arrow type for {annotation}"
    return _PLAIN.get(inner, pa.string())


def without_none(annotation: Any) -> Any:
    """X for X | None.

    >>> without_none(int | None)
    <class 'int'>
    """
    parts = [part for part in get_args(annotation) if part is not NoneType]
    return parts[0] if len(parts) == 1 and NoneType in get_args(annotation) else annotation
