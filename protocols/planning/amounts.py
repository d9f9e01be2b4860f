"""Errors of means: of numbers that an attribute asks for value by value, and if it asked by thresholds."""

from contextlib import suppress
from math import sqrt

import numpy as np

from protocols.errors import SurveyError
from protocols.mechanisms.channels import SupportChannel
from protocols.question import Question
from protocols.scheme import Scheme
from protocols.survey.thresholds import Thresholds, check_thresholds

MOST_VALUES = 1024  # of which all pairs are gone through


def mean_errors(scheme: Scheme, question: Question, devices: int) -> dict[str, float]:
    """By mechanism: the standard error of the mean of numbers in a period, if all are alike; nothing of others.

    With the attribute's own mechanism, and with thresholds, for the same budgets. Those of ordered mechanisms are
    budgets of a unit, which are not compared.

    >>> from protocols.survey_text.parsing import parse_survey
    >>> scheme = Scheme(parse_survey('''{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps: 1,
    ...  attributes: [{name: minutes, range: {last: 60}, role: amount}]}'''))
    >>> {name: round(error, 2) for name, error in mean_errors(scheme, scheme.questions[0], 10_000).items()}
    {'oue': 5.23, 'threshold': 0.65}
    """
    channel, reports = question.channel, devices * scheme.answering_share(question)
    if question.role != "amount" or not isinstance(channel, SupportChannel) or question.k > MOST_VALUES:
        return {}
    if isinstance(question.attribute, Thresholds):
        low, high = map(question.attribute.numbers_at, (0, 1))
        return {question.label: (high - low) / (2 * channel.parts * channel.gain) / sqrt(reports)}
    middles, even = np.array(question.attribute.numbers).mean(axis=1), np.full(question.k, 1 / question.k)
    supports = channel.support(even)
    spread = (channel.joint(even) - np.outer(supports, supports)) / channel.gain**2
    found = {question.label: sqrt(max(float(middles @ spread @ middles), 0) / reports)}
    with suppress(ValueError, SurveyError):
        asked = question.attribute.model_copy(update={"mechanism": "threshold", "parameter": None})
        check_thresholds(asked)
        attributes = tuple(asked if each.name == asked.name else each for each in scheme.survey.attributes)
        other = Scheme(scheme.survey.model_copy(update={"attributes": attributes}))
        found |= mean_errors(other, other.question(asked.name), devices)
    return found
