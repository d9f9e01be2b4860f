"""The festival week: every count that was published must come out of the people drawn.

The expected numbers are read from the table as it was published, and compared with what counting the presences person
by person gives: from the combinations of days, and again from the unions of days alone.
"""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from producers.scenarios import Scenario
from producers.scenarios.aggregates import Aggregates, day_bits, read_aggregates
from producers.scenarios.virtual_humans import VirtualHumans, proportional
from protocols.errors import ScenarioError
from tests.helpers.scenario_truth import true_histogram, unique_devices

PUBLISHED: dict[str, Any] = json.loads((resources.files("producers") / "data" / "msfimu.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def week() -> VirtualHumans:
    return VirtualHumans(seed=11)


@pytest.fixture(scope="module", params=["from combinations", "from unions alone"])
def either(request: pytest.FixtureRequest, week: VirtualHumans) -> VirtualHumans:
    if request.param == "from combinations":
        return week
    return VirtualHumans(seed=11, table=Aggregates.model_validate(PUBLISHED | {"combinations": {}}))


def by_person(truth: Scenario, attribute: str) -> NDArray[np.int64]:
    """The value of each person on each day; -1 where absent."""
    values = np.full((truth.devices, truth.periods), -1)
    for day in range(truth.periods):
        presences = truth.presences(day)
        values[presences.devices, day] = presences.values[attribute]
    return values


def people_by_combination(truth: Scenario) -> dict[str, int]:
    there = by_person(truth, next(iter(truth.attributes))) >= 0
    rows, counts = np.unique(there, axis=0, return_counts=True)
    names = ["+".join(str(day + 1) for day in np.flatnonzero(row)) for row in rows]
    return dict(zip(names, counts.tolist(), strict=True))


def test_the_published_table_names_its_source_and_licence() -> None:
    table = read_aggregates()
    assert "OpenMSFIMU" in table.source
    assert table.license.startswith("MIT")
    assert table.people == 88_935


def test_people_per_exact_set_of_days_come_out_exactly(week: VirtualHumans) -> None:
    assert people_by_combination(week) == PUBLISHED["combinations"]


def test_people_per_day_and_union_of_days_come_out_exactly(either: VirtualHumans) -> None:
    assert len(PUBLISHED["unions"]) == 28
    for days, people in PUBLISHED["unions"].items():
        first, _, last = days.partition("-")
        assert len(unique_devices(either, int(first) - 1, int(last or first) - 1)) == people, days


def test_attribute_counts_over_all_people_come_out_exactly(either: VirtualHumans) -> None:
    assert len(PUBLISHED["attributes"]) == 6
    for attribute, counts in PUBLISHED["attributes"].items():
        values = by_person(either, attribute)
        person = values.max(axis=1)
        assert ((values == person[:, np.newaxis]) | (values == -1)).all()  # the same on every day
        assert dict(zip(either.attributes[attribute], np.bincount(person).tolist(), strict=True)) == counts


def test_visit_durations_come_out_exactly_on_every_day(either: VirtualHumans) -> None:
    published = PUBLISHED["daily"]["visit_duration"]
    assert either.attributes["visit_duration"] == tuple(published)
    for day in range(7):
        counted = true_histogram(either.presences(day), "visit_duration", len(published))
        assert counted.tolist() == [counts[day] for counts in published.values()]


def test_as_many_people_as_published_show_one_two_three_different_durations(week: VirtualHumans) -> None:
    different = [len(set(row) - {-1}) for row in by_person(week, "visit_duration").tolist()]
    assert np.bincount(different)[1:].tolist() == PUBLISHED["distinct"]["visit_duration"]


@pytest.mark.parametrize("devices", [1, 10, 1_000, 200_000])
def test_another_number_of_people_scales_every_count_in_proportion(devices: int) -> None:
    truth = VirtualHumans(devices=devices, seed=2)
    assert len(unique_devices(truth, 0, 6)) == devices
    scale = devices / PUBLISHED["people"]
    combinations = people_by_combination(truth)
    for days, people in PUBLISHED["combinations"].items():
        assert abs(combinations.get(days, 0) - people * scale) < 1, days
    for attribute, counts in PUBLISHED["attributes"].items():
        person = by_person(truth, attribute).max(axis=1)
        for value, people in enumerate(counts.values()):
            assert abs(np.count_nonzero(person == value) - people * scale) < 1


def test_scaling_keeps_the_total_and_moves_no_count_by_a_whole_person() -> None:
    counts = np.random.default_rng(1).integers(0, 1_000, 50)
    for total in (0, 1, 49, 999, 10**6):
        scaled = proportional(counts, total)
        assert scaled.sum() == total
        assert np.abs(scaled - counts * (total / counts.sum())).max() < 1


def test_fewer_periods_are_the_first_days(week: VirtualHumans) -> None:
    first_days = VirtualHumans(periods=2, seed=11)
    assert first_days.devices == week.devices
    assert np.array_equal(first_days.presences(1).devices, week.presences(1).devices)
    with pytest.raises(ScenarioError, match="periods = 8, but the table has 7 days"):
        VirtualHumans(periods=8)


def test_an_operators_own_table_of_ten_days_and_unions_is_reproduced(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    people = rng.multinomial(30_000, rng.dirichlet(np.full(1023, 0.2)))
    sets = {f"{first}-{last}": day_bits(f"{first}-{last}", 10) for first in range(1, 11) for last in range(first, 11)}
    unions = {name: int(people[np.arange(1, 1024) & bits != 0].sum()) for name, bits in sets.items()}
    table = {
        "source": "counted here",
        "license": "none",
        "people": 30_000,
        "days": [f"day {day}" for day in range(1, 11)],
        "unions": unions,
        "attributes": {"ticket": {"day": 12_345, "week": 17_655}},
    }
    path = tmp_path / "table.json"
    path.write_text(json.dumps(table))
    truth = VirtualHumans(table=path)
    assert (truth.devices, truth.periods) == (30_000, 10)
    for name, expected in unions.items():
        first, last = map(int, name.split("-"))
        assert len(unique_devices(truth, first - 1, last - 1)) == expected
    assert np.bincount(by_person(truth, "ticket").max(axis=1)).tolist() == [12_345, 17_655]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"people": 88_936}, "people of all days are 88935, but other counts give 88936"),
        ({"unions": {"2-4": 50_000}}, "people of days 2-4 are 50000, but other counts give 50991"),
        ({"attributes": {"gender": {"F": 5, "M": 4}}}, "people by gender are 9"),
        ({"daily": {"mood": {"good": [1] * 7}}, "distinct": {}}, "people of day 1 by mood are 1, .* 23226"),
        ({"daily": {"mood": {"good": [1]}}, "distinct": {}}, "mood needs 7 counts"),
        ({"distinct": {"mood": [88_935] + [0] * 6}}, "mood is not a daily attribute"),
        ({"distinct": {"visit_duration": [1] * 7}}, "different values of visit_duration are 7"),
        ({"combinations": {}, "unions": {}}, "give `combinations`, or `unions`"),
        ({"unions": {"2-9": 5}}, "'2-9' is not a set of days 1 to 7"),
        ({"unions": {"1-2": 34_066, "1+2": 34_066}}, "the same set of days has two counts"),
        ({"combinations": {}, "unions": {"1-7": 88_935}}, "need the people of every single day"),
        ({"dyas": []}, "dyas"),
        ({"people": 10**30, "combinations": {"1": 10**30}}, "less than or equal to 1000000000"),
    ],
)
def test_tables_that_do_not_add_up_are_refused_and_say_where(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    path = tmp_path / "table.json"
    path.write_text(json.dumps(PUBLISHED | change))
    with pytest.raises(ScenarioError, match=says):
        VirtualHumans(table=path)


@pytest.mark.parametrize("name", ["broken.json", "latin.json", "deep.json", "missing.json"])
def test_a_file_that_is_no_table_is_refused_by_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "latin.json").write_text('{"source": "Besançon"}', encoding="latin-1")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(ScenarioError, match=name):
        VirtualHumans(table=tmp_path / name)
