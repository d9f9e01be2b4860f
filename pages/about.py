"""What a page must know of a survey to show its results: words, names of values, what it cost, and how to read it."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import numpy as np

from analytics.mobility import axes_of
from pages.costs import costs
from pages.events import Event, Record, event
from pages.words import VISITORS, words
from protocols.question import Question
from protocols.scheme import Scheme
from protocols.survey import Attribute, Survey

WEEK, DAY = timedelta(weeks=1), timedelta(days=1)
LARGEST = 2**53  # of the whole numbers that a browser tells apart


def survey_event(
    survey: Survey,
    *,
    shapes: Mapping[str, Any] | None = None,
    baseline: tuple[int, int] | None = None,
    notes: tuple[str, ...] = (),
    loss_accepted: bool = False,
) -> Event:
    """The event of a survey.

    `shapes` are the areas' shapes (`pages.shapes`), `baseline` the first and last period that a page compares with
    before somebody chooses others, and `notes` what the reports say about how to read them. `loss_accepted`: memos were
    lost once, so the guarantees are those without the cap.
    """
    scheme, named = Scheme(survey), words(attribute.role for attribute in survey.attributes)
    record: Record = {
        "id": survey.id,
        "title": survey.title or survey.id,
        "description": survey.description,
        "fingerprint": scheme.fingerprint,
        "words": named,
        "start": survey.start.isoformat(),
        "period_seconds": int(survey.period.total_seconds()),
        "horizon": survey.horizon,
        "units": list(survey.units),
        "minimum": survey.minimum,
        "confidence": 0.95,
        "presence": "exact" if scheme.presence is None else "noised",
        "seasons": [name for name, length in (("week", WEEK), ("day", DAY)) if not length % survey.period],
        "baseline": baseline,
        "attributes": [_attribute(question) for question in scheme.questions],
        "shapes": shapes,
        "costs": costs(scheme, loss_accepted),
        "notes": [note.replace(VISITORS["many"], named["many"]) for note in notes],
    }
    return event("survey", survey.id, record)


def _attribute(question: Question) -> Record:
    attribute = question.attribute
    groups = {name: np.flatnonzero(row).tolist() for name, row in zip(attribute.groups, question.members, strict=True)}
    return {
        "name": question.name,
        "role": question.role,
        "mechanism": question.label,
        "ordered": attribute.ordered,
        **_names(question.items),
        "groups": groups,
        **({"several": attribute.several} if attribute.several is not None else {}),
        **({"axes": [axis.model_dump() for axis in axes_of(question)]} if question.axes else {}),
    }


def _names(attribute: Attribute) -> Record:
    """The names of an attribute's values; of a range its numbers, from which the page makes those that it shows."""
    span = attribute.range
    if span is None or max(-span.first, span.last) > LARGEST:
        return {"values": list(attribute.values)}
    return {"range": span.model_dump()}
