"""What only the year of demand promises: its days, weekends, holidays, growth and storm."""

from __future__ import annotations

import numpy as np
import pytest

from producers.scenarios.demand import HOLIDAYS, HOURS_OF_YEAR, SHOCK_DAY, SHOCK_DAYS, Demand
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


@pytest.mark.long(part="statistics")
def test_demand_grows_over_the_year() -> None:
    first, last = (np.mean([day(number) for number in days]) for days in (range(7, 28), range(336, 357)))
    assert last / first == pytest.approx(1.3, abs=0.1)
    assert YEAR.periods == HOURS_OF_YEAR


def test_the_storm_is_in_the_first_area_only() -> None:
    storm, after = (np.mean([day(number + shift) for number in range(SHOCK_DAY, SHOCK_DAY + SHOCK_DAYS)], axis=0)
                    for shift in (0, 7))  # fmt: skip
    assert storm[0] > 2 * after[0] and (storm[1:] < 1.5 * after[1:]).all()


def test_reports_come_from_the_areas_in_demand() -> None:
    hours = [YEAR.presences(24 * (SHOCK_DAY + 1) + hour).values["area"] for hour in (18, 19, 20)]
    counts = np.bincount(np.concatenate(hours), minlength=8)
    homes = np.bincount(YEAR._home, minlength=8)
    assert np.argmax(counts / homes) == 0


def test_a_town_of_one_area_is_refused() -> None:
    with pytest.raises(ScenarioError, match="areas = 1 is too small"):
        Demand(areas=1)
