"""Results as Parquet files, in directories by survey and date: `DIR/TABLE/survey=ID/date=YYYY-MM-DD/PERIOD.parquet`.

The date is that on which the period begins, in UTC. A file is written under another name, which readers of Parquet pass
over, and renamed: it is there whole or not at all. `DIR/_reached`, which is written last, says through which period a
survey is complete.

Only the user that writes may read what is written, unless the address names a group: `parquet:DIR?group=NAME`. Its
members may read, and nobody else. A directory that was there before stays as it is.
"""

import errno
import grp
import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet

from protocols.errors import SettingsError
from servers.private_files import open_private, sync_directory
from views.sinks.sink import Made, TableSink, tables_of

ADDRESS = "parquet:"
OPTION = "group="
NO_CHANGE = -1  # of an owner, to chown


class Readers(NamedTuple):
    """Who may read what a sink writes, besides its writer: the members of a group, or nobody."""

    group: int | None = None

    def let_in(self, place: Path, mode: int) -> None:
        """Give a file or a directory its group and its mode, whatever the umask is."""
        if self.group is not None:
            os.chown(place, NO_CHANGE, self.group)  # before it is opened to a group, it must be this one
        place.chmod(mode)

    @property
    def of_files(self) -> int:
        return 0o600 if self.group is None else 0o640

    @property
    def of_directories(self) -> int:
        return 0o700 if self.group is None else 0o750


class ParquetSink(TableSink):
    """A directory. Files have no column `survey`, as readers know it from the directory that they are in."""

    errors = (OSError, ValueError, LookupError)
    hint = (
        "see whether the disk has space, and who may write there; if `_reached` is deleted, all files are "
        "written again from finals"
    )

    def __init__(self, address: str) -> None:
        place, mark, option = address.removeprefix(ADDRESS).partition("?")
        super().__init__(place)
        self._readers = _readers(address, option) if mark else Readers()
        self._root = Path(self._place)
        self._reached = self._root / "_reached"
        self._reached_name = f"{sha256(self.edition.encode()).hexdigest()[:16]}.json"
        with self._explained():
            _make_directory(self._reached, self._readers)
            _write(probe := self._reached / f".{token_hex(8)}", b"", self._readers)  # it can be written
            probe.unlink()

    def complete(self) -> Mapping[str, int]:
        with self._explained():
            files = self._reached.glob(f"*/{self._reached_name}")
            return {file.parent.name: json.loads(file.read_bytes())["period"] for file in files}

    def _write(self, waiting: Sequence[Made], through: Mapping[str, int]) -> None:
        with self._explained():
            for made in waiting:
                begin, _ = made.survey.bounds(made.key.period or 0)
                partition = f"survey={made.key.survey}/date={begin.astimezone(UTC).date()}"
                for name, parts in tables_of(made):
                    table = pa.concat_tables([part.table() for part in parts]).drop_columns(["survey"])
                    if len(table):
                        pyarrow.parquet.write_table(table, encoded := BytesIO(), compression="zstd")
                        file = self._root / name / partition / f"{made.key.period}.parquet"
                        _write(file, encoded.getvalue(), self._readers)
            complete = self.complete()
            for survey, period in through.items():
                said = {"views": self.edition.split(), "period": max(period, complete.get(survey, -1))}
                _write(self._reached / survey / self._reached_name, json.dumps(said).encode(), self._readers)

    def close(self) -> None:
        """Nothing is open between two calls."""


def _readers(address: str, option: str) -> Readers:
    """Who may read, from what follows the directory in an address."""
    name = option.removeprefix(OPTION)
    if not option.startswith(OPTION) or not name:
        raise SettingsError(
            f"{address!r} says {option!r} behind its directory",
            "only a group can be named there: parquet:DIR?group=NAME",
        )
    try:
        group = grp.getgrnam(name).gr_gid
    except KeyError:
        raise SettingsError(
            f"{address!r} names the group {name!r}, which this machine does not have",
            "name a group of this machine, or leave it out: then only this user reads the files",
        ) from None
    if os.geteuid() != 0 and group not in {os.getegid(), *os.getgroups()}:
        raise SettingsError(
            f"{address!r} names the group {name!r}, of which this user is no member",
            "make it a member: nobody else may give files to a group",
        )
    return Readers(group)


def _make_directory(path: Path, readers: Readers) -> None:
    """Make a directory, and those above it, for these readers; what exists stays as it is."""
    if path.is_dir():
        return
    if path.parent != path:
        _make_directory(path.parent, readers)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        if not path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path)) from None
        return  # another sink has made it just now
    readers.let_in(path, readers.of_directories)
    sync_directory(path.parent)


def _write(path: Path, data: bytes, readers: Readers) -> None:
    """Put a file in its place as a whole; it is on disk when this returns."""
    _make_directory(path.parent, readers)
    draft = path.with_name(f".{path.name}.{token_hex(8)}")
    with open_private(draft, "wb") as file:
        readers.let_in(draft, readers.of_files)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_directory(path.parent)
