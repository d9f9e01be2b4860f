"""Telemetry: distributions, changes, presence and churn as the options say."""

import numpy as np
import pytest

from producers.scenarios.telemetry import Distribution, Telemetry, zipf
from protocols.errors import ScenarioError
from tests.helpers.scenario_truth import true_histogram

PLAN: dict[str, Distribution] = {"plan": {"free": 6, "basic": 3, "pro": 1, "none": 0}}
SHARES = np.array([0.6, 0.3, 0.1, 0])


def test_values_follow_the_given_weights_at_the_start_and_after_many_changes() -> None:
    truth = Telemetry(100_000, 20, seed=2, attributes=PLAN, change=0.3, presence=1)
    for period in (0, 19):
        shares = true_histogram(truth.presences(period), "plan", 4) / 100_000
        assert np.abs(shares - SHARES).max() < 0.007  # over four standard deviations
        assert shares[3] == 0


def test_names_without_weights_follow_zipfs_law() -> None:
    truth = Telemetry(100_000, 1, seed=2, attributes={"app": tuple("abcdefgh")}, presence=1)
    shares = true_histogram(truth.presences(0), "app", 8) / 100_000
    assert np.abs(shares - zipf(8)).max() < 0.007


def test_a_value_is_drawn_anew_with_the_probability_of_change() -> None:
    truth = Telemetry(100_000, 2, seed=2, attributes=PLAN, change=0.2, presence=1)
    differs = truth.presences(0).values["plan"] != truth.presences(1).values["plan"]
    assert differs.mean() == pytest.approx(0.2 * (1 - (SHARES**2).sum()), abs=0.005)


def test_devices_are_there_with_the_probability_of_presence_independently_per_period() -> None:
    truth = Telemetry(100_000, 2, seed=3, presence=0.7)
    first, second = (truth.presences(period).devices for period in (0, 1))
    assert len(first) / 100_000 == pytest.approx(0.7, abs=0.007)
    assert len(np.intersect1d(first, second)) / 100_000 == pytest.approx(0.49, abs=0.007)


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({}, "at least one attribute"),
        ({"plan": ["only"]}, "plan needs two or more"),
        ({"plan": ["same", "same"]}, "plan needs two or more"),
        ({"plan": {"a": -1, "b": 2}}, "plan are not valid"),
        ({"plan": {"a": 0, "b": 0}}, "plan are not valid"),
        ({"plan": {"a": float("nan"), "b": 0}}, "plan are not valid"),
    ],
)
def test_attributes_that_cannot_be_drawn_are_refused(attributes: dict[str, Distribution], says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        Telemetry(attributes=attributes)


@pytest.mark.parametrize("option", ["change", "presence"])
def test_probabilities_outside_0_and_1_are_refused(option: str) -> None:
    with pytest.raises(ScenarioError, match=f"{option} = 1.2"):
        Telemetry(**{option: 1.2})  # type: ignore[arg-type]
