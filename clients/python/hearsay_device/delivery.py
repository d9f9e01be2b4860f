"""What a call of `send` does with a gateway, which may be anybody, and what it tells the app."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, NamedTuple

from hearsay_device.errors import DeviceError
from hearsay_device.respondent import Document
from hearsay_device.settling import Report
from hearsay_device.state import Change, State

if TYPE_CHECKING:  # half of what importing this package would cost
    from hearsay_device.gateway import Gateway


class Sent(NamedTuple):
    """What `send` did.

    `status`: `reported`, if this period's report was delivered now; `already reported`, if before;
    `owed`, if a later call sends it. `unlisted`: whose values the survey does not list. `dropped`:
    earlier periods whose reports were never delivered, and are of no use any more. `again_at`: when
    the next owed report is due, in seconds since 1970; None if nothing is owed. `doubt`: `clock`, if
    the gateway says that a period has not begun which has begun by this clock: one of both is wrong.
    """

    period: int
    status: str
    unlisted: tuple[str, ...]
    dropped: tuple[int, ...]
    again_at: float | None
    doubt: str | None


class Delivery:
    """One call. `wait` is the system's sleep."""

    def __init__(
        self,
        gateway: Gateway,
        survey: str,
        state: State,
        now: Callable[[], float],
        wait: Callable[[float], None],
    ) -> None:
        self._gateway = gateway
        self._survey = survey
        self._change = state.change
        self._now = now
        self._wait = wait
        self._delivered: list[int] = []
        self._doubt: str | None = None

    def send_one(self, spread: float | None, patience: float) -> None:
        """Send one report that is due, or becomes due within so many seconds."""
        due = self.next_due()
        if due is None or due > self._now() + patience:
            return
        if due > self._now():
            self._wait(due - self._now())
        with self._change() as change:
            change.drop_late(self._survey)
            owed = change.attempt(self._survey, max(due, self._now()), spread)
        if owed is not None:  # otherwise it is late by now, or another process has delivered it
            self._post(owed)

    def send_all(self) -> None:
        """Send all that is owed, oldest first, until an attempt fails."""
        with self._change() as change:
            waiting = [owed["period"] for owed in change.sendable(self._survey)]
        for period in waiting:
            if self._doubt is not None:
                return
            with self._change() as change:
                change.drop_late(self._survey)
                owed = change.attempt_now(self._survey, period)
            if owed is not None:
                self._post(owed)

    def outcome(self, report: Report | None) -> Sent:
        """What the app is told. Without a report this period was settled and delivered before."""
        with self._change() as change:
            period = self._latest(change) if report is None else report.period
            status = "already reported"
            if period in self._delivered:
                status = "reported"
            elif change.owed(self._survey, period):
                status = "owed"
            unlisted = () if report is None else report.unlisted
            dropped = change.dropped(self._survey)
            again_at = change.next_due(self._survey)
        return Sent(period, status, unlisted, dropped, again_at, self._doubt)

    def _latest(self, change: Change) -> int:
        """This period; if the clock has gone back, the last that was settled."""
        present = change.period(change.terms(self._survey))
        settled = change.joined(self._survey)["settled"]
        return present if settled is None else max(present, settled)

    def _post(self, owed: Document) -> None:
        """One attempt. That a period has not begun is not believed: by this clock it has."""
        period = owed["period"]
        what = f"period {period} of survey {self._survey!r}"
        try:
            begun = self._gateway.post(owed["report"].encode(), what)
        except DeviceError as error:
            error.again_at = self.next_due()
            raise
        if not begun:
            self._doubt = "clock"
            return
        with self._change() as change:
            change.forget(self._survey, period)
        self._delivered.append(period)

    def next_due(self) -> float | None:
        with self._change() as change:
            change.drop_late(self._survey)
            return change.next_due(self._survey)
