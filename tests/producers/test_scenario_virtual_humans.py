"""The festival week: every count that was published must come out of the people drawn.

The expected numbers are read from the table as it was published, and compared with what counting the presences person
by person gives.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from producers.scenarios import Scenario
from producers.scenarios.virtual_humans import VirtualHumans, festival_week
from tests.helpers.town import true_histogram, unique_devices

PUBLISHED = festival_week()


@pytest.fixture(scope="module")
def week() -> VirtualHumans:
    return VirtualHumans(seed=11)


def by_person(truth: Scenario, attribute: str) -> NDArray[np.int64]:
    """The value of each person on each day; -1 where absent."""
    values = np.full((truth.devices, truth.periods), -1)
    for day in range(truth.periods):
        presences = truth.presences(day)
        values[presences.devices, day] = presences.values[attribute]
    return values


def windows_of(truth: Scenario) -> dict[str, int]:
    """The different people of every window of days, counted person by person."""
    there = by_person(truth, next(iter(truth.attributes))) >= 0
    return {
        f"{first + 1}-{last + 1}" if last > first else f"{first + 1}": int(there[:, first : last + 1].any(axis=1).sum())
        for first in range(truth.periods)
        for last in range(first, truth.periods)
    }


def test_the_different_people_of_all_28_windows_come_out_exactly(week: VirtualHumans) -> None:
    assert len(PUBLISHED["unions"]) == 28
    assert windows_of(week) == PUBLISHED["unions"]


def test_attribute_counts_over_all_people_come_out_exactly(week: VirtualHumans) -> None:
    assert len(PUBLISHED["attributes"]) == 6
    for attribute, counts in PUBLISHED["attributes"].items():
        values = by_person(week, attribute)
        person = values.max(axis=1)
        assert ((values == person[:, np.newaxis]) | (values == -1)).all()  # the same on every day
        assert dict(zip(week.attributes[attribute], np.bincount(person).tolist(), strict=True)) == counts


def test_visit_durations_come_out_exactly_on_every_day(week: VirtualHumans) -> None:
    published = PUBLISHED["daily"]["visit_duration"]
    assert week.attributes["visit_duration"] == tuple(published)
    for day in range(7):
        counted = true_histogram(week.presences(day), "visit_duration", len(published))
        assert counted.tolist() == [counts[day] for counts in published.values()]


def test_as_many_people_as_published_show_one_two_three_different_durations(week: VirtualHumans) -> None:
    different = [len(set(row) - {-1}) for row in by_person(week, "visit_duration").tolist()]
    assert np.bincount(different)[1:].tolist() == PUBLISHED["distinct"]["visit_duration"]


@pytest.mark.parametrize("devices", [1, 10, 1_000, 200_000])
def test_another_number_of_people_scales_every_count_in_proportion(devices: int) -> None:
    truth = VirtualHumans(devices=devices, seed=2)
    assert len(unique_devices(truth, 0, 6)) == devices
    scale = devices / PUBLISHED["people"]
    for days, people in windows_of(truth).items():
        assert abs(people - PUBLISHED["unions"][days] * scale) <= 3, days
    for attribute, counts in PUBLISHED["attributes"].items():
        person = by_person(truth, attribute).max(axis=1)
        for value, people in enumerate(counts.values()):
            assert abs(np.count_nonzero(person == value) - people * scale) < 1


def test_fewer_periods_are_the_first_days(week: VirtualHumans) -> None:
    first_days = VirtualHumans(periods=2, seed=11)
    assert first_days.devices == week.devices
    assert np.array_equal(first_days.presences(1).devices, week.presences(1).devices)
