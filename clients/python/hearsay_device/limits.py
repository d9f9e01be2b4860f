"""What a device may reveal, whatever surveys ask (docs/device-protocol.md, "Limits"). Nothing here knows a value.

The document of a device has a line for each thing that a survey asks, and charges: day, survey, question, amount.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, inf, isfinite
from typing import Any, NamedTuple

from hearsay_device.calendar import DAY
from hearsay_device.errors import refuse
from hearsay_device.losses import SLACK, loss, report_loss
from hearsay_device.respondent import Asked
from hearsay_device.terms import Terms, read_terms

YEAR, WEEK = 365, 7  # days
MOST_OF_YEAR = 0.75  # of the limit `year`, for one survey
Document = dict[str, Any]
Line = dict[str, Any]


class _Numbers(NamedTuple):
    report: float = 1.1
    value: float = 3.0
    year: float = 12.0
    week: float = 10.0
    ratio: float = 0.8
    shortest: int = 3600
    horizon: int = 31


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
        ratios = [loss(each, 1).whole / loss(each, inf).whole for each in terms.questions if terms.longitudinal]
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

    def check(self, survey: str, document: Document) -> None:
        """Refuse what would exceed a limit: the document is as it would be afterwards."""
        self._within("year", survey, committed(document, survey), "its charges of a year are", MOST_OF_YEAR)
        total = sum(committed(document, each) for each in document["surveys"])
        self._within("year", survey, total, "with those of other surveys, the charges of a year are")
        for name in read_by(document, survey):
            self._within("value", survey, told_about(document, name), f"what is told about {name!r} in a year is")
        if document["surveys"][survey]["credential"]:
            told = told_in_a_week(document)
            self._within("week", survey, told, "the reports of a week, linked by a credential, tell")

    def explain(self, document: Document) -> dict[str, Any]:
        """What reports may tell, for the person whose device it is."""
        asking: dict[str, list[str]] = {}
        for survey, question, _ in sorted(_lines(document), key=lambda line: line[0]):
            asking.setdefault(question, []).append(survey)
        surveys, charges = document["surveys"], recent(document)
        joined = {survey: surveys[survey]["terms"] for survey in surveys if surveys[survey]["terms"] is not None}
        return {
            "report": {survey: chance(report_loss(read_terms(terms.encode()))) for survey, terms in joined.items()},
            "value": {name: chance(told_about(document, name)) for name in read_by(document, *surveys)},
            "year": {
                "answers": len(charges),
                "charged": sum(amount for *_, amount in charges),
                "committed": sum(committed(document, survey) for survey in surveys),
                "limit": self.year,
            },
            "week": "whoever knows which reports are yours can see that and when your answer changed",
            "shared": [each for each in asking.values() if len(each) > 1],
        }

    def _within(self, name: str, survey: str, spent: float, what: str, share: float = 1.0) -> None:
        limit = getattr(self, name) * share
        if not spent <= limit * SLACK:
            refuse("limit", f"survey {survey!r}: {what} {spent:.4g}, more than {limit:g}, the limit of a {name}",
                   "do not answer it; or raise the limit, if the person agrees")  # fmt: skip


def charge(document: Document, survey: str, asked: Asked) -> None:
    """Note one more answer and what it costs. Surveys that share a question have the same memos of it."""
    shared = asked._replace(cap=inf)
    before = shared.cost(_memos(document, asked.id))
    line = document["surveys"][survey]["asked"][asked.id]
    line["answers"] += 1
    line["first"] = document["day"] if line["first"] is None else line["first"]
    amount = asked.constant if asked.fresh else shared.cost(_memos(document, asked.id)) - before
    document["charges"] = [*recent(document), [document["day"], survey, asked.id, amount]]


def recent(document: Document, days: int = YEAR) -> list[list[Any]]:
    """The charges of the last year, or of so many days."""
    return [each for each in document["charges"] if each[0] > document["day"] - days]


def answers_in(days: int, terms: Terms) -> int:
    """How often a survey is answered in so many days."""
    return -(-days * DAY // (terms.calendar.period * terms.one_in))


def committed(document: Document, survey: str) -> float:
    """What a survey was charged in the last year, or has reserved, whichever is more."""
    reserved = sum(float(line["reserved"]) for line in document["surveys"][survey]["asked"].values())
    return max(sum(float(amount) for _, of, _, amount in recent(document) if of == survey), reserved)


def told_about(document: Document, name: str) -> float:
    """All reports about a value of the app that stays as it is, of questions first charged in the last year."""
    total, constants = 0.0, {}
    for survey, question, line in _lines(document):
        if name not in line["reads"]:
            continue
        if line["fresh"]:
            charged = (amount for _, *of, amount in recent(document) if of == [survey, question])
            total += max(line["reserved"], sum(charged))
            continue
        firsts = [each["first"] for each in _sharing(document, question) if each["first"] is not None]
        if min(firsts) > document["day"] - YEAR if firsts else line["reserved"]:
            constants[question] = float(line["constant"])
    return total + sum(constants.values())


def told_in_a_week(document: Document) -> float:
    """What the reports of the last seven days tell whoever can link them by a credential."""
    total = 0.0
    for survey, question, line in _lines(document):
        if document["surveys"][survey]["credential"]:
            answers = sum(of == [survey, question] for _, *of, _ in recent(document, WEEK))
            held = line["cap"] == 1 and not line["fresh"]  # then all answers tell together what one does
            total += line["link"] * (min(1, answers) if held else answers)
    return total


def read_by(document: Document, *surveys: str) -> list[str]:
    """The names of the app's values that surveys ask for."""
    return sorted({name for survey, _, line in _lines(document) if survey in surveys for name in line["reads"]})


def chance(spent: float) -> float:
    """How often the right one of two equally likely answers is guessed.

    >>> round(chance(1.1), 2), round(chance(3), 2)
    (0.75, 0.95)
    """
    return 1 / (1 + exp(-spent))


def _lines(document: Document) -> Iterator[tuple[str, str, Line]]:
    """Survey, question and line of all that is asked."""
    for survey, joined in document["surveys"].items():
        for question, line in joined["asked"].items():
            yield survey, question, line


def _sharing(document: Document, question: str) -> list[Line]:
    """The lines of all surveys that ask a question and have memos of it."""
    return [line for _, known, line in _lines(document) if known == question and not line["fresh"]]


def _memos(document: Document, question: str) -> int:
    """How many memos of a question the answers so far can have brought about."""
    return sum(min(line["answers"], line["cap"]) for line in _sharing(document, question))
