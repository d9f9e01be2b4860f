"""Parts of tables: some rows, in which a column that is the same in all of them takes no room."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa


class Part(NamedTuple):
    """Some rows of a table: of each column an array, or the entry that all rows have."""

    rows: int
    columns: Mapping[str, pa.Array | pa.Scalar]

    @staticmethod
    def of(table: pa.Table) -> Part:
        return Part(len(table), {name: table[name].combine_chunks() for name in table.column_names})

    @property
    def schema(self) -> pa.Schema:
        return pa.schema({name: column.type for name, column in self.columns.items()})

    def table(self) -> pa.Table:
        """The rows with all columns.

        >>> Part(2, {"a": pa.array([1, 2]), "b": pa.scalar("x")}).table().to_pylist()
        [{'a': 1, 'b': 'x'}, {'a': 2, 'b': 'x'}]
        """
        arrays = (pa.repeat(c, self.rows) if isinstance(c, pa.Scalar) else c for c in self.columns.values())
        return pa.table(list(arrays), schema=self.schema)
