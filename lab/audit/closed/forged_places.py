"""What forged reports of places move: the estimate is no sum over reports, so it is made twice (docs/audit.md, 6).

Reports of as many honest devices as there would be are drawn from the channel, with the same draws every time. The
shares are estimated from them, and again with the forged reports among them. How many steps an estimate takes depends
on the draws, and what forgers gain on the steps, so the figure is a mean over several draws.
"""

from __future__ import annotations

import numpy as np

from analytics.estimation import fitted_places
from lab.audit.closed.forging import Forgery
from protocols.arrays import Floats
from protocols.mechanisms import PlanarChannel
from protocols.question import Question

MOST_CELLS = 4096  # of a grid for which it is done: estimates of larger ones take seconds each
DRAWS = 8  # one may be off by half of the mean


def middle(question: Question) -> int:
    """The cell that forgers choose: the one nearest to the middle, where a report is moved nowhere else."""
    grid = question.attribute.grid
    assert grid is not None
    positions = grid.area.positions
    return int(np.square(positions - positions.mean(axis=0)).sum(axis=1).argmin())


def moved_places(question: Question, target: int, forgery: Forgery, beta: float, shares: Floats, n: int) -> float:
    """How far a share beta of forged reports moves the estimated share of a cell, among n reports, on average."""
    channel, forged = question.channel, round(n * beta)
    assert isinstance(channel, PlanarChannel)
    random, gains = np.random.default_rng(0), []
    honest, law = channel.support(shares), _law(channel, target, forgery)
    for _ in range(DRAWS):
        counts = random.multinomial(n - forged, honest / honest.sum())
        after = counts + random.multinomial(forged, law / law.sum())
        gains.append(fitted_places(after, channel)[target] - fitted_places(counts, channel)[target])
    return float(np.mean(gains))


def _law(channel: PlanarChannel, target: int, forgery: Forgery) -> Floats:
    """The chance of each cell to be what a forged report names."""
    own = np.zeros(channel.k)
    own[target] = 1.0
    return {"best": own, "random": np.full(channel.k, 1 / channel.k), "lying": channel.support(own)}[forgery]
