"""Dwell times: their intervals hold the truth, and each value counts with its middle."""

import numpy as np
import pytest

from analytics.estimation.estimates import exact
from analytics.mobility.answers import Answers
from analytics.mobility.attributes import amount, dwell
from protocols.arrays import Floats
from protocols.survey import Attribute
from tests.helpers.crowd import counts_of, scheme_of

SPREAD = np.array([0.3, 0.2, 0.15, 0.1, 0.1, 0.05, 0.05, 0.05])
HUMPS = np.array([1, 3, 6, 3, 1, *[0] * 9, 1, 4, 8, 4, 1, 0]) / 32


def test_a_mean_counts_each_value_with_its_middle() -> None:
    scheme = scheme_of("{name: a, values: [30m, 1h-3h, 1d], role: dwell, mechanism: grr}", "eps: 4")
    answers = Answers(scheme.question("a").channel, 300, np.array([100, 100, 100]), exact(np.array(300.0)), None)
    found = dwell(scheme.question("a").attribute, answers)
    assert found.mean and found.mean.value == pytest.approx((0.5 + 2 + 24) / 3) and found.unit == "hours"


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize(
    ("mechanism", "terms", "trials", "people", "spread"),
    [
        ("l-grr", "eps_inf: 4, eps_1: 3", 600, 300, SPREAD),
        ("l-osue", "eps_inf: 3, eps_1: 2", 600, 300, SPREAD),
        ("l-geometric", "eps_inf: 2, eps_1: 1", 600, 300, SPREAD),
        # A rough band: taken at its first crossing, the upper end of the median holds the truth in 84 of 100 trials.
        ("geometric", f"eps: {1 / 19}", 100, 3000, HUMPS),
    ],
)
def test_intervals_of_the_mean_and_of_quartiles_hold_the_truth(
    mechanism: str, terms: str, trials: int, people: int, spread: Floats
) -> None:
    """Intervals of quartiles are values, so they reach further than they must; estimates alone would not do."""
    last = len(spread)
    scheme = scheme_of(f"{{name: a, range: {{first: 1, last: {last}}}, mechanism: {mechanism}}}", terms)
    question, trial = scheme.question("a"), np.repeat(np.arange(trials), people)
    values = np.random.default_rng(5).choice(last, size=len(trial), p=spread)
    counts, n = counts_of(scheme, "a", values, trial)
    means, quartiles, ends = [], [], []
    for supports, reports, stayed in zip(counts, n, values.reshape(trials, people) + 1, strict=True):
        everybody = exact(np.array(float(reports)))
        found = dwell(question.attribute, Answers(question.channel, reports, supports, everybody, None))
        assert found.mean and found.low and found.high
        means.append(found.mean.low <= stayed.mean() <= found.mean.high)
        true = np.quantile(stayed, [0.25, 0.5, 0.75], method="inverted_cdf")
        low, high = (np.array(end, dtype=int) for end in (found.low, found.high))
        quartiles.append((low <= true) & (true <= high))
        ends += [low <= true, true <= high]
    assert np.mean(means) == pytest.approx(0.95, abs=0.025 if trials > 500 else 0.06)
    assert np.mean(quartiles, axis=0).min() > 0.92
    assert min(map(np.mean, (ends[::2], ends[1::2]))) > 0.975


@pytest.mark.parametrize(
    ("asked", "truth"),
    [
        ("range: {first: 1, last: 8}", np.arange(1.0, 9)),
        ("range: {first: -4, last: 3}", np.arange(-4.0, 4)),
        ("range: {last: 79, step: 10}", np.arange(4.5, 80, 10)),
        ("values: ['1', '2', '3', '4', 5-8, '9', '10', 11-20]", np.array([1, 2, 3, 4, 6.5, 9, 10, 15.5])),
    ],
)
@pytest.mark.parametrize("visitors", [1000.0, 4000.0])
def test_amounts_are_means_sums_and_quantiles_of_the_middles_of_values(
    asked: str, truth: Floats, visitors: float
) -> None:
    scheme = scheme_of(f"{{name: a, {asked}, role: amount, quantiles: [0.3, 0.9], mechanism: grr}}", "eps: 6")
    question, values = scheme.question("a"), np.repeat(np.arange(8), np.rint(SPREAD * 1000).astype(int))
    counts, n = counts_of(scheme, "a", values, np.zeros(len(values), dtype=np.int64))
    found = amount(question.attribute, Answers(question.channel, n[0], counts[0], exact(np.array(visitors)), None))
    mean, total = found.mean, found.sum
    assert mean.value is not None and mean.error is not None and total.error is not None
    assert mean.value == pytest.approx(SPREAD @ truth, abs=4 * mean.error)
    assert total.value == pytest.approx(mean.value * visitors) and total.error == pytest.approx(mean.error * visitors)
    ends = np.array(question.attribute.numbers)
    assert found.off == np.ptp(ends, axis=1).max() / 2
    assert [one.at for one in found.quantiles] == [0.3, 0.9]
    for one, place in zip(found.quantiles, (0, 5), strict=True):  # 0.3 lies between the first two values
        assert one.low <= ends[place, 1] <= one.high and one.value in ends.mean(axis=1)


def test_amounts_have_no_units() -> None:
    with pytest.raises(ValueError, match="leave the units out, or choose the role dwell"):
        Attribute(name="a", values=("1h", "2h"), role="amount")
