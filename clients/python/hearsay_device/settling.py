"""Settling a report: its bytes are made and stored, once, whatever values come later in its period."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from hearsay_device import periods
from hearsay_device.draws import Draws, derived
from hearsay_device.errors import refuse
from hearsay_device.joining import Joining
from hearsay_device.moments import first_moment, share
from hearsay_device.respondent import Document
from hearsay_device.terms import Terms

Values = Mapping[str, Any]


class Report(NamedTuple):
    """A report, and what it `says`: the values that each answer speaks for.

    `unlisted`: whose values are not listed. `example`: it is none that will be sent, but one that
    was made in the same way, with a key that was thrown away.
    """

    period: int
    report: bytes
    says: dict[str, tuple[str, ...]]
    unlisted: tuple[str, ...] = ()
    example: bool = False


class Settling(Joining):
    """The document in change: what settling does to it. What is refused may leave it half changed."""

    def settle(
        self,
        survey: str,
        values: Values,
        credential: bool | None,
        spread: float | None = None,
    ) -> Report:
        """Make the report of this period and store it, or return the one that was made."""
        self._note_credential(survey, credential)
        joined = self.joined(survey)
        terms = self.terms(survey)
        period = self.period(terms)
        if period < 0:
            refuse("early", f"survey {survey!r} has not begun", "wait")
        if period > terms.calendar.last:
            refuse("over", f"survey {survey!r} is over", "leave it")
        made = self.owed(survey, period)
        if made:
            return report_of(made)
        if period < after(joined["settled"]) or periods.has(joined["spent"], period):
            refuse("reported", f"survey {survey!r}: period {period} is reported", "wait for the next one")
        self._limits.check_terms(terms)
        owed = self._made(survey, terms, period, values)
        owed["due"] = self._first_moment(survey, terms, period, spread)
        joined["owed"].append(owed)
        joined["settled"] = period
        joined["spent"] = periods.since(joined["spent"], period)
        periods.add(joined["history"], period)
        return report_of(owed)

    def _note_credential(self, survey: str, credential: bool | None) -> None:
        """Once a report was sent with a credential, all are linked to whoever it names."""
        joined = self.joined(survey)
        first = credential is not None and joined["credential"] is None
        if first or (credential and not joined["credential"]):
            joined["credential"] = credential
            self._refuse_linked(survey)

    def _made(self, survey: str, terms: Terms, period: int, values: Values) -> Document:
        """The report of a period, charged, and made with a key that is not kept."""
        joined = self.joined(survey)
        respondent = self._respondent(survey)
        asked = respondent.asked if respondent.answers_in(period) else []
        self.live()
        for each in asked:
            self.charge(survey, each)
        self._limits.check(survey, self)
        key = self._entropy(f"period {survey} {period}")
        places, unlisted = terms.places(values, joined["stays"])
        answers = {}
        says = {}
        for each in asked:
            for question in each.questions:
                cell = respondent.cell(each, question, places, key)
                if not each.fresh and each.cap < question.states:
                    cell = _capped(joined["cells"].setdefault(question.name, []), each.cap, cell)
                answer, speaks_for = respondent.answer(each, question, cell, key)
                answers[question.name] = answer
                says[question.name] = speaks_for
        content = {
            "survey": survey,
            "fingerprint": terms.fingerprint,
            "period": f"{period:08x}",
            "token": self._token(terms, key),
            **self._since_the_last(survey, terms, period),
            "answers": answers,
        }
        return {
            "period": period,
            "report": json.dumps(content, separators=(",", ":")),
            "says": says,
            "unlisted": unlisted,
            "attempts": 0,
        }

    def _token(self, terms: Terms, key: bytes) -> str:
        """Not zero, and the same for every attempt."""
        first, second = Draws(derived(key, "token", terms.id, terms.fingerprint)).longs(2)
        return f"{first or second | 1:016x}"

    def _since_the_last(self, survey: str, terms: Terms, period: int) -> dict[str, str]:
        """The gap, or the flags: what was settled counts, delivered or not, so no gateway can mark a device."""
        settled = self.joined(survey)["settled"]
        if terms.units is not None:
            return {"flags": f"{terms.calendar.flags(period, settled, terms.units):02x}"}
        gap = terms.horizon if settled is None else min(terms.horizon, period - settled)
        return {"gap": f"{gap:04x}"}

    def _first_moment(self, survey: str, terms: Terms, period: int, spread: float | None) -> float:
        """When a report is due that is settled now; half of the grace is left to try again."""
        latest = terms.calendar.begin(period + 1) + terms.grace / 2
        drawn = share(self._entropy(f"due {survey} {period} 0"))
        return first_moment(self._now, latest, spread, drawn)


def _capped(cells: list[int], cap: float, cell: int) -> int:
    """The cell whose memo is reported: at the cap it is the last one for good, whatever the value."""
    if len(cells) < cap and cell not in cells:
        cells.append(cell)
    return cells[-1] if len(cells) >= cap else cell


def after(period: int | None) -> int:
    """The next period; after none, the first."""
    return 0 if period is None else period + 1


def report_of(owed: Document) -> Report:
    says = {name: tuple(values) for name, values in owed["says"].items()}
    return Report(owed["period"], owed["report"].encode(), says, tuple(owed["unlisted"]))
