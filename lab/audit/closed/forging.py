"""What forged reports move, in closed form (docs/audit.md, section 6).

With a share beta of forged reports that support the targets S times each on average, the estimate of the targets moves
by beta ((S - floor) / gain - share), whatever the mechanism. Three forgers:

    best      every report supports as many targets as a report can ("maximal gain")
    random    every report is drawn evenly from all that are possible
    lying     devices that follow the protocol with a target as their value

The estimate of places is no sum over reports, so it is made twice. Reports of as many honest devices as there would be
are drawn from the channel, with the same draws every time; shares are estimated from them, and again with the forged
reports among them. How many steps an estimate takes depends on the draws, and what forgers gain on the steps, so the
figure is a mean over several draws.
"""

from typing import Literal

import numpy as np

from analytics.estimation import fitted_places
from protocols.arrays import Floats, Places
from protocols.mechanisms import MatrixRound, PlanarChannel
from protocols.question import Question

Forgery = Literal["best", "random", "lying"]
MOST_CELLS = 4096  # of a grid for which it is done: estimates of larger ones take seconds each
DRAWS = 8  # one may be off by half of the mean


def forgery_gain(question: Question, targets: Places, forgery: Forgery) -> float:
    """How many people one forged report adds to the targets, on average."""
    channel = question.channel
    assert not isinstance(channel, PlanarChannel), "reports of places have no weight of their own"
    if forgery == "lying":  # estimates are unbiased: who follows the protocol counts once
        return 1.0
    if isinstance(channel, MatrixRound):
        votes = channel.votes[:, targets].sum(axis=1)
        return float(votes.max() if forgery == "best" else votes.mean())
    best, average = question.mechanism.encoding.forged(targets)
    supports = best if forgery == "best" else average
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


def moved_places(question: Question, target: int, forgery: Forgery, beta: float, shares: Floats, n: int) -> float:
    """How far a share beta of forged reports moves the estimated share of a cell, among n reports, on average."""
    channel, forged = question.channel, round(n * beta)
    assert isinstance(channel, PlanarChannel)
    random, gains, own = np.random.default_rng(0), [], np.eye(channel.k)[target]
    laws = {"best": own, "random": np.full(channel.k, 1 / channel.k), "lying": channel.support(own)}
    honest, law = channel.support(shares), laws[forgery]  # the chances of each cell to be what a report names
    for _ in range(DRAWS):
        counts = random.multinomial(n - forged, honest / honest.sum())
        after = counts + random.multinomial(forged, law / law.sum())
        gains.append(fitted_places(after, channel)[target] - fitted_places(counts, channel)[target])
    return float(np.mean(gains))
