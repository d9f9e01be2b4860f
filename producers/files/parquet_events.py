"""Parquet files, read in batches."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from producers.files.batch import Batch, ColumnMapping, as_text, check_header
from protocols.errors import ReplayError

BATCH_ROWS = 1 << 16
TEXTS = (pa.string(), pa.large_string(), pa.string_view())


@dataclass(frozen=True)
class ParquetEvents:
    """Typed columns. Rows are counted from 1."""

    path: Path

    def batches(self, columns: ColumnMapping) -> Iterator[Batch]:
        row = 1
        try:
            with pyarrow.parquet.ParquetFile(self.path) as file:
                advice = "select its columns with --person, --time and --map"
                check_header(self.path, file.schema_arrow.names, columns, advice)
                total = max(1, file.metadata.num_rows)
                for batch in file.iter_batches(BATCH_ROWS, columns=columns.names):
                    rows = np.arange(row, row + batch.num_rows)
                    row += batch.num_rows
                    cells = {name: _cells(self.path, batch, name, name == columns.time) for name in columns.names}
                    yield Batch(rows, cells, [], (row - 1) / total)
        except (pa.ArrowInvalid, OSError, UnicodeDecodeError):
            raise ReplayError(
                f"{self.path} cannot be read as Parquet from about row {row} on", "check that it is complete"
            ) from None

    def lines(self, rows: Collection[int]) -> dict[int, int]:
        return {row: row for row in rows}


def _cells(path: Path, batch: pa.RecordBatch, name: str, is_time: bool) -> pa.Array:
    """A column as text, or unchanged if it holds typed times."""
    column = batch.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if is_time and column.type not in TEXTS:
        return column
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        # Different bytes that are not UTF-8 become different text.
        column = pa.array([(cell or b"").decode(errors="backslashreplace") for cell in column.to_pylist()], pa.string())
    try:
        return as_text(column)
    except pa.ArrowNotImplementedError:
        raise ReplayError(
            f"column {name!r} of {path} holds {column.type}, not text or numbers", "convert it, or map another column"
        ) from None
