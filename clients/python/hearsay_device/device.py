"""One person's device. It answers surveys, and trusts nobody (docs/device-protocol.md).

The order is always: settle (the report of a period is made and stored), then send. Whatever happens in between, the
same bytes are sent again, or none. Whether, when and how often it sends is never a function of a value.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from math import floor, log2
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

from hearsay_device.calendar import DAY
from hearsay_device.draws import Draws, derived, next_key
from hearsay_device.errors import DeviceError, refuse
from hearsay_device.limits import WEEK, Document, Limits, chance, charge, committed, recent_charges, reserved, value
from hearsay_device.losses import hidden_bits, report_loss, require_within_budgets, shared_bits
from hearsay_device.questions import question_id
from hearsay_device.respondent import Asked, Respondent, place_of
from hearsay_device.signatures import require_signature
from hearsay_device.state import Entropy, State, key_of
from hearsay_device.terms import Terms, read_terms

if TYPE_CHECKING:
    from hearsay_device.gateway import Gateway

TIMEOUT_SECONDS = 20.0
LONGEST_DELAY = 2.0  # seconds between settling and sending, so that how long settling took does not show
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Report:
    """A report as it is sent. `says`: for each answered attribute the values that the answer speaks for.

    `unlisted` names the attributes whose value was not one of the survey's.
    """

    period: int
    report: bytes
    says: dict[str, tuple[str, ...]]
    unlisted: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sent:
    """What `send` did. `status`: `reported`, or `already reported` if this period's report was delivered before.

    `dropped` are earlier periods whose reports were never delivered, and are of no use any more. `copied`: the gateway
    had a report before it was first sent, so a copy of this file may be in use, or the gateway is wrong.
    """

    period: int
    status: str
    unlisted: tuple[str, ...]
    dropped: tuple[int, ...]
    copied: bool


class Device:
    """A device for one person's machine: it answers surveys within limits, and keeps its state in one SQLite file.

    `now`, `wait` and `entropy` are for tests: by default they are the system's clock, its sleep and its randomness.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        limits: Limits | None = None,
        now: Callable[[], float] = time.time,
        wait: Callable[[float], None] = time.sleep,
        entropy: Entropy = lambda _: os.urandom(32),
    ) -> None:
        self._limits, self._now, self._wait, self._entropy = limits or Limits(), now, wait, entropy
        self._state = State(Path(path), entropy, self._day)

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._state.close()

    def send(
        self,
        url: str,
        survey: str,
        values: Values,
        *,
        pin: str | None = None,
        author: str | None = None,
        bearer: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        trust_first_use: bool = False,
    ) -> Sent:
        """Report this period through a gateway. Call it by the clock, not by the event.

        At the first use the survey's terms are fetched. `pin` is their fingerprint; `author` is the public key of
        whoever signs them. Without both they are accepted from this machine only, or with `trust_first_use`. Earlier
        reports that are still owed are sent first. `timeout` is for each request, in seconds; `bearer` is a credential,
        if one is needed.
        """
        from hearsay_device.gateway import Gateway  # half of what importing this package would cost

        gateway = Gateway(url, timeout, bearer)
        with self._state.change() as document:
            joined = document["surveys"].get(survey, {}).get("terms")
            if joined is not None and pin not in (None, document["surveys"][survey]["fingerprint"]):
                _not_pinned(survey)
        if joined is None:
            terms, signature = gateway.terms(survey)
            if read_terms(terms).id != survey:
                refuse("terms", f"{gateway.address} answered with another survey", "do not answer it")
            trusted = trust_first_use or gateway.loopback
            known = {"pin": pin, "author": author, "signature": signature}
            self.join(terms, **known, trust_first_use=trusted, credential=bearer is not None)
        dropped, failed, report = self._drop_late(survey), None, None
        try:
            with self._state.change() as document:
                report = self._settle(document, survey, values, bearer is not None)
        except DeviceError as error:
            failed = error  # what is owed is sent all the same
        delivered, late, copied = self._send_owed(gateway, survey)
        if failed is not None and failed.code != "reported":
            raise failed
        with self._state.change() as document:
            period = document["surveys"][survey]["settled"] if report is None else report.period
        status = "reported" if period in delivered else "already reported"
        return Sent(period, status, () if report is None else report.unlisted, (*dropped, *late), copied)

    def join(
        self,
        terms: bytes,
        *,
        pin: str | None = None,
        author: str | None = None,
        signature: str | None = None,
        trust_first_use: bool = False,
        credential: bool | None = None,
    ) -> str:
        """Verify the terms of a survey and keep them; returns its id. For programs that have the terms already.

        `credential`: whether reports will be sent with one, which links them.
        """
        read = read_terms(terms)
        if author is not None:
            require_signature(read, author, signature)
        elif pin is None and not trust_first_use:
            refuse("pin", f"survey {read.id!r}: there is no fingerprint to compare its terms with",
                   f"give pin={read.fingerprint!r}, if these are the terms that you mean")  # fmt: skip
        if pin not in (None, read.fingerprint):
            _not_pinned(read.id)
        require_within_budgets(read)
        read.verify()
        self._limits.check_terms(read)
        with self._state.change() as document:
            self._join(document, read, terms, pin is not None or author is not None, credential)
        return read.id

    def preview(self, survey: str, values: Values) -> Report:
        """What the report of this period says: the one that is settled, or the one that these values would make.

        Nothing is stored or sent.
        """
        with self._state.change() as document:
            return self._settle(deepcopy(document), survey, values, None)

    def settle(self, survey: str, values: Values) -> Report:
        """Make the report of this period and store it. Settled again, it is the first one, whatever the values.

        For programs that send it themselves (`owed`, `confirm`).
        """
        self._drop_late(survey)
        with self._state.change() as document:
            return self._settle(document, survey, values, None)

    def owed(self, survey: str) -> list[Report]:
        """The reports that are settled, not delivered, and still taken; oldest first."""
        self._drop_late(survey)
        with self._state.change() as document:
            return [_report(owed) for owed in self._joined(document, survey)["owed"]]

    def confirm(self, survey: str, period: int) -> None:
        """Record that a settled report has arrived; for programs that send it themselves."""
        with self._state.change() as document:
            self._forget(self._joined(document, survey), period, sent=True)

    def leave(self, survey: str) -> None:
        """Answer a survey no more: erase its terms, owed reports and period key, and free what it had reserved."""
        with self._state.change() as document:
            joined = self._joined(document, survey)
            joined.update(terms=None, key=None, owed=[])
            for line in joined["asked"].values():
                line["reserved"] = 0.0

    def forget_clock(self, survey: str) -> None:
        """Go back to the last period whose report was sent and not refused as too early, with a new period key.

        For a device whose clock was far ahead, and which has settled periods that have not begun.
        """
        with self._state.change() as document:
            joined = self._joined(document, survey)
            sent = [owed["period"] for owed in joined["owed"] if owed["attempted"] and not owed["refused"]]
            last = max([-1 if joined["attempted"] is None else joined["attempted"], *sent])
            joined["owed"] = [owed for owed in joined["owed"] if owed["period"] <= last]
            key = self._period_key(survey, last + 1)
            joined.update(settled=None if last < 0 else last, key=key, key_period=last + 1)

    def explain(self) -> dict[str, Any]:
        """What its reports may tell, for the person whose device it is.

        `report` and `value`: how often the right one of two equally likely answers is guessed, from one report of a
        survey, and from all reports of a year about a value that stays as it is. `year`: how many answers were given,
        what they were charged, and what surveys have reserved. `shared`: surveys that ask the same.
        """
        with self._state.change() as document:
            document["day"] = max(document["day"], self._day)
            surveys, recent = document["surveys"], recent_charges(document)
            names = {name for joined in surveys.values() for line in joined["asked"].values() for name in line["reads"]}
            asking: dict[str, list[str]] = {}
            for survey in sorted(surveys):
                for question in surveys[survey]["asked"]:
                    asking.setdefault(question, []).append(survey)
            return {
                "report": {
                    survey: chance(report_loss(_terms(joined)))
                    for survey, joined in surveys.items()
                    if joined["terms"] is not None
                },
                "value": {name: chance(value(document, name)) for name in sorted(names)},
                "year": {
                    "answers": len(recent),
                    "charged": sum(amount for *_, amount in recent),
                    "committed": sum(committed(document, survey) for survey in surveys),
                    "limit": self._limits.year,
                },
                "week": "whoever knows which reports are yours can see that and when your answer changed",
                "shared": [each for each in asking.values() if len(each) > 1],
            }

    def check(self, terms: bytes, possible: Mapping[str, Iterable[Any]]) -> dict[str, list[Any]]:
        """For tests of an app: which of its possible values a survey does not list, by attribute.

        An attribute for which the app gives no values has None among them.
        """
        given = {a: possible.get(a.name, [None]) for a in read_terms(terms).attributes}
        unlisted = {a.name: [each for each in given[a] if place_of(a, each, None) is None] for a in given}
        return {name: values for name, values in unlisted.items() if values}

    def _join(self, document: Document, terms: Terms, data: bytes, pinned: bool, credential: bool | None) -> None:
        before = document["surveys"].get(terms.id, {"settled": None, "attempted": None, "listed": False, "asked": {}})
        if before.get("fingerprint", terms.fingerprint) != terms.fingerprint:
            refuse("changed", f"the terms of survey {terms.id!r} have changed", "do not answer it")
        if before.get("terms") is not None:
            return
        period = max(0, self._period(terms), 0 if before["settled"] is None else before["settled"] + 1)
        joined = document["surveys"][terms.id] = {
            "cells": {}, "stays": {}, **before, "owed": [], "fingerprint": terms.fingerprint, "terms": data.decode(),
            "credential": credential, "key": self._period_key(terms.id, period), "key_period": period,
        }  # fmt: skip
        respondent = self._respondent(document, joined)
        asked = respondent.asked
        respondent.draw_keys()
        for each in asked:
            line = joined["asked"].setdefault(each.id, each.line())
            line["reserved"] = reserved(terms, each) if pinned else 0.0
        self._refuse_linked(document, terms.id)
        document["day"] = max(document["day"], self._day)
        # What comes next must fit: one answer, and with a credential those of a week.
        trial = deepcopy(document)
        per_week = -(-WEEK * DAY // (terms.calendar.period * terms.one_in)) if credential else 1
        for each in asked:
            charge(trial, terms.id, each)
            trial["charges"] += [[trial["day"], terms.id, each.id, 0.0]] * (per_week - 1)
        self._limits.check(terms.id, trial)

    def _settle(self, document: Document, survey: str, values: Values, credential: bool | None) -> Report:
        joined = self._joined(document, survey)
        terms = _terms(joined)
        if (credential and not joined["credential"]) or (credential is not None and joined["credential"] is None):
            joined["credential"] = credential
            self._refuse_linked(document, survey)
        period, settled = self._period(terms), joined["settled"]
        if period < 0:
            refuse("early", f"survey {survey!r} has not begun", "wait")
        if period > terms.calendar.last:
            refuse("over", f"survey {survey!r} is over", "leave it")
        if settled is not None and period <= settled:
            for owed in joined["owed"]:
                if owed["period"] == period:
                    return _report(owed)
            refuse("reported", f"survey {survey!r}: period {period} is reported", "wait for the next one")
        self._limits.check_terms(terms)
        respondent = self._respondent(document, joined)
        asked = respondent.asked if respondent.answers_in(period) else ()
        document["day"] = max(document["day"], self._day)
        for each in asked:
            charge(document, survey, each)
        self._limits.check(survey, document)
        places, unlisted = _places(terms, values, joined["stays"])
        key = bytes.fromhex(joined["key"])
        for _ in range(period - joined["key_period"]):
            key = next_key(key)
        answers = {}
        for each in asked:
            for question in each.questions:
                cell = respondent.cell(each, question, places)
                if not each.fresh and each.cap < question.states:
                    cell = _held(joined["cells"].setdefault(question.name, []), each.cap, cell)
                answers[question.name] = respondent.answer(each, question, cell, key)
        content = {
            "survey": survey,
            "fingerprint": terms.fingerprint,
            "period": f"{period:08x}",
            "token": _token(terms, key),
            **_seen_before(terms, period, settled),
            "answers": {name: digits for name, (digits, _) in answers.items()},
        }
        drawn = int.from_bytes(self._entropy(f"delay {survey} {period}")[:8], "little") / 2**64
        owed = {
            "period": period,
            "report": json.dumps(content, separators=(",", ":")),
            "says": {name: says for name, (_, says) in answers.items()},
            "unlisted": unlisted,
            "not_before": self._now() + LONGEST_DELAY * drawn,
            "attempted": False,
            "refused": False,
        }
        joined["owed"].append(owed)
        joined.update(settled=period, key=next_key(key).hex(), key_period=period + 1)
        return _report(owed)

    def _send_owed(self, gateway: Gateway, survey: str) -> tuple[list[int], tuple[int, ...], bool]:
        """Send what is owed, oldest first: the periods that were delivered, those that are late, and whether a copy."""
        delivered: list[int] = []
        late: tuple[int, ...] = ()
        copied = False
        with self._state.change() as document:
            joined = self._joined(document, survey)
            begun = self._period(_terms(joined))  # of a period that has not begun, the clock was ahead
            waiting = [(each["period"], each["not_before"]) for each in joined["owed"] if each["period"] <= begun]
        for period, not_before in waiting:
            self._wait(min(LONGEST_DELAY, max(0.0, not_before - self._now())))
            late += self._drop_late(survey)
            with self._state.change() as document:
                owed = next((each for each in document["surveys"][survey]["owed"] if each["period"] == period), None)
                if owed is None:  # late by now, or another process has delivered it
                    continue
                again = owed["attempted"]
                owed.update(attempted=True, refused=False)
            outcome = gateway.post(owed["report"].encode())
            with self._state.change() as document:
                joined = document["surveys"][survey]
                if outcome == "too-far-ahead":
                    for each in joined["owed"]:
                        each["refused"] = each["refused"] or each["period"] == period
                elif outcome != "late":
                    self._forget(joined, period, sent=True)
            if outcome == "too-far-ahead":
                refuse("ahead", f"{gateway.address}: period {period} of survey {survey!r} has not begun there",
                       "look at this machine's clock; if it was wrong, set it and call forget_clock")  # fmt: skip
            if outcome == "late":
                refuse("late", f"{gateway.address}: period {period} of survey {survey!r} is closed there, but not by "
                       "this machine's clock", "look at the clock; it is sent again until then")  # fmt: skip
            copied = copied or (outcome == "repeat" and not again)
            delivered.append(period)
        return delivered, late, copied

    def _drop_late(self, survey: str) -> tuple[int, ...]:
        """A report is never sent after its period's end and the survey's grace; returns what was dropped."""
        with self._state.change() as document:
            joined = self._joined(document, survey)
            terms = _terms(joined)
            late = tuple(
                owed["period"]
                for owed in joined["owed"]
                if self._now() >= terms.calendar.begin(owed["period"] + 1) + terms.grace
            )
            for period in late:
                self._forget(joined, period, sent=False)
            return late

    @staticmethod
    def _forget(joined: dict[str, Any], period: int, sent: bool) -> None:
        """A report was delivered, or is of no use any more."""
        for owed in joined["owed"]:
            if owed["period"] == period and (sent or (owed["attempted"] and not owed["refused"])):
                joined["attempted"] = max(period, -1 if joined["attempted"] is None else joined["attempted"])
        joined["owed"] = [owed for owed in joined["owed"] if owed["period"] != period]

    def _refuse_linked(self, document: Document, survey: str) -> None:
        """Surveys that share a question can be linked like two periods of one."""
        joined = document["surveys"][survey]
        terms = _terms(joined)
        own = {each.id: each for each in self._respondent(document, joined).asked if not each.fresh}
        for name, other in document["surveys"].items():
            if name == survey or other["terms"] is None:
                continue
            theirs = _terms(other)
            crowd = None if None in (terms.devices, theirs.devices) else min(terms.devices or 1, theirs.devices or 1)
            for each in self._respondent(document, other).asked:
                if each.fresh or each.id not in own:
                    continue
                bits = _common(own[each.id], each) + max(_drawn_bits(terms, own[each.id]), _drawn_bits(theirs, each))
                credentials = {joined["credential"], other["credential"]} - {None}
                if len(credentials) > 1 or bits > hidden_bits(crowd):
                    why = "one of them has a credential" if len(credentials) > 1 else f"{bits:.2g} bits are the same"
                    refuse("linked", f"survey {survey!r} asks what {name!r} asks, and would link reports: {why}",
                           "do not answer it, or leave the other one")  # fmt: skip

    def _joined(self, document: Document, survey: str) -> dict[str, Any]:
        joined: dict[str, Any] = document["surveys"].get(survey, {})
        if joined.get("terms") is None:
            refuse("unknown", f"this device has not joined survey {survey!r}", "call send, or join with its terms")
        return joined

    def _respondent(self, document: Document, joined: dict[str, Any]) -> Respondent:
        return Respondent(_terms(joined), key_of(document, self._entropy), joined["listed"])

    def _period_key(self, survey: str, period: int) -> str:
        return self._entropy(f"period {survey} {period}").hex()

    def _period(self, terms: Terms) -> int:
        return terms.calendar.of(floor(self._now()))

    @property
    def _day(self) -> int:
        return floor(self._now()) // DAY


def _terms(joined: dict[str, Any]) -> Terms:
    return read_terms(joined["terms"].encode())


def _report(owed: dict[str, Any]) -> Report:
    says = {name: tuple(values) for name, values in owed["says"].items()}
    return Report(owed["period"], owed["report"].encode(), says, tuple(owed["unlisted"]))


def _places(terms: Terms, values: Values, stays: dict[str, int | None]) -> tuple[dict[str, int | None], list[str]]:
    """The place of each value, or None; and whose values are not listed. A missing position is the last one."""
    places, unlisted = {}, []
    for attribute in terms.attributes:
        last = stays.get(attribute.name)
        place = place_of(attribute, values.get(attribute.name), last)
        if place is None:
            unlisted.append(attribute.name)
        if attribute.grid is not None:
            place = stays[attribute.name] = last if place is None else place
        places[attribute.name] = place
    return places, unlisted


def _held(cells: list[int], cap: int, cell: int) -> int:
    """The cell whose memo is reported. At the cap it is the last one for good, whatever the value."""
    if len(cells) >= cap:
        return cells[-1]
    if cell not in cells:
        cells.append(cell)
    return cell


def _seen_before(terms: Terms, period: int, settled: int | None) -> dict[str, str]:
    """How long ago the device reported: the flags of calendar units, or the gap. Both count what was settled."""
    if terms.units is not None:
        return {"flags": f"{terms.calendar.flags(period, settled, terms.units):02x}"}
    return {"gap": f"{terms.horizon if settled is None else min(terms.horizon, period - settled):04x}"}


def _token(terms: Terms, key: bytes) -> str:
    """Not zero: the same for every attempt at one period, and nothing to another period's."""
    first, second = Draws(derived(key, "token", terms.id, terms.fingerprint)[:16]).longs(2)
    return f"{first or second | 1:016x}"


def _common(one: Asked, other: Asked) -> float:
    """Bits that answers to a question have in common."""
    named = {question_id(question): question for question in other.questions}
    return sum(shared_bits(question, named[question_id(question)]) for question in one.questions)


def _drawn_bits(terms: Terms, asked: Asked) -> float:
    """That a device answers this question, where it drew one and shows it."""
    return -log2(asked.questions[0].share) if terms.sampling and not terms.hides else 0.0


def _not_pinned(survey: str) -> None:
    refuse("pin", f"survey {survey!r}: its terms are not those that were pinned", "do not answer it")
