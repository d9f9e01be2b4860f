"""Files of JSON lines, one object a line, read in batches."""

import io
import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from producers.files.batch import Batch, ColumnMapping, as_text, check_header
from producers.files.text_stream import Utf8Stream
from protocols.errors import ReplayError

BATCH_BYTES = 4 << 20
"""Of lines in a batch, before objects are made of them."""
LINE_BYTES = 1 << 20
"""A line that is longer is no event: a file without line ends is not read into memory."""


@dataclass(frozen=True)
class JsonEvents:
    """Rows are counted from 1, as lines are."""

    path: Path
    encoding: str

    def batches(self, columns: ColumnMapping) -> Iterator[Batch]:
        row, named = 1, False
        try:
            with Utf8Stream(self.path, self.encoding) as stream, io.BufferedReader(stream, LINE_BYTES) as file:
                while lines := _lines(file):
                    read = {row + i: _parsed(line) for i, line in enumerate(lines) if line.strip()}
                    names = list(dict.fromkeys(name for parsed in read.values() for name in parsed or ()))
                    if names and not named:
                        check_header(self.path, names, columns, "select columns with --person, --time and --map")
                        named = True
                    row += len(lines)
                    yield table_of(read, columns, stream.share_read)
        except (pa.ArrowInvalid, OSError):
            where = f"{self.path} cannot be read from about line {row} on"
            raise ReplayError(where, "check that it is complete") from None

    def lines(self, rows: Collection[int]) -> dict[int, int]:
        return {row: row for row in rows}


def json_object(text: str | bytes) -> dict[str, Any]:
    """Raises ValueError if the text is no object."""
    row = json.loads(text)
    if not isinstance(row, dict):
        raise ValueError("not an object")
    return row


def cell(value: Any) -> str:
    """A value as a cell of a table. Sets are lists, or texts with `;`. Raises ValueError of an object."""
    if isinstance(value, list):
        return ";".join(map(cell, value))
    if isinstance(value, dict):
        raise ValueError("an object is no cell")
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def _lines(file: io.BufferedIOBase) -> list[bytes]:
    """The lines of the next batch; none at the end."""
    lines, size = [], 0
    while size < BATCH_BYTES and (line := _line(file)):
        lines.append(line)
        size += len(line)
    return lines


def _line(file: io.BufferedIOBase) -> bytes:
    """The next line; of one that is too long a part, which is no object."""
    line = file.readline(LINE_BYTES)
    if len(line) == LINE_BYTES and not line.endswith(b"\n"):
        while (more := file.readline(LINE_BYTES)) and not more.endswith(b"\n"):
            pass
        return b"too long"
    return line


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        return json_object(line)
    except (ValueError, RecursionError):
        return None


def table_of(read: Mapping[int, Mapping[str, Any] | None], columns: ColumnMapping, share: float = 1.0) -> Batch:
    """Objects by their numbers, as rows. Those that are None, or have a value that is no cell, are malformed."""
    rows: dict[int, list[str]] = {}
    for number, parsed in read.items():
        with suppress(ValueError, RecursionError):
            if parsed is not None:
                rows[number] = [cell(parsed.get(name)) for name in columns.names]
    texts = zip(*rows.values(), strict=True) if rows else [()] * len(columns.names)
    cells = {name: as_text(pa.array(some, pa.string())) for name, some in zip(columns.names, texts, strict=True)}
    return Batch(np.fromiter(rows, dtype=np.int64), cells, [number for number in read if number not in rows], share)
