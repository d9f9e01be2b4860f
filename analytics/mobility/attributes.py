"""The visitors of a window by one attribute, and what its role adds: rankings and dwell times."""

from __future__ import annotations

from analytics.estimation.shortening import shortened
from analytics.mobility.answers import Answers
from analytics.mobility.model import AskedAttribute, AttributeReport, Axis, Place, Ranking, Shares, quantities, quantity
from analytics.mobility.publication import Publication
from analytics.mobility.roles import dwell, rank
from analytics.windows.calendar import Window
from protocols.question import Question

PLACES = 5


def asked_attribute(question: Question) -> AskedAttribute:
    """What the columns about an attribute have entries for."""
    attribute = question.attribute
    return AskedAttribute(
        name=question.name,
        role=question.role,
        mechanism=question.label,
        values=attribute.values,
        groups=tuple(attribute.groups),
        axes=axes_of(question),
    )


def axes_of(question: Question) -> tuple[Axis, ...]:
    """The two attributes of a cross, as they are published; none otherwise."""
    return tuple(Axis(name=axis.name, values=axis.values, groups=tuple(axis.groups)) for axis in question.axes)


def attribute_report(publication: Publication, question: Question, window: Window) -> AttributeReport:
    """Everything published about one attribute in one window."""
    answers = publication.answers(question.name, window)
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
    smoothed = publication.smoothed.get(question.name) if window.length == 1 else None
    margins = [_published(publication, axis.name, window) for axis in question.axes]
    return Shares(
        share=quantities(answers.shown),
        **answers.fitted(question.axes, margins),
        smoothed=None if smoothed is None else quantities(shortened(smoothed)),
    )


def _published(publication: Publication, name: str, window: Window) -> Answers | None:
    """The answers to an attribute of a cross; None where they are not published."""
    answers = publication.answers(name, window)
    return None if window in publication.suppressed_answers[name] or answers.n <= 0 else answers


def _groups(question: Question, answers: Answers) -> Shares | None:
    attribute = question.attribute
    if not attribute.groups:
        return None
    return Shares(share=quantities(shortened(answers.of_groups(question.members))))


def _ranking(question: Question, answers: Answers) -> Ranking:
    order, probabilities, whole = rank(answers.shares.value, answers.covariance, PLACES)
    people = answers.people(answers.shown)
    names = question.attribute.values
    return Ranking(
        places=tuple(
            Place(place=place, value=names[value], people=quantity(people[value]), probability=float(probability))
            for place, (value, probability) in enumerate(zip(order, probabilities, strict=True), start=1)
        ),
        probability=whole,
    )
