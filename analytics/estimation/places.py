"""Shares of places: expectation-maximisation over the displacement that stops early (`stopping`, PROTOCOLS 10).

The estimate takes from peaks and gives to what is around them. Intervals must contain that, and nothing in the estimate
shows it. So errors are measured on other towns, as rough as the reports allow, whose truth is known. To the error of a
cell the mean over its surroundings is added, as far as the displacement reaches: where in them people are is what the
reports do not say.
"""

from __future__ import annotations  # numpy.random is loaded when it is used, and not for a type

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from analytics.estimation.stopping import TINY, advance, held_out, last_within, seeded
from protocols.arrays import Floats, Mask, Places, Whole
from protocols.mechanisms import PlanarChannel

MOST_STEPS = 600
DIVISIONS = 2  # into ten parts
POSSIBLE = 0.5  # by how much the log-likelihood of held-out reports may be below the best
UNLIMITED = 12 * MOST_STEPS  # steps to what people of other towns are drawn from, if reports contradict no number
TOWNS = 20
SELDOM = 1e-6  # with smaller chances nobody is around, and what rounding leaves would be divided


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
    return advance(counts / counts.sum(), channel, _steps(counts, channel)[0])


def _steps(counts: Whole, channel: PlanarChannel) -> tuple[int, int]:
    """To the estimate, and to the roughest shares that the reports do not contradict."""
    likelihoods = held_out(counts, channel, MOST_STEPS, DIVISIONS, POSSIBLE)
    most = last_within(likelihoods, POSSIBLE)
    return last_within(likelihoods, 0.0), UNLIMITED if most == MOST_STEPS else most


@lru_cache(maxsize=16)  # cells, groups and the consistent histogram all ask for it
def _fitted(given: bytes, channel: PlanarChannel) -> Fit:
    counts = np.frombuffer(given, dtype="<i8").astype(np.int64)
    n, random = int(counts.sum()), seeded(counts)
    steps, most = _steps(counts, channel)
    shares = advance(counts / n, channel, steps)
    rougher = advance(counts / n, channel, most - steps, shares)
    refits = advance(_reports(rougher[None].repeat(TOWNS, axis=0), n, channel, random), channel, steps)
    rougher = rougher**2 / np.maximum(refits.mean(axis=0), TINY)  # what stopping takes from a cell, it has taken before
    rougher /= rougher.sum()
    people = random.multinomial(n, rougher, size=TOWNS) / n
    expected, reports = channel.support(people), _reports(people, n, channel, random)
    middle = (channel.k + channel.rounds[0].area.columns) // 2 % channel.k
    alike = (channel.support(np.eye(1, channel.k, middle)) ** 2).sum()  # the chance of two reports from a cell
    reports = expected + np.sqrt(1 - alike) * (reports - expected)  # people are given, and not drawn once more
    return Fit(shares, steps, rougher, people, advance(reports, channel, steps))


def _reports(people: Floats, n: int, channel: PlanarChannel, random: np.random.Generator) -> Floats:
    """How large a share of the n reports of each town names each cell."""
    expected = channel.support(people)
    return random.multinomial(n, expected / expected.sum(axis=-1, keepdims=True)) / n


def spread_of(fit: Fit, channel: PlanarChannel, n: float, drawn: float, groups: Mask | None) -> tuple[Floats, Floats]:
    """The shares of cells or groups, and their standard errors; `drawn`: the share of the population that reported."""
    shares, errors = fit.shares, fit.refits - drawn * fit.people - (1 - drawn) * fit.rougher
    if groups is not None:
        shares, errors = (np.asarray(part @ groups.T.astype(np.float64)) for part in (shares, errors))
    others = drawn * (1 - drawn) * shares * (1 - shares) / n  # those who did not report are drawn, too
    squares = (errors**2).mean(axis=0) + others
    if groups is not None:
        return shares, np.sqrt(squares * TOWNS / (TOWNS - 2))  # Student's t: a mean over few towns is itself off
    there = fit.people > 0
    around = channel.back((errors**2 * there).mean(axis=0)) / np.maximum(channel.back(there.mean(axis=0)), SELDOM)
    return shares, np.sqrt(squares + np.maximum(around, 0))


def covariance_of(fit: Fit, places: Places | None) -> Floats:
    """The covariance of the errors of all cells or of some."""
    errors = (fit.refits - fit.people)[:, slice(None) if places is None else places]
    return np.asarray(errors.T @ errors / TOWNS)
