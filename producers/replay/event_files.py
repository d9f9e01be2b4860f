"""Event files, read in batches: CSV (also compressed) and Parquet, of any size.

A batch has the line number of each of its rows. The CSV reader's own errors quote the row, which names a person, so
they are never shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from protocols.errors import ReplayError

BLOCK_BYTES = 4 << 20
BATCH_ROWS = 1 << 16
FIRST_DATA_LINE = 2
TEXTS = (pa.string(), pa.large_string(), pa.string_view())


@dataclass(frozen=True)
class ColumnMapping:
    """Which columns hold the person, the time and the attributes."""

    person: str
    time: str
    attributes: dict[str, str] = field(default_factory=dict)  # attribute -> column

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys([self.person, self.time, *self.attributes.values()]))


@dataclass(frozen=True)
class Batch:
    """Some rows. All columns are text, except that of times, which may be typed."""

    lines: NDArray[np.int64]
    columns: dict[str, pa.Array]
    malformed: list[int]
    """The numbers of lines in this part of the file that could not be parsed; they have no row."""
    share_read: float
    """How much of the file has been read, from 0 to 1."""

    def only(self, rows: NDArray[np.bool_]) -> Batch:
        """Some of the rows."""
        columns = {name: column.filter(pa.array(rows)) for name, column in self.columns.items()}
        return Batch(self.lines[rows], columns, [], self.share_read)


class EventFile(Protocol):
    """A file of events."""

    def batches(self, columns: ColumnMapping) -> Iterator[Batch]: ...


def open_events(path: Path, delimiter: str = ",", quotes: bool = True) -> EventFile:
    """The reader for a file, by its suffix."""
    if not path.is_file():
        raise ReplayError(f"there is no file {path}", "give the path of a .csv (.csv.gz) or .parquet file of events")
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '\0\r\n"':
        raise ReplayError(f"{delimiter!r} is not a valid delimiter", "choose one ASCII character, such as , or ;")
    if path.suffix in (".parquet", ".pq"):
        return ParquetEvents(path)
    if ".csv" in path.suffixes or ".tsv" in path.suffixes:
        return CsvEvents(path, "\t" if ".tsv" in path.suffixes else delimiter, quotes)
    raise ReplayError(f"{path} is neither .csv nor .parquet", "convert it, or give it the suffix of its format")


@dataclass(frozen=True)
class CsvEvents:
    """Every cell is read as bytes, so that no cell makes the reader fail."""

    path: Path
    delimiter: str = ","
    quotes: bool = True

    def batches(self, columns: ColumnMapping) -> Iterator[Batch]:
        malformed: list[int] = []

        def skip(row: pyarrow.csv.InvalidRow) -> str:
            malformed.append(row.number)
            return "skip"

        line, total = FIRST_DATA_LINE, max(1, self.path.stat().st_size)
        with pa.OSFile(str(self.path)) as raw:
            try:
                _check_header(self.path, self._header(), columns)
                for batch in self._open(raw, columns.names, skip):
                    lines = _lines_between(line, batch.num_rows, malformed)
                    line, before = _next_line(int(lines[-1]) + 1 if len(lines) else line, malformed)
                    cells = {name: _text(batch.column(name)) for name in columns.names}
                    yield Batch(lines, cells, malformed[:before], min(1.0, raw.tell() / total))
                    del malformed[:before]
            except (pa.ArrowInvalid, OSError, UnicodeDecodeError) as error:
                raise ReplayError(
                    f"{self.path} cannot be read as CSV from about line {line} on", self._advice(error)
                ) from None
        if malformed:
            nothing = {name: pa.array([], pa.string()) for name in columns.names}
            yield Batch(np.empty(0, dtype=np.int64), nothing, malformed, 1.0)

    def _header(self) -> list[str]:
        """The column names, from the first line, read without the streaming reader.

        A streaming reader that is not read to its end can still be reading ahead when the process exits, and abort it.
        """
        with pa.input_stream(str(self.path), compression=self._compression) as stream:
            first = b"".join(stream.read(BLOCK_BYTES).splitlines(keepends=True)[:1])
        names: list[str] = pyarrow.csv.read_csv(pa.BufferReader(first), parse_options=self._parsing()).column_names
        return names

    def _open(
        self, raw: pa.NativeFile, names: list[str], on_invalid: Callable[[pyarrow.csv.InvalidRow], str]
    ) -> pyarrow.csv.CSVStreamingReader:
        return pyarrow.csv.open_csv(
            pa.input_stream(raw, compression=self._compression),
            # One thread: only then does the reader number the rows that it cannot parse.
            read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES),
            parse_options=self._parsing(on_invalid),
            convert_options=pyarrow.csv.ConvertOptions(
                include_columns=names, column_types={name: pa.binary() for name in names}
            ),
        )

    def _parsing(self, on_invalid: Callable[[pyarrow.csv.InvalidRow], str] | None = None) -> pyarrow.csv.ParseOptions:
        return pyarrow.csv.ParseOptions(
            delimiter=self.delimiter,
            quote_char='"' if self.quotes else False,
            ignore_empty_lines=False,
            invalid_row_handler=on_invalid,
        )

    def _advice(self, error: Exception) -> str:
        if isinstance(error, UnicodeDecodeError):
            return "its column names are not in UTF-8: convert it"
        if isinstance(error, OSError):
            return "check that it is complete, and compressed as its suffix says"
        with self.path.open("rb") as file:
            beginning = file.read(BLOCK_BYTES)
        if self._compression is None and b"\n" not in beginning and b"\r" not in beginning:
            return "it is empty, or its first line has no end: it needs at least a line with the names of its columns"
        return "look there for a quote that is not closed, or read quotes as text with --no-quotes"

    @property
    def _compression(self) -> str | None:
        return {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}.get(self.path.suffix)


@dataclass(frozen=True)
class ParquetEvents:
    """Typed columns. Line numbers are row numbers, counted from 1."""

    path: Path

    def batches(self, columns: ColumnMapping) -> Iterator[Batch]:
        line = 1
        try:
            with pyarrow.parquet.ParquetFile(self.path) as file:
                _check_header(self.path, file.schema_arrow.names, columns)
                total = max(1, file.metadata.num_rows)
                for batch in file.iter_batches(BATCH_ROWS, columns=columns.names):
                    lines = np.arange(line, line + batch.num_rows)
                    line += batch.num_rows
                    cells = {name: _cells(self.path, batch, name, name == columns.time) for name in columns.names}
                    yield Batch(lines, cells, [], (line - 1) / total)
        except (pa.ArrowInvalid, OSError, UnicodeDecodeError):
            raise ReplayError(
                f"{self.path} cannot be read as Parquet from about row {line} on", "check that it is complete"
            ) from None


def _check_header(path: Path, present: list[str], columns: ColumnMapping) -> None:
    if not set(columns.names) & set(present):  # not shown: the first line may be a row, which names a person
        raise ReplayError(
            f"{path} has none of the columns {', '.join(columns.names)}",
            "its first line must name the columns; select them with --person, --time and --map",
        )
    for name in columns.names:
        if name not in present:
            raise ReplayError(f"{path} has no column {name!r}", f"it has {', '.join(present)}")
        if (times := present.count(name)) > 1:
            raise ReplayError(f"{path} has {times} columns {name!r}", "rename all but one of them")


def _lines_between(first: int, count: int, malformed: list[int]) -> NDArray[np.int64]:
    """The lines of the next `count` rows from `first` on, skipping the malformed lines."""
    return np.setdiff1d(np.arange(first, first + count + len(malformed)), malformed, assume_unique=True)[:count]


def _next_line(line: int, malformed: list[int]) -> tuple[int, int]:
    """The first line from `line` on that is not known to be malformed, and how many malformed ones are before it."""
    before = 0
    while before < len(malformed) and malformed[before] <= line:
        line = max(line, malformed[before] + 1)
        before += 1
    return line, before


def _cells(path: Path, batch: pa.RecordBatch, name: str, is_time: bool) -> pa.Array:
    """A column as text, or unchanged if it holds typed times."""
    column = batch.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if is_time and column.type not in TEXTS:
        return column
    try:
        return _text(column)
    except pa.ArrowNotImplementedError:
        raise ReplayError(
            f"column {name!r} of {path} holds {column.type}, not text or numbers", "convert it, or map another column"
        ) from None


def _text(column: pa.Array) -> pa.Array:
    """A column as text: stripped, nulls as empty text. Different bytes that are not UTF-8 become different text."""
    try:
        text = column.cast(pa.string())
    except pa.ArrowInvalid:
        text = pa.array([(cell or b"").decode(errors="backslashreplace") for cell in column.to_pylist()], pa.string())
    return pc.utf8_trim_whitespace(pc.fill_null(text, ""))
