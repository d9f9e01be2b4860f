"""The truth of windows is that of counting each window on its own."""

import numpy as np
import pytest

from analytics.windows import Window
from hearsay.running.simulating import count_windows
from producers.scenarios import Scenario, scenario
from tests.helpers.town import unique_devices, unique_histogram

PERIODS = 20
OVERLAPPING = [Window(first, last) for first in range(PERIODS) for last in range(first, min(first + 6, PERIODS))]
APART = [Window(12, 15), Window(2, 2), Window(3, 7), Window(18, 19)]


@pytest.fixture(scope="module")
def town() -> Scenario:
    return scenario("commuters", devices=400, periods=PERIODS, rows=2, columns=2)


@pytest.mark.parametrize("windows", [OVERLAPPING, APART, []], ids=["overlapping", "apart", "none"])
def test_every_window_has_the_truth_of_a_count_of_its_own(town: Scenario, windows: list[Window]) -> None:
    found = count_windows(town, windows)
    assert list(found) == windows
    for window, truth in found.items():
        assert truth.visitors == len(unique_devices(town, window.first, window.last))
        assert list(truth.people) == list(town.attributes)
        for name, people in truth.people.items():
            assert np.array_equal(people, unique_histogram(town, name, window.first, window.last))
