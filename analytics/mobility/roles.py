"""What the role of an attribute adds to its shares: the busiest areas, and dwell times."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from analytics.estimation.estimates import CONFIDENCE, Estimates, quantile
from analytics.mobility.answers import Answers
from analytics.mobility.model import Dwell, quantity
from protocols.arrays import Floats, Places
from protocols.survey import Attribute, dwell_times

DRAWS = 2000
RIVALS = 25  # areas below the ranking that are considered too
QUARTERS = (0.25, 0.5, 0.75)


def rank(frequencies: Floats, spread: Callable[[Places], Floats], places: int) -> tuple[Places, Floats, float]:
    """The busiest areas, each one's probability of being in its place, and that of the whole ranking.

    `spread` gives the covariance of the estimates of some areas. Possible truths are drawn around the estimates with
    that covariance; a probability is the share of them that agree. The seed is fixed, so results are reproducible.

    >>> sure = lambda areas: np.eye(len(areas)) * 1e-6
    >>> order, probabilities, whole = rank(np.array([0.2, 0.5, 0.3]), sure, places=2)
    >>> order.tolist(), probabilities.tolist(), whole
    ([1, 2], [1.0, 1.0], 1.0)
    """
    order = np.argsort(-frequencies, kind="stable")
    rivals = order[: places + RIVALS]
    root = _root(spread(rivals))
    drawn = frequencies[rivals] + np.random.default_rng(0).standard_normal((DRAWS, len(rivals))) @ root.T
    ahead = [np.count_nonzero(drawn > drawn[:, [place]], axis=1) for place in range(min(places, len(rivals)))]
    right = np.stack(ahead, axis=1) == np.arange(len(ahead))
    return order[:places], right.mean(axis=0), float(right.all(axis=1).mean())


def _root(spread: Floats) -> Floats:
    """A square root of a covariance that may be singular."""
    values, vectors = np.linalg.eigh(spread)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))


def dwell(attribute: Attribute, answers: Answers) -> Dwell:
    """The summary of a window's dwell times."""
    frequencies = answers.shares.value
    middles, unit = middle_values(attribute)
    spread = answers.covariance()
    value, error = frequencies @ middles, np.sqrt(max(float(middles @ spread @ middles), 0))
    half_width = quantile(CONFIDENCE) * error
    parts = value, error, value - half_width, value + half_width
    mean = quantity(Estimates(*map(np.asarray, parts)))
    cumulative = answers.of_groups(np.tri(attribute.k, dtype=np.bool_))
    quartiles = _crossings(np.cumsum(answers.consistent.value))
    low, high = (_crossings(ends) for ends in (cumulative.high, cumulative.low))
    return Dwell(
        unit=unit,
        mean=mean,
        quartiles=_names(attribute, quartiles),
        low=_names(attribute, np.minimum(low, quartiles)),  # the consistent histogram may lie outside the interval
        high=_names(attribute, np.maximum(high, quartiles)),
    )


def _crossings(cumulative: Floats) -> Places:
    """The places of the values at which the cumulative share first reaches a quarter, a half and three quarters."""
    rising = np.maximum.accumulate(cumulative)
    return np.minimum(np.searchsorted(rising, np.array(QUARTERS) - 1e-12), len(rising) - 1)


def _names(attribute: Attribute, places: Places) -> tuple[str, str, str]:
    first, half, third = (attribute.values[place] for place in places)
    return first, half, third


def middle_values(attribute: Attribute) -> tuple[Floats, str]:
    """The middle of each value, and their unit.

    >>> middles, unit = middle_values(Attribute(name="d", values=("1h", "2h", "3h-5h"), role="dwell"))
    >>> middles.tolist(), unit
    ([1.0, 2.0, 4.0], 'hours')
    """
    times, unit = dwell_times(attribute.values)
    return np.array(times).mean(axis=1), unit
