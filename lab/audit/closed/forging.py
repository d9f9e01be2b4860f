"""What forged reports move, in closed form (docs/audit.md, section 6).

With a share beta of forged reports that support the targets S times each on average, the estimate of the targets moves
by beta ((S - floor) / gain - share), whatever the mechanism. Three forgers:

    best      every report supports as many targets as a report can ("maximal gain")
    random    every report is drawn evenly from all that are possible
    lying     devices that follow the protocol with a target as their value
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from protocols.arrays import Floats, Places
from protocols.mechanisms import MatrixChannel, PlanarChannel, SupportChannel
from protocols.question import Question

Forgery = Literal["best", "random", "lying"]


def _voting(question: Question) -> SupportChannel | MatrixChannel:
    assert not isinstance(question.channel, PlanarChannel), "reports of places have no weight of their own"
    return question.channel


def forged_supports(question: Question, targets: Places, forgery: Forgery) -> float:
    """How many of the targets a forged report supports, on average (ordered: how many people it adds to them)."""
    channel = _voting(question)
    if isinstance(channel, MatrixChannel):
        votes = channel.votes[:, targets].sum(axis=1)
        return float({"best": votes.max(), "random": votes.mean(), "lying": 1.0}[forgery])
    if forgery == "lying":
        even = np.zeros(question.k)
        even[targets] = 1 / len(targets)
        return float(channel.support(even)[targets].sum())
    best, average = question.mechanism.encoding.forged(targets)
    return best if forgery == "best" else average


def forgery_gain(question: Question, targets: Places, forgery: Forgery) -> float:
    """How many people one forged report adds to the targets."""
    channel, supports = _voting(question), forged_supports(question, targets, forgery)
    if isinstance(channel, MatrixChannel):
        return supports
    return float((supports - channel.floor[targets].sum()) / channel.gain)


def moved(question: Question, targets: Places, forgery: Forgery, beta: float, shares: Floats) -> float:
    """How far a share beta of forged reports moves the estimated share of all targets together.

    >>> from protocols.scheme import Scheme
    >>> from protocols.survey_text import parse_survey
    >>> scheme = Scheme(parse_survey('''{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps: 1,
    ...  attributes: [{name: item, range: {last: 101}, mechanism: oue}]}'''))
    >>> round(moved(scheme.questions[0], np.arange(10), "best", 0.05, np.full(102, 1 / 102)), 2)
    1.58
    """
    return beta * (forgery_gain(question, targets, forgery) - float(shares[targets].sum()))
