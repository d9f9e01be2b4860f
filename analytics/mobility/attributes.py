"""The visitors of a window by one attribute, and what its role adds: rankings and dwell times."""

from __future__ import annotations

import numpy as np

from analytics.estimation.shortening import shortened, shortened_consistent
from analytics.mobility.answers import Answers
from analytics.mobility.dwells import dwell
from analytics.mobility.model import AskedAttribute, AttributeReport, Place, Ranking, Shares, quantities, quantity
from analytics.mobility.publication import Publication
from analytics.mobility.rankings import rank
from analytics.windows.calendar import Window
from protocols.question import Question

PLACES = 5


def asked_attribute(question: Question) -> AskedAttribute:
    """What the columns about an attribute have entries for."""
    attribute = question.attribute
    groups = tuple(attribute.groups)
    return AskedAttribute(
        name=question.name, role=attribute.role, mechanism=question.label, values=attribute.values, groups=groups
    )


def attribute_report(publication: Publication, question: Question, window: Window) -> AttributeReport:
    """Everything published about one attribute in one window."""
    answers = Answers.of(publication.history, question.name, window)
    suppressed = publication.suppressed_answers[question.name].get(window)
    known = suppressed is None and answers.n > 0
    role = question.attribute.role
    return AttributeReport(
        name=question.name,
        counted="value in the period" if window.length == 1 else "first value in the window",
        n=answers.n if suppressed is None else None,
        suppressed=suppressed,
        values=_values(publication, question, window, answers) if known else None,
        groups=_groups(question, answers) if known else None,
        ranking=_ranking(question, answers) if known and role == "area" else None,
        dwell=dwell(question.attribute, answers) if known and role == "dwell" else None,
    )


def _values(publication: Publication, question: Question, window: Window, answers: Answers) -> Shares:
    consistent = shortened_consistent(answers.consistent, answers.shares.error)
    smoothed = publication.smoothed(question) if window.length == 1 else None
    return Shares(
        share=quantities(shortened(answers.shares)),
        consistent=consistent.value,
        consistent_low=consistent.low,
        consistent_high=consistent.high,
        smoothed=None if smoothed is None else quantities(shortened(smoothed)),
    )


def _groups(question: Question, answers: Answers) -> Shares | None:
    attribute = question.attribute
    if not attribute.groups:
        return None
    members = np.array([np.isin(attribute.values, group) for group in attribute.groups.values()])
    return Shares(share=quantities(shortened(answers.of_groups(members))))


def _ranking(question: Question, answers: Answers) -> Ranking:
    order, probabilities, whole = rank(answers.shares.value, answers.covariance, PLACES)
    people = answers.people(shortened(answers.shares))
    names = question.attribute.values
    return Ranking(
        places=tuple(
            Place(place=place, value=names[value], people=quantity(people[value]), probability=float(probability))
            for place, (value, probability) in enumerate(zip(order, probabilities, strict=True), start=1)
        ),
        probability=whole,
    )
