"""Parts of tables: some rows, in which a column that is the same in all of them takes no room."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa


class Part(NamedTuple):
    """Some rows of a table: of each column an array, or the entry that all rows have."""

    rows: int
    columns: Mapping[str, pa.Array | pa.Scalar]

    @staticmethod
    def of(table: pa.Table) -> Part:
        return Part(len(table), {name: table[name].combine_chunks() for name in table.column_names})

    @staticmethod
    @lru_cache(maxsize=64)
    def without_rows(schema: pa.Schema) -> Part:
        return Part.of(schema.empty_table())

    @property
    def schema(self) -> pa.Schema:
        return pa.schema({name: column.type for name, column in self.columns.items()})

    def table(self) -> pa.Table:
        """The rows with all columns.

        >>> Part(2, {"a": pa.array([1, 2]), "b": pa.scalar("x")}).table().to_pylist()
        [{'a': 1, 'b': 'x'}, {'a': 2, 'b': 'x'}]
        """
        columns = self.columns.values()
        arrays = [_repeated(c.as_py(), c.type, self.rows) if isinstance(c, pa.Scalar) else c for c in columns]
        return pa.table(arrays, schema=self.schema)


@lru_cache(maxsize=64)
def _repeated(entry: Any, kind: pa.DataType, rows: int) -> pa.Array:
    """Arrays that are the same in many parts, such as those of nulls, are made once."""
    return pa.repeat(pa.scalar(entry, kind), rows)
