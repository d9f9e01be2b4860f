"""Records of an events topic as rows. A record is one event: an object of JSON, or a line of CSV."""

import csv
import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from producers.files import Batch, ColumnMapping
from producers.files.batch import as_text
from protocols.errors import ReplayError

Read = Callable[[str], dict[str, Any]]


class Record(Protocol):
    """What kafka-python returns, as far as it is read here."""

    offset: int
    key: bytes | None
    value: bytes | None


def csv_line(fields: Sequence[str], delimiter: str) -> Read:
    """Reads a line with these columns, which no header names."""

    def read(text: str) -> dict[str, Any]:
        (row,) = csv.reader([text], delimiter=delimiter, strict=True)
        return dict(zip(fields, row, strict=True))

    return read


def json_object(text: str) -> dict[str, Any]:
    row = json.loads(text)
    if not isinstance(row, dict):
        raise ValueError("not an object")
    return row


def decode(records: Sequence[Record], columns: ColumnMapping, read: Read, encoding: str, where: str) -> Batch:
    """The events of some records of a partition; their offsets are the numbers of rows.

    Raises ReplayError if a record's key is not its person: two partitions would report for one person.
    """
    rows, offsets, malformed = [], [], []
    for record in records:
        try:
            row = read((record.value or b"").decode(encoding))
            cells = [_cell(row.get(name)) for name in columns.names]
        except (ValueError, csv.Error, RecursionError):
            malformed.append(record.offset)
            continue
        if cells[0] and (record.key or b"") != cells[0].encode():
            raise ReplayError(
                f"{where}, offset {record.offset}: the key of the record is not its {columns.person}",
                "write events with the person as key, so that all events of a person are in one partition",
            )
        rows.append(cells)
        offsets.append(record.offset)
    texts = zip(*rows, strict=True) if rows else [()] * len(columns.names)
    found = {name: as_text(pa.array(cells, pa.string())) for name, cells in zip(columns.names, texts, strict=True)}
    return Batch(np.array(offsets, dtype=np.int64), found, malformed, 1.0)


def _cell(value: Any) -> str:
    """A cell as a file would have it. Sets are lists, or texts with `;`."""
    if isinstance(value, list):
        return ";".join(map(_cell, value))
    if isinstance(value, dict):
        raise ValueError("an object is no cell")
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)
