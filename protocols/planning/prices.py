"""What single terms of a survey cost: figures that are quick to compute, for people who are just choosing them."""

from __future__ import annotations

from math import exp

from protocols.planning.precision import standard_error
from protocols.scheme import Scheme

NORMAL_95 = 1.959964
"""Half the width of a 95 % interval, in standard errors."""


def told_apart(eps: float) -> float:
    """With which probability two values are told apart at most at a loss of `eps`, if both are as likely beforehand.

    >>> [round(told_apart(eps), 2) for eps in (0, 0.5, 1, 2, 4)]
    [0.5, 0.62, 0.73, 0.88, 0.98]
    """
    return 1 / (1 + exp(-eps))


def widest_interval(scheme: Scheme, devices: int) -> float:
    """Half the width of the 95 % interval of a share of one half in one period, for the attribute with the widest."""
    return NORMAL_95 * max(standard_error(scheme, question, devices, 0.5) for question in scheme.questions)
