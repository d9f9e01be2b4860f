"""How large the standard errors of estimated shares will be, and what a loss means."""

from __future__ import annotations

from math import exp, sqrt

import numpy as np
from pydantic import BaseModel, ConfigDict

from protocols.mechanisms.channels import SupportChannel
from protocols.mechanisms.mechanism import Channel
from protocols.mechanisms.places.rounds import PlanarChannel
from protocols.question import Question
from protocols.scheme import Scheme

NORMAL_95 = 1.959964
"""Half the width of a 95 % interval, in standard errors."""


class PlanModel(BaseModel):
    """A part of a plan."""

    model_config = ConfigDict(frozen=True)


class PrecisionPlan(PlanModel):
    """Standard errors of a frequency that is 0 (`if_nobody`), and of one that is a half.

    `reports` of the devices answer this attribute. `at_best` is what averaging any number of periods cannot beat,
    because memos repeat. `devices_needed` for the wanted error, at the worse of both.
    """

    reports: float
    if_nobody: float
    if_half: float
    at_best: float | None
    devices_needed: int


def standard_error(scheme: Scheme, question: Question, devices: int, frequency: float) -> float:
    """Of a value with this frequency, in a period in which this number of devices report."""
    return sqrt(mean_variance(question.channel, frequency) / (devices * scheme.answering_share(question)))


def mean_variance(channel: Channel, frequency: float) -> float:
    """n times the variance of a value with this frequency, the rest spread evenly; averaged over the values."""
    k = channel.k
    if isinstance(channel, SupportChannel):  # here a value's variance depends on its own frequency only
        return float(channel.variance(np.full(k, frequency)).mean())
    assert not isinstance(channel, PlanarChannel), "places have no unbiased estimate whose variance would be known"
    cases = np.full((k, k), (1 - frequency) / (k - 1))
    np.fill_diagonal(cases, frequency)
    return float(channel.variance(cases).diagonal().mean())


def told_apart(eps: float) -> float:
    """With which probability two values are told apart at most at a loss of `eps`, if both are as likely beforehand.

    >>> [round(told_apart(eps), 2) for eps in (0, 0.5, 1, 2, 4)]
    [0.5, 0.62, 0.73, 0.88, 0.98]
    """
    return 1 / (1 + exp(-eps))


def widest_interval(scheme: Scheme, devices: int) -> float:
    """Half the width of the 95 % interval of a share of one half in one period, for the attribute with the widest."""
    return NORMAL_95 * max(standard_error(scheme, question, devices, 0.5) for question in scheme.questions)
