"""Sending what is owed: each report at a moment of its own; and what was settled by a wrong clock."""

from __future__ import annotations

from hearsay_device import periods
from hearsay_device.errors import refuse
from hearsay_device.moments import next_moment, share
from hearsay_device.respondent import Document
from hearsay_device.settling import Settling
from hearsay_device.terms import Terms

MOST_DROPPED = 100  # dropped periods that are remembered until the app is told


class Sending(Settling):
    """The document in change: what sending does to it."""

    def sendable(self, survey: str) -> list[Document]:
        """The owed reports, oldest first. Those of periods that have not begun wait: the clock was ahead."""
        begun = self.period(self.terms(survey))
        return [owed for owed in self.joined(survey)["owed"] if owed["period"] <= begun]

    def next_due(self, survey: str) -> float | None:
        """When the next of them is due; None: nothing is owed."""
        return min((owed["due"] for owed in self.sendable(survey)), default=None)

    def attempt(self, survey: str, moment: float, spread: float | None) -> Document | None:
        """Note that the oldest report that is due is sent, durably before its request.

        Its moment is drawn anew, in case it does not arrive; and so are those of all others that are
        due: sent right after it, they would be known to be of the same device.
        """
        due = [owed for owed in self.sendable(survey) if owed["due"] <= moment]
        if not due:
            return None
        due[0]["attempts"] += 1
        for owed in due:
            owed["due"] = self._next_moment(survey, owed, spread)
        return due[0]

    def attempt_now(self, survey: str, period: int) -> Document | None:
        """The same for a period's report, due or not."""
        for owed in self.sendable(survey):
            if owed["period"] == period:
                owed["attempts"] += 1
                owed["due"] = self._next_moment(survey, owed, None)
                return owed
        return None

    def hand_out(self, survey: str) -> None:
        """A program sees the bytes, and may send them: then they count as sent."""
        for owed in self.joined(survey)["owed"]:
            owed["attempts"] = max(owed["attempts"], 1)

    def _next_moment(self, survey: str, owed: Document, spread: float | None) -> float:
        period = owed["period"]
        latest = self._deadline(self.terms(survey), period)
        drawn = share(self._entropy(f"due {survey} {period} {owed['attempts']}"))
        return next_moment(self._now, latest, spread, drawn)

    def drop_late(self, survey: str) -> None:
        """A report is not sent after its period's end and the survey's grace."""
        terms = self.terms(survey)
        joined = self.joined(survey)
        for owed in joined["owed"]:
            if self._now >= self._deadline(terms, owed["period"]):
                joined["dropped"] = [*joined["dropped"], owed["period"]][-MOST_DROPPED:]
                self.forget(survey, owed["period"])

    def dropped(self, survey: str) -> tuple[int, ...]:
        """The periods whose reports were dropped since the app was told."""
        joined = self.joined(survey)
        periods_dropped = tuple(joined["dropped"])
        joined["dropped"] = []
        return periods_dropped

    def forget(self, survey: str, period: int) -> None:
        """A report was delivered, or is of no use any more."""
        joined = self.surveys[survey]
        joined["owed"] = [each for each in joined["owed"] if each["period"] != period]

    def _deadline(self, terms: Terms, period: int) -> float:
        return terms.calendar.begin(period + 1) + terms.grace

    def forget_clock(self, survey: str) -> None:
        """Drop the reports of periods that have not begun by the present clock.

        A period whose report may have been sent is not answered again: no period has two reports.
        """
        joined = self.joined(survey)
        present = self.period(self.terms(survey))
        if joined["settled"] is None or joined["settled"] <= present:
            refuse(
                "clock",
                f"survey {survey!r}: by this clock these periods have begun: "
                "set the clock first, or the gateway is wrong",
            )
        ahead = periods.since(joined["history"], present + 1)
        unsent = [owed["period"] for owed in joined["owed"] if not owed["attempts"]]
        joined["spent"] = periods.without(ahead, unsent) + joined["spent"]
        joined["owed"] = [owed for owed in joined["owed"] if owed["period"] <= present]
        joined["history"] = periods.until(joined["history"], present)
        joined["settled"] = joined["history"][-1][1] if joined["history"] else None
