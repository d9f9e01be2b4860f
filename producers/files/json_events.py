"""Files of JSON lines, one object a line, read in batches."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from producers.files.batch import Batch, ColumnMapping, as_text, check_header
from producers.files.text_files import TextFile
from protocols.errors import ReplayError

BATCH_SIZE = 4 << 20
"""Of lines in a batch, before objects are made of them."""
LINE_SIZE = 1 << 20
"""A line that is longer is no event: a file without line ends is not read into memory."""


def json_batches(path: Path, encoding: str, columns: ColumnMapping) -> Iterator[Batch]:
    """Objects as rows, which are counted from 1, as lines are."""
    row, named = 1, False
    try:
        with TextFile(path, encoding) as file:
            while lines := _lines(file):
                read = {row + i: _parsed(line) for i, line in enumerate(lines) if line.strip()}
                names = list(dict.fromkeys(name for parsed in read.values() for name in parsed or ()))
                if names and not named:
                    check_header(path, names, columns, "select columns with --person, --time and --map")
                    named = True
                row += len(lines)
                yield table_of(read, columns, file.share_read)
    except (pa.ArrowInvalid, OSError, UnicodeError):
        where = f"{path} cannot be read from about line {row} on"
        raise ReplayError(where, f"check that it is complete, and in {encoding}") from None


def json_object(text: str) -> dict[str, Any]:
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


def _lines(file: TextFile) -> list[str]:
    """The lines of the next batch; none at the end."""
    lines, size = list[str](), 0
    while size < BATCH_SIZE and (line := file.readline(LINE_SIZE)):
        lines.append(line)
        size += len(line)
        while len(line) == LINE_SIZE and not line.endswith(("\n", "\r")):
            line, lines[-1] = file.readline(LINE_SIZE), "too long, and no object"
    return lines


def _parsed(line: str) -> dict[str, Any] | None:
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
                row = [cell(parsed.get(name)) for name in columns.names]
                "".join(row).encode()  # raises ValueError if there is half a character, as JSON can have
                rows[number] = row
    texts = zip(*rows.values(), strict=True) if rows else [()] * len(columns.names)
    cells = {name: as_text(pa.array(some, pa.string())) for name, some in zip(columns.names, texts, strict=True)}
    return Batch(np.fromiter(rows, dtype=np.int64), cells, [number for number in read if number not in rows], share)
