"""The state of a device: one JSON document in one SQLite file. Every change is durable before anything is sent.

    {"format": 3, "day": last day, "keys": {id: key}, "kept": {id and purpose: key of version 0.1},
     "surveys": {id: what was joined}, "charges": [[day, survey, question, amount], ...]}

It has no list of memos: that would be a list of true values. Cells are stored only where a cap needs them. What is
deleted is overwritten; flash memory may keep old pages nevertheless.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Callable

from hearsay_device.draws import derived
from hearsay_device.errors import DeviceError, refuse
from hearsay_device.respondent import Respondent
from hearsay_device.terms import read_terms

FORMAT, PATIENCE_SECONDS = 3, 30
Document = dict[str, Any]
Entropy = Callable[[str], bytes]
"""32 bytes for a name. A device takes them from the system, a test from anywhere."""


class State:
    """The file of a device."""

    def __init__(self, path: Path, entropy: Entropy, day: int) -> None:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            path.chmod(0o600)
            self._base = sqlite3.connect(str(path), timeout=PATIENCE_SECONDS, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            refuse("state", f"{path} cannot be opened: {error}", "name a file that can be written")
        try:
            self._base.execute("pragma secure_delete = on")
            self._base.execute("pragma synchronous = extra")
            with self._base:
                self._base.execute("begin immediate")
                self._prepare(entropy, day)
        except (ValueError, sqlite3.Error) as error:
            self.close()
            refuse("state", f"{path} cannot be used as the state of a device: {error}", "name another file")

    def _prepare(self, entropy: Entropy, day: int) -> None:
        """Make the table, of a new file, or of one that version 0.1 has written."""
        tables = {name for (name,) in self._base.execute("select name from sqlite_master where type = 'table'")}
        document: Document = {"format": FORMAT, "day": day, "keys": {}, "kept": {}, "surveys": {}, "charges": []}
        if "state" in tables:
            document = json.loads(self._base.execute("select document from state").fetchone()[0])
        elif tables:
            _move(self._base, document, entropy)
        if document["format"] != FORMAT:
            raise ValueError("it is of another release of hearsay")
        if "state" not in tables:
            for table in tables:
                self._base.execute(f"drop table {table}")
            self._base.execute("create table state (document text not null)")
            self._base.execute("insert into state values (?)", (json.dumps(document),))

    def close(self) -> None:
        self._base.close()

    @contextmanager
    def change(self, keep: bool = True) -> Iterator[Document]:
        """The document; what is changed in it inside is stored, all or nothing, or not kept. Other processes wait."""
        with self._base:
            try:
                self._base.execute("begin immediate")
            except sqlite3.OperationalError as error:
                refuse("state", f"the file cannot be used: {error}", "if another process uses it, wait, or stop that")
            (text,) = self._base.execute("select document from state").fetchone()
            document = json.loads(text)
            yield document
            changed = json.dumps(document)
            if keep and changed != text:
                self._base.execute("update state set document = ?", (changed,))


def key_of(document: Document, entropy: Entropy) -> Callable[..., bytes]:
    """By an id and a purpose: the AES key. The key of an id is drawn at its first use."""

    def key(known: str, *purpose: str) -> bytes:
        kept = document["kept"].get(" ".join([known, *purpose]))
        if kept is not None:
            return bytes.fromhex(kept)
        if known not in document["keys"]:
            document["keys"][known] = entropy(known).hex()
        return derived(bytes.fromhex(document["keys"][known]), *purpose)

    return key


def _move(base: sqlite3.Connection, document: Document, entropy: Entropy) -> None:
    """From a file of version 0.1, which has one secret for life: the keys of its memos are kept, the secret is not."""
    form, secret = base.execute("select format, secret from device").fetchone()
    document["format"] = FORMAT if form == 2 else None

    def keep(known: str, purpose: str, *old: str) -> None:
        document["kept"][f"{known} {purpose}"] = derived(secret, *old).hex()

    def select(what: str, order: str = "") -> list[Any]:
        return base.execute(f"select {what} where survey = ? {order}", (survey,)).fetchall()

    columns = "id, fingerprint, terms, answers, settled, delivered"
    for survey, fingerprint, data, answers, settled, delivered in base.execute(f"select {columns} from surveys"):
        with suppress(DeviceError):  # terms that this version does not answer
            terms = read_terms(bytes(data))
            keep(f"{survey} sampled", "sampled", "sampled", survey, fingerprint)
            keep(f"{survey} turn", "turn", "place", survey, fingerprint)
            for name in (question.name for question in terms.questions):
                for purpose in ("memo", "trait"):
                    old = (purpose, survey, fingerprint, name)
                    keep(f"{survey} {name}", purpose, *old)
                    keep(survey, f"{purpose} {survey} {name}", *old)
            cells: dict[str, list[int]] = {}
            for name, cell in select("attribute, cell from cells", "order by place"):
                cells.setdefault(name, []).append(cell)
            stays = dict(select("attribute, cell from stays"))
            owed = [
                {"period": period, "report": bytes(report).decode(), "says": json.loads(says), "unlisted": [],
                 "not_before": 0, "attempted": True, "refused": False}
                for period, report, says in select("period, report, says from owed")
            ]  # fmt: skip
            begin = 0 if settled is None else settled + 1
            respondent = Respondent(terms, key_of(document, entropy), listed=True)
            respondent.draw_keys()
            lines = {each.id: each.line(answers, document["day"] if answers else None) for each in respondent.asked}
            document["surveys"][survey] = {
                "fingerprint": fingerprint, "terms": bytes(data).decode(), "listed": True, "credential": None,
                "key": entropy(f"period {survey} {begin}").hex(), "key_period": begin, "settled": settled,
                "attempted": delivered, "cells": cells, "stays": stays, "asked": lines, "owed": owed,
            }  # fmt: skip
            for each in respondent.asked if answers else ():
                document["charges"].append([document["day"], survey, each.id, each.cost(answers)])
