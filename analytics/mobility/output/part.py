"""Some rows of a table. Its columns have types of Python; which types of Arrow these are is written here alone."""

from __future__ import annotations  # pyarrow is loaded when it is used, and not for a type

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from protocols.arrays import lazy_arrow as pa

Types = Mapping[str, type]  # of columns: of str, int, float, bool and datetime
SEVERAL = (list, tuple, np.ndarray)


class Part(NamedTuple):
    """Some rows of a table: of each column an array, or the entry that all rows have."""

    rows: int
    columns: Mapping[str, pa.Array | pa.Scalar]

    @staticmethod
    def of(types: Types, rows: int, entries: Mapping[str, Any]) -> Part:
        """Rows: of each column a sequence of their entries, where NaN becomes null; or the entry that all have."""
        return Part(rows, {name: _column(entries.get(name), _arrow(kind)) for name, kind in types.items()})

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


def _column(entry: Any, kind: pa.DataType) -> pa.Array | pa.Scalar:
    return pa.array(entry, kind, from_pandas=True) if isinstance(entry, SEVERAL) else pa.scalar(entry, kind)


def _arrow(kind: type) -> pa.DataType:
    if kind is datetime:
        return pa.timestamp("us", tz="UTC")
    return pa.type_for_alias({str: "string", int: "int64", float: "float64", bool: "bool"}[kind])
