"""Telemetry: distributions, changes, presence and churn as the options say."""

import numpy as np
import pytest

from producers.scenarios.telemetry import Distribution, Telemetry, zipf
from tests.helpers.town import true_histogram

PLAN: dict[str, Distribution] = {"plan": {"free": 6, "basic": 3, "pro": 1, "none": 0}}
SHARES = np.array([0.6, 0.3, 0.1, 0])


def test_values_follow_given_weights_or_zipfs_law_at_the_start_and_after_many_changes() -> None:
    asked = {**PLAN, "app": tuple("abcdefgh")}
    truth = Telemetry(100_000, 20, seed=2, attributes=asked, change=0.3, presence=1)
    for period in (0, 19):
        for name, expected in (("plan", SHARES), ("app", zipf(8))):
            shares = true_histogram(truth.presences(period), name, len(expected)) / 100_000
            assert np.abs(shares - expected).max() < 0.007  # over four standard deviations
            assert not shares[expected == 0].any()


def test_a_value_is_drawn_anew_with_the_probability_of_change() -> None:
    truth = Telemetry(100_000, 2, seed=2, attributes=PLAN, change=0.2, presence=1)
    differs = truth.presences(0).values["plan"] != truth.presences(1).values["plan"]
    assert differs.mean() == pytest.approx(0.2 * (1 - (SHARES**2).sum()), abs=0.005)


def test_devices_are_there_with_the_probability_of_presence_independently_per_period() -> None:
    truth = Telemetry(100_000, 2, seed=3, presence=0.7)
    first, second = (truth.presences(period).devices for period in (0, 1))
    assert len(first) / 100_000 == pytest.approx(0.7, abs=0.007)
    assert len(np.intersect1d(first, second)) / 100_000 == pytest.approx(0.49, abs=0.007)
