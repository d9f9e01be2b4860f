"""How large the standard errors of estimated shares will be."""

from __future__ import annotations

from math import sqrt

import numpy as np

from protocols.mechanisms.channels import Channel, SupportChannel, variance
from protocols.question import Question
from protocols.scheme import Scheme


def standard_error(scheme: Scheme, question: Question, devices: int, frequency: float) -> float:
    """Of a value with this frequency, in a period in which so many devices report."""
    return sqrt(mean_variance(question.channel, frequency) / (devices * scheme.answering_share(question)))


def mean_variance(channel: Channel, frequency: float) -> float:
    """n times the variance of a value with this frequency, the rest spread evenly; averaged over the values."""
    k = channel.k
    if isinstance(channel, SupportChannel):  # here a value's variance depends on its own frequency only
        return float(variance(channel, np.full(k, frequency)).mean())
    cases = np.full((k, k), (1 - frequency) / (k - 1))
    np.fill_diagonal(cases, frequency)
    return float(variance(channel, cases).diagonal().mean())
