"""What a device may reveal, whatever surveys ask (docs/device-protocol.md, "Limits"). Nothing here knows a value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from math import exp, inf, isfinite
from typing import Any

from hearsay_device.calendar import DAY
from hearsay_device.errors import refuse
from hearsay_device.losses import loss, report_loss
from hearsay_device.respondent import Asked
from hearsay_device.terms import Terms

ROUNDING = 1 + 1e-9
YEAR, WEEK = 365, 7  # days
MOST_OF_YEAR = 0.75  # of the limit `year`, for one survey
Document = dict[str, Any]


@dataclass(frozen=True)
class Limits:
    """The most that a device reveals, as largest log-ratios, and which surveys it answers at all.

    `report`: one report. `value`: all reports of all surveys about a value of the app that stays as it is, in a year.
    `year`: all that is charged in a year. `week`: the reports of a week, where a credential links them. `ratio`: the
    largest share of what a memo costs that one report of it may cost (1: the memo itself may be sent). `shortest`: of
    periods, in seconds. `horizon`: the longest.
    """

    report: float = 1.1
    value: float = 3.0
    year: float = 12.0
    week: float = 10.0
    ratio: float = 0.8
    shortest: int = 3600
    horizon: int = 31

    def __post_init__(self) -> None:
        for each in fields(self):
            limit, least = getattr(self, each.name), 60 if each.name == "shortest" else 0
            if not (isinstance(limit, (int, float)) and isfinite(limit) and limit > 0 and limit >= least):
                refuse("settings", f"limits: {each.name} is {limit}", f"give a finite number above {least}")

    def check_terms(self, terms: Terms) -> None:
        """Refuse terms whose reports would tell more than the limits allow, however few they are."""
        for name, given, too in (
            ("shortest", terms.calendar.period, terms.calendar.period < self.shortest),
            ("horizon", terms.horizon, terms.horizon > self.horizon),
            ("ratio", f"{_ratio(terms):.3g}", _ratio(terms) > self.ratio * ROUNDING),
        ):
            if too:
                refuse("rules", f"survey {terms.id!r}: {name} is {given}, and the limit is {getattr(self, name)}",
                       f"do not answer it; the app can change `{name}` of its limits")  # fmt: skip
        self._within("report", terms.id, report_loss(terms), "one report may reveal")

    def check(self, survey: str, document: Document) -> None:
        """Refuse what would exceed a limit: the document is as it would be afterwards."""
        own = committed(document, survey)
        self._within("year", survey, own, "its charges of a year are", MOST_OF_YEAR)
        total = sum(committed(document, each) for each in document["surveys"])
        self._within("year", survey, total, "with those of other surveys, the charges of a year are")
        for name in sorted({name for line in _lines(document, survey) for name in line["reads"]}):
            self._within("value", survey, value(document, name), f"what is told about {name!r} in a year is")
        if document["surveys"][survey]["credential"]:
            self._within("week", survey, week(document), "the reports of a week, linked by a credential, tell")

    def _within(self, name: str, survey: str, spent: float, what: str, share: float = 1.0) -> None:
        limit = getattr(self, name) * share
        if not spent <= limit * ROUNDING:
            refuse("limit", f"survey {survey!r}: {what} {spent:.4g}, more than {limit:g}, the limit of a {name}",
                   "do not answer it; or raise the limit, if the person agrees")  # fmt: skip


def charge(document: Document, survey: str, asked: Asked) -> None:
    """Note one more answer and what it costs. Surveys that share a question have the same memos of it."""
    lines = [(each, line) for each in document["surveys"] for line in _lines(document, each, asked.id)]
    shared = [(each, line) for each, line in lines if not line["fresh"]]
    before = sum(min(line["answers"], line["cap"]) for _, line in shared)
    after = sum(min(line["answers"] + (each == survey), line["cap"]) for each, line in shared)
    own = document["surveys"][survey]["asked"][asked.id]
    amount = asked.constant if asked.fresh else shared_cost(asked, after) - shared_cost(asked, before)
    own["answers"] += 1
    own["first"] = document["day"] if own["first"] is None else own["first"]
    document["charges"] = [*recent_charges(document), [document["day"], survey, asked.id, amount]]


def recent_charges(document: Document) -> list[list[Any]]:
    """Those of the last year."""
    return [each for each in document["charges"] if each[0] > document["day"] - YEAR]


def shared_cost(asked: Asked, cells: int) -> float:
    """What memos of so many cells cost that several surveys have brought about."""
    return Asked(asked.id, asked.questions, asked.fresh, max(q.states for q in asked.questions)).cost(cells)


def reserved(terms: Terms, asked: Asked) -> float:
    """What a survey is charged in a year for what it asks this device."""
    answers = -(-YEAR * DAY // (terms.calendar.period * terms.one_in))
    return answers * asked.constant if asked.fresh else asked.cost(answers)


def committed(document: Document, survey: str) -> float:
    """What a survey was charged in the last year, or has reserved, whichever is more."""
    return max(_spent(document, survey), sum(float(line["reserved"]) for line in _lines(document, survey)))


def value(document: Document, name: str) -> float:
    """All reports about a value of the app that stays as it is, of questions first charged in the last year."""
    total, constants = 0.0, {}
    for survey in document["surveys"]:
        for question, line in document["surveys"][survey]["asked"].items():
            if name not in line["reads"]:
                continue
            if line["fresh"]:
                total += max(line["reserved"], _spent(document, survey, question))
                continue
            lines = [each for other in document["surveys"] for each in _lines(document, other, question)]
            firsts = [each["first"] for each in lines if each["first"] is not None and not each["fresh"]]
            first = min(firsts, default=None)
            if (first is not None and first > document["day"] - YEAR) or (first is None and line["reserved"]):
                constants[question] = line["constant"]
    return total + sum(map(float, constants.values()))


def week(document: Document) -> float:
    """What the reports of the last seven days tell whoever can link them by a credential."""
    total = 0.0
    for survey, joined in document["surveys"].items():
        for question, line in joined["asked"].items() if joined["credential"] else ():
            answers = sum(1 for day, *of, _ in document["charges"] if day > document["day"] - WEEK and of == [survey, question])  # fmt: skip  # noqa: E501
            held = line["cap"] == 1 and not line["fresh"]  # then all answers tell together what one does
            total += line["link"] * (min(1, answers) if held else answers)
    return total


def chance(spent: float) -> float:
    """How often the right one of two equally likely answers is guessed.

    >>> round(chance(1.1), 2), round(chance(3), 2)
    (0.75, 0.95)
    """
    return 1 / (1 + exp(-spent))


def _ratio(terms: Terms) -> float:
    """What one report tells of the memo: above 0.8, whoever links reports sees when a value changed."""
    questions = terms.questions if terms.longitudinal else ()
    return max((loss(question, 1).whole / loss(question, inf).whole for question in questions), default=0.0)


def _lines(document: Document, survey: str, question: str | None = None) -> Iterator[dict[str, Any]]:
    asked = document["surveys"][survey]["asked"]
    return (line for known, line in asked.items() if question in (None, known))


def _spent(document: Document, survey: str, question: str | None = None) -> float:
    charges = recent_charges(document)
    return sum(float(amount) for _, of, asked, amount in charges if of == survey and question in (None, asked))
