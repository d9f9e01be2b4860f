"""One person's device: it settles a report (makes and stores it), then sends these bytes until they have arrived."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Callable, NamedTuple

from hearsay_device.errors import DeviceError, refuse
from hearsay_device.limits import Limits, require_within_budgets
from hearsay_device.respondent import Entropy
from hearsay_device.state import LONGEST_DELAY, Report, State, Values, after, report_of
from hearsay_device.terms import read_terms


class Sent(NamedTuple):
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

    Whether, when and how often it sends is never a function of a value. `now`, `wait` and `entropy` are for tests: by
    default they are the system's clock, its sleep and its randomness.
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
        self._limits, self._now, self._wait = limits or Limits(), now, wait
        self._state = State(Path(path), self._limits, now, entropy)
        self._change = self._state.change

    def __enter__(self) -> Device:
        return self

    def close(self, *_: object) -> None:
        self._state.base.close()

    __exit__ = close

    def send(
        self,
        url: str,
        survey: str,
        values: Values,
        *,
        pin: str | None = None,
        author: str | None = None,
        bearer: str | None = None,
        timeout: float = 20.0,
        trust_first_use: bool = False,
    ) -> Sent:
        """Report this period through a gateway. Call it by the clock, not by the event.

        At the first use the survey's terms are fetched. `pin` is their fingerprint; `author` is the public key of
        whoever signs them. Without both they are accepted from this machine only, or with `trust_first_use`. Earlier
        reports that are still owed are sent first. `timeout` is for each request, in seconds; `bearer` is a credential,
        if one is needed.
        """
        from hearsay_device.gateway import Gateway  # half of what importing this package would cost

        gateway, credential, trusted = Gateway(url, timeout, bearer), bearer is not None, trust_first_use
        with self._change() as change:
            joined = change.surveys.get(survey, {"terms": None})
        if joined["terms"] is None:
            terms, signature = gateway.terms(survey)
            if read_terms(terms).id != survey:
                refuse("terms", f"{gateway.address} answered with another survey", "do not answer it")
            known = {"pin": pin, "author": author, "signature": signature}
            self.join(terms, **known, trust_first_use=trusted or gateway.loopback, credential=credential)
        elif pin not in (None, joined["fingerprint"]):
            refuse("pin", f"survey {survey!r}: its terms are not those that were pinned", "do not answer it")
        failed, report = None, None
        try:
            with self._change() as change:
                report = change.settle(survey, values, credential)
        except DeviceError as error:
            failed = error  # what is owed is sent all the same
        delivered, dropped, copied = self._send_owed(gateway.post, survey)
        if failed is not None and failed.code != "reported":
            raise failed
        with self._change() as change:
            period = change.surveys[survey]["settled"] if report is None else report.period
        status = "reported" if period in delivered else "already reported"
        return Sent(period, status, () if report is None else report.unlisted, tuple(dropped), copied)

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
            read.require_signature(author, signature)
        elif pin is None and not trust_first_use:
            refuse("pin", f"survey {read.id!r}: its terms are not pinned", f"if right, give pin={read.fingerprint!r}")
        if pin not in (None, read.fingerprint):
            refuse("pin", f"survey {read.id!r}: its terms are not those that were pinned", "do not answer it")
        require_within_budgets(read)
        read.verify()
        self._limits.check_terms(read)
        with self._change() as change:
            change.join(read, terms, pin is not None or author is not None, credential)
        return read.id

    def preview(self, survey: str, values: Values) -> Report:
        """The report of this period: as it is settled, or as these values would make it. Nothing is stored or sent."""
        with self._change(keep=False) as change:
            return change.settle(survey, values, None)

    def settle(self, survey: str, values: Values) -> Report:
        """Make and store the report of this period, once, whatever values come later; for programs that send it."""
        self._drop_late(survey)
        with self._change() as change:
            return change.settle(survey, values, None)

    def owed(self, survey: str) -> list[Report]:
        """The reports that are settled, not delivered, and still taken; oldest first."""
        self._drop_late(survey)
        with self._change() as change:
            return [report_of(owed) for owed in change.joined(survey)["owed"]]

    def confirm(self, survey: str, period: int) -> None:
        """Record that a settled report has arrived; for programs that send it themselves."""
        with self._change() as change:
            change.joined(survey)
            change.forget(survey, period, sent=True)

    def leave(self, survey: str) -> None:
        """Answer a survey no more: erase its terms, owed reports and period key, and free what it had reserved."""
        with self._change() as change:
            joined = change.joined(survey)
            joined.update(terms=None, key=None, owed=[])
            for line in joined["asked"].values():
                line["reserved"] = 0.0

    def forget_clock(self, survey: str) -> None:
        """If the clock was far ahead: go back to the last period whose report was sent and not refused as too early."""
        with self._change() as change:
            joined = change.joined(survey)
            sent = [owed["period"] for owed in joined["owed"] if owed["attempted"] and not owed["refused"]]
            begin = max(map(after, [joined["attempted"], *sent]))
            joined["owed"] = [owed for owed in joined["owed"] if owed["period"] < begin]
            joined["settled"] = begin - 1 if begin else None
            change.draw_key(survey, begin)

    def explain(self) -> dict[str, Any]:
        """What its reports may tell, for the person whose device it is.

        `report` and `value`: how often the right one of two equally likely answers is guessed, from one report of a
        survey, and from all reports of a year about a value that stays as it is. `year`: how many answers were given,
        what they were charged, and what surveys have reserved. `shared`: surveys that ask the same.
        """
        with self._change() as change:
            change.pass_days()
            return change.explain(self._limits.year)

    def check(self, terms: bytes, possible: Mapping[str, Iterable[Any]]) -> dict[str, list[Any]]:
        """For tests of an app: which of its possible values a survey does not list; of no values given, None."""
        unlisted = {}
        for each in read_terms(terms).attributes:
            values = possible.get(each.name, [None])
            unlisted[each.name] = [value for value in values if each.place(value, None) is None]
        return {name: values for name, values in unlisted.items() if values}

    def _send_owed(self, post: Callable[[bytes, str], bool], survey: str) -> tuple[list[int], list[int], bool]:
        """Send what is owed, oldest first: the periods that were delivered, those that are late, and whether a copy."""
        delivered: list[int] = []
        late, copied = self._drop_late(survey), False
        with self._change() as change:
            begun = change.period(change.terms(survey))  # of a period that has not begun, the clock was ahead
            waiting = [each for each in change.joined(survey)["owed"] if each["period"] <= begun]
        for period, not_before in ((each["period"], each["not_before"]) for each in waiting):
            self._wait(min(LONGEST_DELAY, max(0.0, not_before - self._now())))
            late += self._drop_late(survey)
            with self._change() as change:
                owed = change.owed(survey, period)
                first = not owed.get("attempted")
                owed.update(attempted=True, refused=False)
            if "report" not in owed:
                continue  # late by now, or another process has delivered it
            try:
                repeated = post(owed["report"].encode(), f"period {period} of survey {survey!r}")
            except DeviceError as error:
                with self._change() as change:
                    change.owed(survey, period).update(refused=error.code == "ahead")
                raise
            with self._change() as change:
                change.forget(survey, period, sent=True)
            copied = copied or (repeated and first)
            delivered.append(period)
        return delivered, late, copied

    def _drop_late(self, survey: str) -> list[int]:
        with self._change() as change:
            return change.drop_late(survey)
