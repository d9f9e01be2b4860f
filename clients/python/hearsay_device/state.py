"""The state of a device, one JSON document in one SQLite file, and what is done to it.

    {"format": 3, "day": last day, "keys": {id: key}, "kept": {id and purpose: key of version 0.1},
     "surveys": {id: what was joined}, "charges": [[day, survey, question, amount], ...]}

It has no list of memos: that would be a list of true values. Cells are stored only where a cap needs them. What is
deleted is overwritten; flash memory may keep old pages nevertheless.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from math import floor, log2
from pathlib import Path
from typing import Any, Callable, NamedTuple

from hearsay_device.draws import Draws, derived, next_key
from hearsay_device.errors import refuse
from hearsay_device.limits import WEEK, YEAR, Ledger, Limits, shared_bits
from hearsay_device.respondent import Document, Entropy, Respondent
from hearsay_device.terms import DAY, Terms, read_terms

FORMAT, PATIENCE_SECONDS = 3, 30
LONGEST_DELAY = 2.0  # seconds between settling and sending, so that how long settling took does not show
HARMLESS_BITS, SPARE_BITS = 1.0, 10.0  # two reports may have so many in common; a crowd hides log2 of its size, less 10
Values = Mapping[str, Any]


class Report(NamedTuple):
    """A report, and what it `says`: the values that each answer speaks for; `unlisted`: whose values are not listed."""

    period: int
    report: bytes
    says: dict[str, tuple[str, ...]]
    unlisted: tuple[str, ...] = ()


class State:
    """The file of a device. `base` is to be closed."""

    def __init__(self, path: Path, limits: Limits, now: Callable[[], float], entropy: Entropy) -> None:
        self._limits, self._now, self._entropy = limits, now, entropy
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            path.chmod(0o600)
            self.base = sqlite3.connect(str(path), timeout=PATIENCE_SECONDS, isolation_level=None)
            self.base.execute("pragma secure_delete = on")
            self.base.execute("pragma synchronous = extra")
            with self.base:
                self.base.execute("begin immediate")
                tables = {name for (name,) in self.base.execute("select name from sqlite_master where type = 'table'")}
                if not tables:
                    document = {"format": FORMAT, "day": floor(now()) // DAY, "keys": {}, "kept": {}, "surveys": {}}
                    self.base.execute("create table state (document text not null)")
                    self.base.execute("insert into state values (?)", (json.dumps({**document, "charges": []}),))
                elif "state" not in tables:
                    raise ValueError("it is of release 0.1; open it once with release 0.2, which moves it")
                elif json.loads(self.base.execute("select document from state").fetchone()[0])["format"] != FORMAT:
                    raise ValueError("it is of another release of hearsay")
        except (OSError, ValueError, sqlite3.Error) as error:
            if hasattr(self, "base"):
                self.base.close()
            refuse("state", f"{path} cannot be used as the state of a device: {error}", "name another file")

    @contextmanager
    def change(self, keep: bool = True) -> Iterator[Change]:
        """What is changed in the document inside is stored, all or nothing, or not kept. Other processes wait."""
        with self.base:
            try:
                self.base.execute("begin immediate")
            except sqlite3.OperationalError as error:
                refuse("state", f"the file cannot be used: {error}", "if another process uses it, wait, or stop that")
            (text,) = self.base.execute("select document from state").fetchone()
            document = json.loads(text)
            yield Change(document, self._limits, self._now, self._entropy)
            changed = json.dumps(document)
            if keep and changed != text:
                self.base.execute("update state set document = ?", (changed,))


class Change(Ledger):
    """The document of a device in change. What is refused may leave it half changed: then it is not stored."""

    def __init__(self, document: Document, limits: Limits, now: Callable[[], float], entropy: Entropy) -> None:
        super().__init__(document)
        self._limits, self._now, self._entropy = limits, now, entropy

    def joined(self, survey: str) -> Document:
        joined: Document = self.surveys.get(survey, {"terms": None})
        if joined["terms"] is None:
            refuse("unknown", f"this device has not joined survey {survey!r}", "call send, or join with its terms")
        return joined

    def terms(self, survey: str) -> Terms:
        return read_terms(self.joined(survey)["terms"].encode())

    def join(self, terms: Terms, data: bytes, pinned: bool, credential: bool | None) -> None:
        """Keep terms that were verified; what they may charge in a year is reserved if they are `pinned`."""
        new: Document = {
            "settled": None, "attempted": None, "listed": False, "cells": {}, "stays": {}, "asked": {}, "terms": None,
            "fingerprint": terms.fingerprint,
        }  # fmt: skip
        before = self.surveys.get(terms.id, new)
        if before["fingerprint"] != terms.fingerprint:
            refuse("changed", f"the terms of survey {terms.id!r} have changed", "do not answer it")
        if before["terms"] is not None:
            return
        joined = self.surveys[terms.id] = {**before, "owed": [], "terms": data.decode(), "credential": credential}
        self.draw_key(terms.id, max(0, self.period(terms), after(before["settled"])))
        respondent = self._respondent(terms.id)
        respondent.draw_keys()
        for each in respondent.asked:
            line = joined["asked"].setdefault(each.id, each.line())
            line["reserved"] = each.cost(terms.answers_in(YEAR)) if pinned else 0.0
        self._refuse_linked(terms.id)
        self.pass_days()
        # What comes next must fit: one answer, and with a credential those of a week.
        trial, more = Ledger(deepcopy(self.document)), terms.answers_in(WEEK) - 1 if credential else 0
        for each in respondent.asked:
            trial.charge(terms.id, each)
            trial.document["charges"] += [[self.document["day"], terms.id, each.id, 0.0]] * more
        self._limits.check(terms.id, trial)

    def settle(self, survey: str, values: Values, credential: bool | None) -> Report:
        """Make the report of this period and store it, or return the one that was made."""
        joined, terms = self.joined(survey), self.terms(survey)
        if (credential and not joined["credential"]) or (credential is not None and joined["credential"] is None):
            joined["credential"] = credential
            self._refuse_linked(survey)
        period, settled = self.period(terms), joined["settled"]
        if period < 0:
            refuse("early", f"survey {survey!r} has not begun", "wait")
        if period > terms.calendar.last:
            refuse("over", f"survey {survey!r} is over", "leave it")
        if owed := self.owed(survey, period):
            return report_of(owed)
        if period < after(settled):
            refuse("reported", f"survey {survey!r}: period {period} is reported", "wait for the next one")
        self._limits.check_terms(terms)
        respondent = self._respondent(survey)
        asked = respondent.asked if respondent.answers_in(period) else []
        self.pass_days()
        for each in asked:
            self.charge(survey, each)
        self._limits.check(survey, self)
        key = bytes.fromhex(joined["key"])
        for _ in range(period - joined["key_period"]):
            key = next_key(key)
        places, unlisted = terms.places(values, joined["stays"])
        answers, says = {}, {}
        for each in asked:
            for question in each.questions:
                cell = respondent.cell(each, question, places, key)
                if not each.fresh and each.cap < question.states:  # at the cap, the last cell for good
                    cells = joined["cells"].setdefault(question.name, [])
                    if len(cells) < each.cap and cell not in cells:
                        cells.append(cell)
                    cell = cells[-1] if len(cells) >= each.cap else cell
                answers[question.name], says[question.name] = respondent.answer(each, question, cell, key)
        first, second = Draws(derived(key, "token", survey, terms.fingerprint)).longs(2)
        gap = terms.horizon if settled is None else min(terms.horizon, period - settled)
        flags = terms.calendar.flags(period, settled, terms.units or ())
        content = {
            "survey": survey, "fingerprint": terms.fingerprint, "period": f"{period:08x}",
            "token": f"{first or second | 1:016x}",  # not zero, and the same for every attempt
            **({"gap": f"{gap:04x}"} if terms.units is None else {"flags": f"{flags:02x}"}), "answers": answers,
        }  # fmt: skip
        delay = LONGEST_DELAY * int.from_bytes(self._entropy(f"delay {survey} {period}")[:8], "little") / 2**64
        owed = {
            "period": period, "report": json.dumps(content, separators=(",", ":")), "says": says, "unlisted": unlisted,
            "not_before": self._now() + delay, "attempted": False, "refused": False,
        }  # fmt: skip
        joined["owed"].append(owed)
        joined.update(settled=period, key=next_key(key).hex(), key_period=period + 1)
        return report_of(owed)

    def drop_late(self, survey: str) -> list[int]:
        """A report is not sent after its period's end and the survey's grace; returns what was dropped."""
        terms, periods = self.terms(survey), [owed["period"] for owed in self.joined(survey)["owed"]]
        late = [each for each in periods if self._now() >= terms.calendar.begin(each + 1) + terms.grace]
        for period in late:
            self.forget(survey, period, sent=False)
        return late

    def _refuse_linked(self, survey: str) -> None:
        """Surveys that share a question can be linked like two periods of one."""
        terms, own = self.terms(survey), {each.id: each for each in self._respondent(survey).asked if not each.fresh}
        for name in [name for name in self.surveys if name != survey and self.surveys[name]["terms"] is not None]:
            theirs = self.terms(name)
            crowd = log2(min(terms.devices, theirs.devices)) - SPARE_BITS if terms.devices and theirs.devices else 0.0
            mixed = {self.surveys[each]["credential"] for each in (survey, name)} == {True, False}
            for each in self._respondent(name).asked:
                if each.fresh or each.id not in own:
                    continue
                pairs = [(a, b) for a in own[each.id].questions for b in each.questions if a.id == b.id]
                bits = sum(shared_bits(a, b) for a, b in pairs) - log2(min(pairs[0][0].share, pairs[0][1].share))
                if mixed or bits > max(HARMLESS_BITS, crowd):
                    why = "one of them has a credential" if mixed else f"{bits:.2g} bits are the same"
                    refuse("linked", f"survey {survey!r} asks what {name!r} asks: {why}", "leave one of them")

    def _respondent(self, survey: str) -> Respondent:
        return Respondent(self.terms(survey), self.document, self._entropy)

    def draw_key(self, survey: str, period: int) -> None:
        key = self._entropy(f"period {survey} {period}").hex()
        self.surveys[survey].update(key=key, key_period=period)

    def period(self, terms: Terms) -> int:
        return terms.calendar.of(floor(self._now()))

    def pass_days(self) -> None:
        """A device's days never go back."""
        self.document["day"] = max(self.document["day"], floor(self._now()) // DAY)

    def owed(self, survey: str, period: int) -> dict[str, Any]:
        """The report of a period that is owed, if it is."""
        return next((owed for owed in self.surveys[survey]["owed"] if owed["period"] == period), {})

    def forget(self, survey: str, period: int, sent: bool) -> None:
        """A report was delivered, or is of no use any more."""
        joined, owed = self.surveys[survey], self.owed(survey, period)
        if owed and (sent or (owed["attempted"] and not owed["refused"])):
            joined["attempted"] = max(period, after(joined["attempted"]) - 1)
        joined["owed"] = [each for each in joined["owed"] if each["period"] != period]


def after(period: int | None) -> int:
    """The next period; after none, the first."""
    return 0 if period is None else period + 1


def report_of(owed: dict[str, Any]) -> Report:
    says = {name: tuple(values) for name, values in owed["says"].items()}
    return Report(owed["period"], owed["report"].encode(), says, tuple(owed["unlisted"]))
