"""Dwell times: their intervals hold the truth, and values are read as numbers or durations."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.estimation.estimates import exact
from analytics.mobility.answers import Answers
from analytics.mobility.attributes import dwell, middle_values
from protocols.survey import Attribute
from tests.helpers.crowd import counts_of, scheme_of

TRIALS, PEOPLE = 600, 300
SPREAD = np.array([0.3, 0.2, 0.15, 0.1, 0.1, 0.05, 0.05, 0.05])


@pytest.mark.parametrize(
    ("values", "middles", "unit"),
    [
        (("0-9", "10-19", "20-20"), [4.5, 14.5, 20], ""),
        (("30m", "1h-3h", "1d"), [0.5, 2, 24], "hours"),
    ],
)
def test_values_have_a_middle(values: tuple[str, ...], middles: list[float], unit: str) -> None:
    found, found_unit = middle_values(Attribute(name="dwell", values=values))
    assert (found.tolist(), found_unit) == (middles, unit)


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize(
    ("mechanism", "terms"),
    [
        ("l-grr", "eps_inf: 4, eps_1: 3"),
        ("l-osue", "eps_inf: 3, eps_1: 2"),
        ("l-geometric", "eps_inf: 2, eps_1: 1"),
    ],
)
def test_intervals_of_the_mean_and_of_quartiles_hold_the_truth(mechanism: str, terms: str) -> None:
    """Intervals of quartiles are values, so they reach further than they must; estimates alone would not do."""
    scheme = scheme_of(f"{{name: a, range: {{first: 1, last: 8}}, mechanism: {mechanism}}}", terms)
    question, trial = scheme.question("a"), np.repeat(np.arange(TRIALS), PEOPLE)
    values = np.random.default_rng(5).choice(8, size=len(trial), p=SPREAD)
    counts, n = counts_of(scheme, "a", values, trial)
    means, quartiles, ends = [], [], []
    for supports, people, stayed in zip(counts, n, values.reshape(TRIALS, PEOPLE) + 1, strict=True):
        everybody = exact(np.array(float(people)))
        found = dwell(question.attribute, Answers(question.channel, people, supports, everybody, None))
        assert found.mean and found.low and found.high
        means.append(found.mean.low <= stayed.mean() <= found.mean.high)
        true = np.quantile(stayed, [0.25, 0.5, 0.75], method="inverted_cdf")
        low, high = (np.array(end, dtype=int) for end in (found.low, found.high))
        quartiles.append((low <= true) & (true <= high))
        ends += [low <= true, true <= high]
    assert np.mean(means) == pytest.approx(0.95, abs=0.025)
    assert np.mean(quartiles) > 0.94
    assert min(map(np.mean, (ends[::2], ends[1::2]))) > 0.975
