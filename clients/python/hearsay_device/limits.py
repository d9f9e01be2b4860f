"""What a device may reveal, whatever surveys ask (docs/device-protocol.md, "Limits"). Nothing here knows a value.

The document of a device has a line for each thing that a survey asks, and charges: day, survey, question, amount.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from math import exp, inf, isfinite
from typing import Any

from hearsay_device.errors import refuse
from hearsay_device.losses import SLACK, loss, report_loss
from hearsay_device.respondent import Asked
from hearsay_device.terms import Terms, read_terms

YEAR, WEEK = 365, 7  # days
MOST_OF_YEAR = 0.75  # of the limit `year`, for one survey
Line = dict[str, Any]


_Numbers = namedtuple(
    "_Numbers", "report value year week ratio shortest horizon", defaults=(1.1, 3.0, 12.0, 10.0, 0.8, 3600, 31)
)


class Limits(_Numbers):
    """The most that a device reveals, as largest log-ratios, and which surveys it answers at all.

    `report`: one report. `value`: all reports of all surveys about a value of the app that stays as it is, in a year.
    `year`: all that is charged in a year. `week`: the reports of a week, where a credential links them. `ratio`: the
    largest share of what a memo costs that one report of it may cost (1: the memo itself may be sent). `shortest`: of
    periods, in seconds. `horizon`: the longest.
    """

    def __init__(self, *_: float, **__: float) -> None:
        for name, limit in self._asdict().items():
            least = 60 if name == "shortest" else 0
            if not (isinstance(limit, (int, float)) and isfinite(limit) and limit > 0 and limit >= least):
                refuse("settings", f"limits: {name} is {limit}", f"give a finite number above {least}")

    def check_terms(self, terms: Terms) -> None:
        """Refuse terms whose reports would tell more than the limits allow, however few they are."""
        # What one report tells of the memo: above 0.8, whoever links reports sees when a value changed.
        ratios = [loss(each, 1) / loss(each, inf) for each in terms.questions if terms.longitudinal]
        ratio, period = max(ratios, default=0.0), terms.calendar.period
        for name, given, fits in (
            ("shortest", period, period >= self.shortest),
            ("horizon", terms.horizon, terms.horizon <= self.horizon),
            ("ratio", f"{ratio:.3g}", ratio <= self.ratio * SLACK),
        ):
            if not fits:
                refuse("rules", f"survey {terms.id!r}: {name} is {given}, and the limit is {getattr(self, name)}",
                       f"do not answer it; the app can change `{name}` of its limits")  # fmt: skip
        self._within("report", terms.id, report_loss(terms), "one report may reveal")

    def check(self, survey: str, ledger: Ledger) -> None:
        """Refuse what would exceed a limit: the ledger is as it would be afterwards."""
        self._within("year", survey, ledger.committed(survey), "its charges of a year are", MOST_OF_YEAR)
        total = sum(map(ledger.committed, ledger.surveys))
        self._within("year", survey, total, "with those of other surveys, the charges of a year are")
        for name in ledger.read_by(survey):
            self._within("value", survey, ledger.about(name), f"what is told about {name!r} in a year is")
        if ledger.surveys[survey]["credential"]:
            self._within("week", survey, ledger.week(), "the reports of a week, linked by a credential, tell")

    def _within(self, name: str, survey: str, spent: float, what: str, share: float = 1.0) -> None:
        limit = getattr(self, name) * share
        if not spent <= limit * SLACK:
            refuse("limit", f"survey {survey!r}: {what} {spent:.4g}, more than {limit:g}, the limit of a {name}",
                   "do not answer it; or raise the limit, if the person agrees")  # fmt: skip


class Ledger:
    """What surveys were charged and have reserved, in the document of a device."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document, self.surveys = document, document["surveys"]

    def charge(self, survey: str, asked: Asked) -> None:
        """Note one more answer and what it costs. Surveys that share a question have the same memos of it."""
        line, day, shared = self.surveys[survey]["asked"][asked.id], self.document["day"], asked._replace(cap=inf)
        memos = sum(min(each["answers"], each["cap"]) for each in self._sharing(asked.id))
        more = line["answers"] < line["cap"] or asked.fresh
        amount = shared.cost(memos + more) - shared.cost(memos)
        self.document["charges"] = [*self.charges(), [day, survey, asked.id, amount]]
        line["answers"] += 1
        line["first"] = day if line["first"] is None else line["first"]

    def charges(self, days: int = YEAR) -> list[list[Any]]:
        """Those of the last year, or of so many days."""
        return [each for each in self.document["charges"] if each[0] > self.document["day"] - days]

    def committed(self, survey: str) -> float:
        """What a survey was charged in the last year, or has reserved, whichever is more."""
        reserved = sum(float(line["reserved"]) for line in self.surveys[survey]["asked"].values())
        return max(sum(float(amount) for _, of, _, amount in self.charges() if of == survey), reserved)

    def about(self, name: str) -> float:
        """All reports about a value of the app that stays as it is, of questions first charged in the last year."""
        total, constants = 0.0, {}
        for survey, question, line in self._lines():
            if name not in line["reads"]:
                continue
            firsts = [each["first"] for each in self._sharing(question) if each["first"] is not None]
            if line["fresh"]:
                spent = sum(amount for _, *of, amount in self.charges() if of == [survey, question])
                total += max(line["reserved"], spent)
            elif min(firsts) > self.document["day"] - YEAR if firsts else line["reserved"]:
                constants[question] = float(line["constant"])
        return total + sum(constants.values())

    def week(self) -> float:
        """What the reports of the last seven days tell whoever can link them by a credential."""
        total = 0.0
        for survey, question, line in self._lines():
            if self.surveys[survey]["credential"]:
                answers = sum(of == [survey, question] for _, *of, _ in self.charges(WEEK))
                held = line["cap"] == 1 and not line["fresh"]  # then all answers tell together what one does
                total += line["link"] * (min(1, answers) if held else answers)
        return total

    def explain(self, limit: float) -> dict[str, Any]:
        """What all reports may tell, for the person whose device it is; `limit` is that of a year."""
        asking: dict[str, list[str]] = {}
        for survey, question, _ in sorted(self._lines(), key=lambda line: line[0]):
            asking.setdefault(question, []).append(survey)
        terms = {survey: joined["terms"] for survey, joined in self.surveys.items() if joined["terms"] is not None}
        charges = self.charges()
        return {
            "report": {survey: chance(report_loss(read_terms(text.encode()))) for survey, text in terms.items()},
            "value": {name: chance(self.about(name)) for name in self.read_by(*self.surveys)},
            "year": {
                "answers": len(charges),
                "charged": sum(amount for *_, amount in charges),
                "committed": sum(map(self.committed, self.surveys)),
                "limit": limit,
            },
            "week": "whoever knows which reports are yours can see that and when your answer changed",
            "shared": [each for each in asking.values() if len(each) > 1],
        }

    def read_by(self, *surveys: str) -> list[str]:
        """The names of the app's values that surveys ask for."""
        return sorted({name for survey, _, line in self._lines() if survey in surveys for name in line["reads"]})

    def _lines(self) -> Iterator[tuple[str, str, Line]]:
        """Survey, question and line of all that is asked."""
        for survey, joined in self.surveys.items():
            for question, line in joined["asked"].items():
                yield survey, question, line

    def _sharing(self, question: str) -> list[Line]:
        """The lines of all surveys that ask a question and have memos of it."""
        return [line for _, known, line in self._lines() if known == question and not line["fresh"]]


def chance(spent: float) -> float:
    """How often the right one of two equally likely answers is guessed.

    >>> round(chance(1.1), 2), round(chance(3), 2)
    (0.75, 0.95)
    """
    return 1 / (1 + exp(-spent))
