"""What a page must know of a survey to show its results: words, names of values, what it cost, and how to read it."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import numpy as np

from analytics.mobility import axes_of
from pages.events import Event, Record, event
from pages.words import VISITORS, words
from protocols.errors import counted
from protocols.planning import AttributePlan, Plan, PrecisionPlan, chance_of_readers, chances, plan
from protocols.privacy import CentralLoss
from protocols.question import Question
from protocols.scheme import Scheme
from protocols.survey import Attribute, Survey

WEEK, DAY = timedelta(weeks=1), timedelta(days=1)
LARGEST = 2**53  # of the whole numbers that a browser tells apart
ERROR = 0.01  # the standard error of a share for which the page says how many devices are needed


def survey_event(
    survey: Survey,
    notes: tuple[str, ...] = (),
    *,
    shapes: Mapping[str, Any] | None = None,
    baseline: tuple[int, int] | None = None,
    loss_accepted: bool = False,
    readers: CentralLoss | None = None,
) -> Event:
    """The event of a survey.

    `notes` are what the reports say about how to read them, `shapes` the areas' shapes (`pages.shapes`), and `baseline`
    the first and last period that a page compares with before somebody chooses others. `loss_accepted`: memos were lost
    once, so the guarantees are those without the cap. `readers` is what readers of all results so far learn.
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
        "minimum": survey.threshold,
        "confidence": 0.95,
        "presence": "exact" if scheme.presence is None else "noised",
        "seasons": [name for name, length in (("week", WEEK), ("day", DAY)) if not length % survey.period],
        "baseline": baseline,
        "attributes": [_attribute(question) for question in scheme.questions],
        "shapes": shapes,
        "costs": _costs(scheme, loss_accepted, readers),
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


def _costs(scheme: Scheme, loss_accepted: bool, readers: CentralLoss | None) -> Record:
    """What a survey costs those who answer it, what it takes to be precise, and cautions."""
    drawn = plan(scheme, error=ERROR, alternatives=False)
    presence = drawn.presence
    shown = chances(drawn.guarantee, drawn.central, True) if loss_accepted else drawn.chances
    so_far = None if readers is None else chance_of_readers(f"{counted(readers.periods, 'period')} so far", readers)
    if so_far is not None:
        shown = (*shown, so_far)
    return {
        "declared": drawn.guarantee.declared,
        "solution": drawn.solution,
        "guarantees": [chance.model_dump() for chance in shown],
        "loss_accepted": loss_accepted,
        "error": drawn.error,
        "presence_epsilon": None if presence is None else presence.epsilon,
        "precision": [
            _precision(drawn, asked, asked.precision) for asked in drawn.attributes if asked.precision is not None
        ],
        "cautions": [caution.model_dump() for caution in drawn.cautions],
    }


def _precision(drawn: Plan, asked: AttributePlan, exact: PrecisionPlan) -> Record:
    """How many devices the wanted standard error needs, with the noise on counts if there is any."""
    own = exact if drawn.presence is None else drawn.presence.attributes[asked.name]
    return {
        "attribute": asked.name,
        "mechanism": f"{asked.mechanism} {asked.detail}".strip(),
        "devices_needed": own.devices_needed,
    }
