"""Some rows of an event file, and which of its columns are read."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from protocols.arrays import Mask
from protocols.errors import ReplayError


@dataclass(frozen=True)
class ColumnMapping:
    """Which columns hold the person, the time and the attributes."""

    person: str
    time: str
    attributes: dict[str, str] = field(default_factory=dict)  # attribute -> column
    positions: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By attribute of places: the columns of latitude and longitude, or of metres east and north."""
    metres: bool = False
    """Whether positions are in the metres of the attribute's grid."""
    offset: str | None = None
    """The column that says how far local time is ahead of UTC, such as +02:00."""

    @property
    def names(self) -> list[str]:
        pairs = (column for pair in self.positions.values() for column in pair)
        offset = [] if self.offset is None else [self.offset]
        return list(dict.fromkeys([self.person, self.time, *offset, *self.attributes.values(), *pairs]))


@dataclass(frozen=True)
class Batch:
    """Some rows. All columns are text, except that of times, which may be typed."""

    rows: NDArray[np.int64]
    """The number of each row; the line with the names of the columns is row 1 of a CSV file."""
    columns: dict[str, pa.Array]
    malformed: list[int]
    """The numbers of rows in this part of the file that could not be parsed; they are not in `rows`."""
    share_read: float
    """How much of the file has been read, from 0 to 1."""

    def only(self, rows: Mask) -> "Batch":
        """Some of the rows."""
        if rows.all():
            return self
        columns = {name: column.filter(pa.array(rows)) for name, column in self.columns.items()}
        return Batch(self.rows[rows], columns, [], self.share_read)


def check_header(path: Path, present: list[str], columns: ColumnMapping, advice: str) -> None:
    """Refuse a file without the mapped columns. Its first line may be a row, which names a person: it is not shown."""
    if not set(columns.names) & set(present):
        raise ReplayError(f"{path} has none of the columns {', '.join(columns.names)}", advice)
    for name in columns.names:
        if name not in present:
            raise ReplayError(f"{path} has no column {name!r}", f"it has {', '.join(present)}")
        if (times := present.count(name)) > 1:
            raise ReplayError(f"{path} has {times} columns {name!r}", "rename all but one of them")


def as_text(column: pa.Array) -> pa.Array:
    """A column as text: stripped, nulls as empty text.

    >>> as_text(pa.array([" north", "", None, "s\u00fcd\u2003"])).to_pylist(), as_text(pa.array([7, 12])).to_pylist()
    (['north', '', '', 's\u00fcd'], ['7', '12'])
    """
    text = column.cast(pa.string())
    return pc.utf8_trim_whitespace(pc.fill_null(text, "") if text.null_count else text)
