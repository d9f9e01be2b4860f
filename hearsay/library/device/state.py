"""The state of a device in one SQLite file: its secret, the terms it keeps, and the report that it owes."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hearsay.library.device.limits import Spending
from protocols.errors import StateError

FORMAT = 2
PATIENCE_SECONDS = 30
TABLES = """
create table device (format integer not null, secret blob not null);
create table surveys (
    id text primary key, fingerprint text not null, terms blob not null,
    report real not null, life real, answers integer not null default 0,
    settled integer, delivered integer);
create table cells (
    survey text, attribute text, place integer, cell integer not null,
    primary key (survey, attribute, place));
create table stays (
    survey text, attribute text, cell integer not null,
    primary key (survey, attribute));
create table owed (survey text primary key, period integer not null, report blob not null, says text not null);
"""


@dataclass(frozen=True)
class Joined:
    """A survey that the device answers. `settled` and `delivered` are the last such periods."""

    id: str
    fingerprint: str
    terms: bytes
    spending: Spending
    settled: int | None
    delivered: int | None


@dataclass(frozen=True)
class Report:
    """A report as it is sent, and for each answered attribute the values that the answer speaks for."""

    period: int
    report: bytes
    says: dict[str, tuple[str, ...]]


class DeviceState:
    """The tables of one file. Every change is a transaction, durable before anything is sent."""

    def __init__(self, path: Path, secret: bytes | None) -> None:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            self._base = sqlite3.connect(path, timeout=PATIENCE_SECONDS, isolation_level=None)
            self._base.execute("pragma synchronous = extra")
            with self.change():
                if not self._base.execute("select 1 from sqlite_master").fetchone():
                    for statement in TABLES.split(";")[:-1]:
                        self._base.execute(statement)
                    drawn = secrets.token_bytes(32) if secret is None else secret
                    self._base.execute("insert into device values (?, ?)", (FORMAT, drawn))
                form, self.secret = self._base.execute("select format, secret from device").fetchone()
        except (OSError, sqlite3.Error) as error:
            raise StateError(f"{path} cannot be used as the state of a device: {error}", "name another file") from None
        if form != FORMAT:
            raise StateError(f"{path} is of another release of hearsay", "use that release, or a new file")

    def close(self) -> None:
        self._base.close()

    @contextmanager
    def change(self) -> Iterator[None]:
        """All that is done inside is stored, or nothing. Other processes wait."""
        self._base.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._base.execute("rollback")
            raise
        self._base.execute("commit")

    def joined(self) -> dict[str, Joined]:
        rows = self._base.execute(
            "select id, fingerprint, terms, report, life, answers, settled, delivered from surveys"
        ).fetchall()
        return {
            survey: Joined(survey, fingerprint, terms, Spending(report, life, answers), settled, delivered)
            for survey, fingerprint, terms, report, life, answers, settled, delivered in rows
        }

    def join(self, survey: str, fingerprint: str, terms: bytes, spending: Spending) -> None:
        self._base.execute(
            "insert into surveys (id, fingerprint, terms, report, life) values (?, ?, ?, ?, ?)",
            (survey, fingerprint, terms, spending.report, spending.life),
        )

    def cells(self, survey: str, attribute: str) -> list[int]:
        """The cells that an attribute has memos of, in the order in which they were made."""
        found = self._base.execute(
            "select cell from cells where survey = ? and attribute = ? order by place", (survey, attribute)
        )
        return [cell for (cell,) in found]

    def add_cell(self, survey: str, attribute: str, place: int, cell: int) -> None:
        self._base.execute("insert into cells values (?, ?, ?, ?)", (survey, attribute, place, cell))

    def stay(self, survey: str, attribute: str) -> int | None:
        """The cell of a grid in which the device was last."""
        found = self._base.execute(
            "select cell from stays where survey = ? and attribute = ?", (survey, attribute)
        ).fetchone()
        return None if found is None else int(found[0])

    def set_stay(self, survey: str, attribute: str, cell: int) -> None:
        self._base.execute("insert or replace into stays values (?, ?, ?)", (survey, attribute, cell))

    def owed(self, survey: str) -> Report | None:
        """The report that is settled and not confirmed."""
        row = self._base.execute("select period, report, says from owed where survey = ?", (survey,)).fetchone()
        if row is None:
            return None
        return Report(row[0], row[1], {name: tuple(values) for name, values in json.loads(row[2]).items()})

    def settle(self, survey: str, report: Report, answers: int) -> None:
        self._base.execute("update surveys set settled = ?, answers = ? where id = ?", (report.period, answers, survey))
        self._base.execute(
            "insert into owed values (?, ?, ?, ?)", (survey, report.period, report.report, json.dumps(report.says))
        )

    def deliver(self, survey: str, period: int) -> None:
        self._base.execute("update surveys set delivered = ? where id = ?", (period, survey))

    def forget_owed(self, survey: str) -> None:
        self._base.execute("delete from owed where survey = ?", (survey,))
