"""The festival week: every count that was published must come out of the people drawn.

The expected numbers are read from the table as it was published, and compared with what counting the presences person
by person gives.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from producers.scenarios import Scenario
from producers.scenarios.telemetry import Distribution, Telemetry, zipf
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
