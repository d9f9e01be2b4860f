"""Commuters: a day has a rhythm, a week has a weekend, and what a device says of its past is what it did."""

import numpy as np
import pytest
from numpy.typing import NDArray

from producers.scenarios.commuters import Commuters

MONDAY, SATURDAY = 0, 5
DEVICES = 20_000
ROWS, COLUMNS = 5, 4


@pytest.fixture(scope="module")
def town() -> Commuters:
    return Commuters(DEVICES, 7 * 24, seed=4, rows=ROWS, columns=COLUMNS)


def areas(town: Commuters, hour: int) -> NDArray[np.int64]:
    """Where each device is in this hour; -1 where its phone is not seen."""
    found = np.full(town.devices, -1)
    presences = town.presences(hour)
    found[presences.devices] = presences.values["area"]
    return found


def share_of_the_same_area(town: Commuters, one_hour: int, other_hour: int) -> float:
    one, other = areas(town, one_hour), areas(town, other_hour)
    return float((one == other)[(one >= 0) & (other >= 0)].mean())


def test_people_are_at_home_by_night_and_out_by_day_more_so_on_weekdays(town: Commuters) -> None:
    assert share_of_the_same_area(town, 24 * MONDAY + 3, 24 * MONDAY + 4) == 1
    weekday = share_of_the_same_area(town, 24 * MONDAY + 4, 24 * MONDAY + 11)
    weekend = share_of_the_same_area(town, 24 * SATURDAY + 4, 24 * SATURDAY + 11)
    assert weekday < 0.6 < 0.8 < weekend < 0.98


def test_a_transition_leads_from_the_quadrant_of_the_hour_before_to_the_present_one(town: Commuters) -> None:
    def quadrant(area: NDArray[np.int64]) -> NDArray[np.str_]:
        row, column = np.divmod(area, COLUMNS)
        # Of five rows the middle one belongs to the north.
        return np.char.add(np.where(row <= 2, "N", "S"), np.where(column <= 1, "W", "E"))

    presences = town.presences(9)
    before = areas(town, 8)[presences.devices]
    said = np.array(town.attributes["transition"])[presences.values["transition"]]
    done = np.char.add(np.char.add(quadrant(before), ">"), quadrant(presences.values["area"]))
    seen_before = before >= 0
    assert (said == done)[seen_before].all()
    assert len(set(said[seen_before])) == 16  # the commute leads from everywhere to everywhere


def test_dwell_is_how_many_hours_in_a_row_a_device_is_in_its_area() -> None:
    """Checked on devices whose phones are seen in every hour of a morning: then their areas alone tell the dwell."""
    town = Commuters(DEVICES, 24, seed=4, activity=1)
    first, last = 7, 14
    seen = np.array([areas(town, hour) for hour in range(first, last + 1)])
    watched = np.flatnonzero((seen >= 0).all(axis=0))
    assert len(watched) > 500
    presences = town.presences(last)
    dwell = dict(zip(presences.devices.tolist(), presences.values["dwell"].tolist(), strict=True))
    lengths = set()
    for device in watched.tolist():
        moved = np.flatnonzero(seen[:, device] != seen[-1, device])
        hours = last - first - int(moved[-1]) if len(moved) else 8
        assert town.attributes["dwell"][dwell[device]] == str(hours)
        lengths.add(hours)
    assert len(lengths) > 5
