"""CSV files, also compressed, read in batches. Cells and rows may name a person: no message shows them."""

import csv
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from producers.files.batch import Batch, ColumnMapping, as_text, check_header
from producers.files.text_files import COMPRESSIONS, SAMPLE, TextFile, Utf8
from protocols.errors import ReplayError

BLOCK_BYTES = 16 << 20
"""A block of characters has at least a quarter as many."""
FIRST_DATA_ROW = 2
NO_NAMES = "its first line must name the columns; select them with --person, --time and --map"


@dataclass(frozen=True)
class CsvEvents:
    """Every cell is read as text."""

    path: Path
    delimiter: str = ","
    quotes: bool = True
    encoding: str = "utf-8"

    def batches(self, columns: ColumnMapping) -> Iterator[Batch]:
        malformed: list[int] = []  # that were found, and are not before `row` yet: the file is read ahead

        def skip(invalid: pyarrow.csv.InvalidRow) -> str:
            malformed.append(invalid.number)
            return "skip"

        row = FIRST_DATA_ROW
        try:
            check_header(self.path, self._header(), columns, NO_NAMES)
            with TextFile(self.path, self.encoding) as file:
                for batch in pyarrow.csv.open_csv(
                    pa.PythonFile(Utf8(file), mode="r"),
                    # One thread: only then does the reader number the rows that it cannot parse.
                    pyarrow.csv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES),
                    self._parsing(skip),
                    pyarrow.csv.ConvertOptions(
                        include_columns=columns.names,
                        column_types=dict.fromkeys(columns.names, pa.string()),
                        strings_can_be_null=False,
                    ),
                ):
                    rows = np.arange(row, row + batch.num_rows + len(malformed))
                    rows = np.setdiff1d(rows, malformed, assume_unique=True)[: batch.num_rows]
                    row = int(rows[-1]) + 1 if len(rows) else row
                    before = [number for number in malformed if number < row]
                    del malformed[: len(before)]
                    cells = {name: as_text(batch.column(name)) for name in columns.names}
                    yield Batch(rows, cells, before, file.share_read)
        except (pa.ArrowInvalid, OSError, UnicodeError) as error:
            raise ReplayError(
                f"{self.path} cannot be read as CSV from about line {row} on", self._advice(error)
            ) from None
        if malformed:
            nothing = {name: pa.array([], pa.string()) for name in columns.names}
            yield Batch(np.empty(0, dtype=np.int64), nothing, malformed, 1.0)

    def lines(self, rows: Collection[int]) -> dict[int, int]:
        """The lines in which rows begin, as an editor counts: a quoted cell may have several lines.

        The file is read once, up to the last of the rows.
        """
        found = {row: row for row in rows}
        if not rows or not self.quotes:
            return found
        with TextFile(self.path, self.encoding) as file:
            reader, number = csv.reader(file, delimiter=self.delimiter), 0
            for row in sorted(found):
                deque(islice(reader, row - 1 - number), maxlen=0)  # the rows before it
                number = row - 1
                found[row] = reader.line_num + 1
        return found

    def _header(self) -> list[str]:
        """The column names, from the first line, read without the streaming reader.

        A streaming reader that is not read to its end can still be reading ahead when the process exits, and abort it.
        """
        with TextFile(self.path, self.encoding) as file:
            first = pa.py_buffer(file.readline(SAMPLE).encode())
        names: list[str] = pyarrow.csv.read_csv(first, parse_options=self._parsing()).column_names
        return names

    def _parsing(self, on_invalid: Callable[[pyarrow.csv.InvalidRow], str] | None = None) -> pyarrow.csv.ParseOptions:
        return pyarrow.csv.ParseOptions(
            delimiter=self.delimiter,
            quote_char='"' if self.quotes else False,
            newlines_in_values=self.quotes,
            ignore_empty_lines=False,
            invalid_row_handler=on_invalid,
        )

    def _advice(self, error: Exception) -> str:
        if isinstance(error, OSError):
            return "check that it is complete, and compressed as its suffix says"
        if isinstance(error, UnicodeError):
            return f"it is not in {self.encoding}: name its encoding with --encoding"
        with self.path.open("rb") as file:
            beginning = file.read(SAMPLE)
        if self.path.suffix not in COMPRESSIONS and b"\n" not in beginning and b"\r" not in beginning:
            return "it is empty, or its first line has no end: it needs at least a line with the names of its columns"
        return "look there for a quote that is not closed, or read quotes as text with --no-quotes"
