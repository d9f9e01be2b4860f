"""Shares of places: expectation-maximisation over the displacement that stops early (`stopping`, PROTOCOLS 10).

Inverting the displacement would amplify its noise beyond use. Stopping early smooths instead, so the estimate is off:
it takes from peaks and gives to what is around them. Intervals must contain that, and nothing in the estimate shows it.
So errors are measured on other towns, whose truth is known: people are drawn from what many more steps give, their
reports are drawn and fitted in as many steps as the estimate, and compared with where these people are. More steps give
rougher shares than the estimate. They must: towns as smooth as the estimate would hide what stopping has removed. Where
the true town is smooth, intervals are wider than they need be.

The standard error of a group of cells is the root of its mean square error over these towns. To that of a cell the
mean over its surroundings is added, as far as the displacement reaches: where in them people are is what the reports
do not say. A cell whose estimate is 0 would otherwise have no error, though somebody may be there.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from analytics.estimation.stopping import advance, best_steps, seeded
from protocols.arrays import Floats, Mask, Places, Whole
from protocols.mechanisms import PlanarChannel

MOST_STEPS = 600
DIVISIONS = 2  # into ten parts: a single one went on to the last step for one of 48 maps
ROUGHER = 12  # times as many steps give what people of other towns are drawn from
TOWNS = 20


class Fit(NamedTuple):
    """Shares of all cells, the number of steps, and the towns on which errors are measured."""

    shares: Floats
    steps: int
    rougher: Floats  # what their people are drawn from
    people: Floats  # [town, cell]: where those who reported are
    refits: Floats


def fit_places(counts: Whole, channel: PlanarChannel) -> Fit:
    """The shares of the cells for `counts[cell]` reports that name each; at least one report.

    >>> from protocols.mechanisms import PlanarRound
    >>> channel, truth = PlanarChannel((PlanarRound(12, 10, 1.0),)), np.zeros(120)
    >>> truth[[27, 28, 39, 93]] = 0.25
    >>> reports = np.random.default_rng(0).multinomial(2_000, channel.support(truth))
    >>> fit = fit_places(reports, channel)
    >>> bool(np.abs(fit.shares - truth).sum() < np.abs(reports / 2_000 - truth).sum() / 2)
    True
    """
    return _fitted(counts.astype("<i8").tobytes(), channel)


def fitted_places(counts: Whole, channel: PlanarChannel) -> Floats:
    """The shares of the cells alone, without what intervals need."""
    return advance(counts / counts.sum(), channel, best_steps(counts, channel, MOST_STEPS, DIVISIONS, 0.0))


@lru_cache(maxsize=16)  # cells, groups and the consistent histogram all ask for it
def _fitted(given: bytes, channel: PlanarChannel) -> Fit:
    counts = np.frombuffer(given, dtype="<i8").astype(np.int64)
    n, random = int(counts.sum()), seeded(counts)
    steps = best_steps(counts, channel, MOST_STEPS, DIVISIONS, 0.0)
    shares = advance(counts / n, channel, steps)
    rougher = advance(counts / n, channel, (ROUGHER - 1) * steps, shares)
    people = random.multinomial(n, rougher / rougher.sum(), size=TOWNS) / n
    expected = channel.support(people)
    reports = random.multinomial(n, expected / expected.sum(axis=1, keepdims=True)) / n
    middle = (channel.k + channel.rounds[0].area.columns) // 2 % channel.k
    alike = (channel.support(np.eye(1, channel.k, middle)) ** 2).sum()  # the chance of two reports from a cell
    reports = expected + np.sqrt(1 - alike) * (reports - expected)  # people are given, and not drawn once more
    return Fit(shares, steps, rougher, people, advance(reports, channel, steps))


def spread_of(fit: Fit, channel: PlanarChannel, n: float, drawn: float, groups: Mask | None) -> tuple[Floats, Floats]:
    """The shares of cells or groups, and their standard errors; `drawn`: the share of the population that reported."""
    shares, errors = fit.shares, fit.refits - drawn * fit.people - (1 - drawn) * fit.rougher
    if groups is not None:
        shares, errors = (np.asarray(part @ groups.T.astype(np.float64)) for part in (shares, errors))
    others = drawn * (1 - drawn) * shares * (1 - shares) / n  # those who did not report are drawn, too
    squares = (errors**2).mean(axis=0) + others
    few = squares * TOWNS / (TOWNS - 2)  # the variance of Student's t: a mean over few towns is itself off
    return shares, np.sqrt(squares + channel.back(squares) if groups is None else few)


def covariance_of(fit: Fit, places: Places | None) -> Floats:
    """The covariance of the errors of all cells or of some."""
    errors = (fit.refits - fit.people)[:, slice(None) if places is None else places]
    return np.asarray(errors.T @ errors / TOWNS)
