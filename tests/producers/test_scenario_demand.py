"""What only the year of demand promises: its days, weekends, holidays and storm."""

from __future__ import annotations

import numpy as np
import pytest

from producers.scenarios.demand import HOLIDAYS, SHOCK_DAY, SHOCK_DAYS, Demand
from protocols.errors import ScenarioError

YEAR = Demand(devices=2000, seed=3)


def day(number: int) -> np.ndarray:
    """The demand of each area on a day, in all its hours."""
    return np.sum([YEAR.intensity(24 * number + hour) for hour in range(24)], axis=0)


def test_business_districts_rest_on_weekends_and_holidays() -> None:
    monday, saturday = np.mean([[day(7 * w), day(7 * w + 5)] for w in range(1, 5)], axis=0)
    assert (saturday[4:] < 0.6 * monday[4:]).all() and (saturday[:4] > 0.9 * monday[:4]).all()
    holiday = next(number for number in HOLIDAYS if number % 7 < 5 and number + 7 not in HOLIDAYS and number)
    assert (day(holiday)[4:] < 0.6 * day(holiday + 7)[4:]).all()


def test_the_storm_is_in_the_first_area_only() -> None:
    storm, after = (np.mean([day(number + shift) for number in range(SHOCK_DAY, SHOCK_DAY + SHOCK_DAYS)], axis=0)
                    for shift in (0, 7))  # fmt: skip
    assert storm[0] > 2 * after[0] and (storm[1:] < 1.5 * after[1:]).all()


def test_a_town_of_one_area_is_refused() -> None:
    with pytest.raises(ScenarioError, match="areas = 1 is too small"):
        Demand(areas=1)
