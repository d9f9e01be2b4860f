"""Dwell times: mean and quartiles of an ordered attribute, with their intervals."""

from __future__ import annotations

import re
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.estimates import CONFIDENCE, Estimates, quantile
from analytics.estimation.votes import Floats
from analytics.mobility.answers import Answers
from analytics.mobility.model import Dwell, quantity
from protocols.survey import Attribute, parse_duration

QUARTERS = (0.25, 0.5, 0.75)


def dwell(attribute: Attribute, answers: Answers) -> Dwell:
    """The summary of a window's dwell times."""
    frequencies = answers.shares.value
    middles, unit = middle_values(attribute)
    mean = None
    if middles is not None:
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


def _crossings(cumulative: Floats) -> NDArray[np.intp]:
    """The places of the values at which the cumulative share first reaches a quarter, a half and three quarters."""
    rising = np.maximum.accumulate(cumulative)
    return np.minimum(np.searchsorted(rising, np.array(QUARTERS) - 1e-12), len(rising) - 1)


def _names(attribute: Attribute, places: NDArray[np.intp]) -> tuple[str, str, str]:
    first, half, third = (attribute.values[place] for place in places)
    return first, half, third


def middle_values(attribute: Attribute) -> tuple[Floats | None, str]:
    """The middle of each value and their unit, if values are numbers, durations such as `2h`, or ranges of them.

    >>> middles, unit = middle_values(Attribute(name="d", values=("1h", "2h", "3h-5h")))
    >>> middles.tolist(), unit
    ([1.0, 2.0, 4.0], 'hours')
    """
    ends = [re.fullmatch(r"(\d+[smhdw]?)(?:-(\d+[smhdw]?))?", name) for name in attribute.values]
    if not all(ends):
        return None, ""
    pairs = [(end[1], end[2] or end[1]) for end in ends if end]
    if all(text[-1].isdigit() for pair in pairs for text in pair):
        return np.array([(int(low) + int(high)) / 2 for low, high in pairs]), ""
    if any(text[-1].isdigit() for pair in pairs for text in pair):
        return None, ""
    try:
        hours = [[parse_duration(text) / timedelta(hours=1) for text in pair] for pair in pairs]
    except ValueError:  # looks like a duration, but is out of range
        return None, ""
    return np.array(hours).mean(axis=1), "hours"
