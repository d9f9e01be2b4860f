"""Records of an events topic as rows. A record is one event: an object of JSON, or a line of CSV."""

import csv
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from producers.files import Batch, ColumnMapping
from producers.files.json_events import LINE_SIZE, table_of
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


def decode(records: Sequence[Record], columns: ColumnMapping, read: Read, encoding: str, where: str) -> Batch:
    """The events of some records of a partition; their offsets are the numbers of rows.

    Raises ReplayError if a record's key is not its person: two partitions would report for one person.
    """
    rows: dict[int, dict[str, Any] | None] = {}
    for record in records:
        try:
            if len(record.value or b"") > LINE_SIZE:
                raise ValueError("no event is so long")
            rows[record.offset] = read((record.value or b"").decode(encoding))
        except (ValueError, csv.Error, RecursionError):
            rows[record.offset] = None
    batch = table_of(rows, columns)
    keys = {record.offset: (record.key or b"").decode(errors="replace").strip() for record in records}
    for offset, person in zip(batch.rows.tolist(), batch.columns[columns.person].to_pylist(), strict=True):
        if person and keys[offset] != person:
            raise ReplayError(
                f"{where}, offset {offset}: the key of the record is not its {columns.person}",
                "write events with the person as key, so that all events of a person are in one partition",
            )
    return batch
