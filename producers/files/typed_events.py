"""Parquet and Arrow files, read in batches."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from producers.files.batch import Batch, ColumnMapping, as_text, check_header
from protocols.errors import ReplayError

BATCH_ROWS = 1 << 16
ARROW = (".arrow", ".feather")
TEXTS = (pa.string(), pa.large_string(), pa.string_view())


def typed_batches(path: Path, columns: ColumnMapping) -> Iterator[Batch]:
    """Typed columns as rows, which are counted from 1."""
    row = 1
    try:
        with _opened(path) as (names, total, batches):
            check_header(path, names, columns, "select its columns with --person, --time and --map")
            for batch in batches(columns.names):
                rows = np.arange(row, row + batch.num_rows)
                row += batch.num_rows
                cells = {name: _cells(path, batch, name, name == columns.time) for name in columns.names}
                yield Batch(rows, cells, [], min(1.0, (row - 1) / total))
    except (pa.ArrowInvalid, OSError, UnicodeDecodeError):
        form = "Arrow" if path.suffix in ARROW else "Parquet"
        raise ReplayError(
            f"{path} cannot be read as {form} from about row {row} on", "check that it is complete"
        ) from None


@contextmanager
def _opened(path: Path) -> Iterator[tuple[list[str], int, Callable[[list[str]], Iterator[pa.RecordBatch]]]]:
    """The columns of a file, about how many rows it has, and some columns in batches."""
    if path.suffix not in ARROW:
        with pyarrow.parquet.ParquetFile(path) as file:
            rows = max(1, file.metadata.num_rows)
            yield file.schema_arrow.names, rows, lambda names: file.iter_batches(BATCH_ROWS, columns=names)
        return
    with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as file:
        parts = [file.get_batch(number) for number in range(file.num_record_batches)]  # in the file, not in memory
        rows = max(1, sum(part.num_rows for part in parts))
        yield file.schema.names, rows, lambda names: (part.select(names) for part in parts)


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
