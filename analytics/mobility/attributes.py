"""The visitors of a window by one attribute, and what its role adds: rankings, dwell times, flows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from analytics.estimation.estimates import Estimates
from analytics.mobility.answers import Answers
from analytics.mobility.dwells import dwell
from analytics.mobility.model import AttributeReport, Flow, Place, Ranking, ValueReport, quantities
from analytics.mobility.publication import Publication
from analytics.mobility.rankings import rank
from analytics.windows.calendar import Window
from protocols.question import Question
from protocols.survey import origin_and_destination

PLACES = 5
_ROWS = TypeAdapter(tuple[ValueReport, ...])


def attribute_report(publication: Publication, question: Question, window: Window) -> AttributeReport:
    """Everything published about one attribute in one window."""
    answers = Answers.of(publication.history, question.name, window)
    suppressed = publication.suppressed_answers[question.name].get(window)
    known = suppressed is None and answers.n > 0
    role = question.attribute.role
    return AttributeReport(
        name=question.name,
        role=role,
        mechanism=question.label,
        counted="value in the period" if window.length == 1 else "first value in the window",
        n=answers.n if suppressed is None else None,
        suppressed=suppressed,
        values=_values(publication, question, window, answers) if known else (),
        groups=_groups(question, answers) if known else (),
        ranking=_ranking(question, answers) if known and role == "area" else None,
        dwell=dwell(question.attribute, answers) if known and role == "dwell" else None,
        flows=_flows(question, answers) if known and role == "transition" else (),
    )


def _values(publication: Publication, question: Question, window: Window, answers: Answers) -> tuple[ValueReport, ...]:
    consistent = answers.consistent
    smoothed = publication.smoothed(question) if window.length == 1 else None
    return _rows(
        question.attribute.values,
        answers,
        answers.shares,
        consistent=consistent.value.tolist(),
        consistent_low=None if consistent.low is None else consistent.low.tolist(),
        consistent_high=None if consistent.high is None else consistent.high.tolist(),
        smoothed=None if smoothed is None else quantities(smoothed),
    )


def _groups(question: Question, answers: Answers) -> tuple[ValueReport, ...]:
    attribute = question.attribute
    if not attribute.groups:
        return ()
    members = np.array([np.isin(attribute.values, group) for group in attribute.groups.values()])
    return _rows(tuple(attribute.groups), answers, answers.of_groups(members))


def _rows(
    names: Sequence[str], answers: Answers, shares: Estimates, **columns: Sequence[Any] | None
) -> tuple[ValueReport, ...]:
    table: dict[str, Sequence[Any]] = {
        "value": names,
        "share": quantities(shares),
        "people": quantities(answers.people(shares)),
        **{name: column for name, column in columns.items() if column is not None},
    }
    return _ROWS.validate_python([dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)])


def _ranking(question: Question, answers: Answers) -> Ranking:
    order, probabilities, whole = rank(answers.shares.value, answers.covariance, PLACES)
    people = quantities(answers.people(answers.shares))
    names = question.attribute.values
    return Ranking(
        places=tuple(
            Place(place=place, value=names[value], people=people[value], probability=float(probability))
            for place, (value, probability) in enumerate(zip(order, probabilities, strict=True), start=1)
        ),
        probability=whole,
    )


def _flows(question: Question, answers: Answers) -> tuple[Flow, ...]:
    """The origin-destination table, row by row."""
    people = quantities(answers.people(answers.shares))
    pairs = map(origin_and_destination, question.attribute.values)
    return tuple(
        Flow(origin=origin, destination=destination, people=count)
        for (origin, destination), count in zip(pairs, people, strict=True)
    )
