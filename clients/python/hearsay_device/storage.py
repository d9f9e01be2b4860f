"""One JSON document in one SQLite file, which keeps nothing that was taken out of the document.

SQLite writes each page to a rollback journal before it changes it. Usually it then unlinks the journal,
and what was erased stays on the disk. Here the journal persists, and is overwritten with zeros.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Callable

from hearsay_device.errors import DeviceError, refuse

PATIENCE_SECONDS = 30  # for another process that uses the file
Document = dict[str, Any]
Making = Callable[[], Document]
Migrating = Callable[[Document], Document]


class Storage:
    """The file of a device. `new` makes the first document; `migrated` brings one that was read up to date."""

    def __init__(
        self,
        path: Path,
        new: Making,
        migrated: Migrating,
    ) -> None:
        self._path = path
        self._journal = Path(f"{path}-journal")
        try:
            self._open(new, migrated)
        except DeviceError:
            self.close()
            raise
        except (OSError, ValueError, sqlite3.Error) as error:
            self.close()
            refuse(
                "state",
                f"{path} cannot be used as the state of a device: {error}",
                "correct that, or name another file, which is another device",
            )

    def _open(self, new: Making, migrated: Migrating) -> None:
        _own(self._path)
        leftover = _descriptor(self._journal)
        try:
            self._base = sqlite3.connect(str(self._path), timeout=PATIENCE_SECONDS, isolation_level=None)
            self._set_up()
            self._begin_with(new, migrated)
            if leftover is not None:
                _blank(leftover)
            self._blank_journal()
        finally:
            if leftover is not None:
                os.close(leftover)

    def close(self) -> None:
        if hasattr(self, "_base"):
            self._base.close()

    @contextmanager
    def changing(self, keep: bool) -> Iterator[Document]:
        """The document, and what is changed in it is stored: all or nothing, or with `keep` false, nothing."""
        self._begin()
        try:
            text = self._read()
            document = json.loads(text)
            yield document
            changed = json.dumps(document)
            stored = keep and changed != text
            if stored:
                self._base.execute("update state set document = ?", (changed,))
            self._base.execute("commit")
        except BaseException:
            self._roll_back()
            raise
        if stored:
            self._blank_journal()

    def _set_up(self) -> None:
        """Settings of a connection. A file in WAL mode keeps old pages in places that cannot be overwritten."""
        (mode,) = self._base.execute("pragma journal_mode").fetchone()
        if mode == "wal":
            raise ValueError("it is in WAL mode, which keeps what was erased: set `pragma journal_mode = delete` in it")
        self._base.execute("pragma journal_mode = persist")
        self._base.execute("pragma secure_delete = on")
        self._base.execute("pragma synchronous = extra")
        self._base.execute("pragma temp_store = memory")

    def _begin_with(self, new: Making, migrated: Migrating) -> None:
        """Make the document, or migrate the one that is there."""
        self._base.execute("begin immediate")
        try:
            tables = self._base.execute("select name from sqlite_master where type = 'table'").fetchall()
            if not tables:
                self._base.execute("create table state (document text not null)")
                self._base.execute("insert into state values (?)", (json.dumps(new()),))
            elif ("state",) not in tables:
                raise ValueError("it is of release 0.1; open it once with release 0.2, which moves it")
            else:
                text = self._read()
                changed = json.dumps(migrated(json.loads(text)))
                if changed != text:
                    self._base.execute("update state set document = ?", (changed,))
            self._base.execute("commit")
        except BaseException:
            self._roll_back()
            raise

    def _read(self) -> str:
        (text,) = self._base.execute("select document from state").fetchone()
        return str(text)

    def _begin(self) -> None:
        """Other processes wait."""
        try:
            self._base.execute("begin immediate")
        except sqlite3.OperationalError as error:
            refuse(
                "state",
                f"{self._path} cannot be used: {error}",
                "if another process uses it, wait, or stop that process",
            )

    def _roll_back(self) -> None:
        if self._base.in_transaction:
            self._base.execute("rollback")

    def _blank_journal(self) -> None:
        """Overwrite the pages that the last change replaced. In a transaction: nobody needs the journal then."""
        self._begin()
        try:
            journal = _descriptor(self._journal)
            if journal is not None:
                try:
                    _blank(journal)
                finally:
                    os.close(journal)
        finally:
            self._roll_back()


def _own(path: Path) -> None:
    """Make the file if there is none, for its owner alone.

    A file that is there is not opened: closing it would drop the locks that SQLite holds in this process.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    path.chmod(0o600)


def _descriptor(journal: Path) -> int | None:
    """The journal, if there is one: after a crash SQLite unlinks it, but what is open can still be overwritten."""
    try:
        return os.open(journal, os.O_RDWR)
    except FileNotFoundError:
        return None


def _blank(file: int) -> None:
    size = os.fstat(file).st_size
    os.lseek(file, 0, os.SEEK_SET)
    os.write(file, bytes(size))
    os.fsync(file)
