"""A city's first hours: a map, hours around a clock change, and files as cities have them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tests.helpers.browser import events_in
from tests.helpers.nursery import run as hearsay

PARIS = ZoneInfo("Europe/Paris")
FIRST = datetime(2026, 10, 24, 22, tzinfo=UTC)  # Sunday begins; at 01:00 in UTC it is two o'clock again
HOURS, PEOPLE = 28, 60
SURVEY = """
{id: city, start: 2026-10-25T00:00:00+02:00, time_zone: Europe/Paris, period: 1h, horizon: 4, minimum: 20,
 eps_inf: 6, eps_1: 5, clock: source, areas: city.geojson,
 attributes: [{name: quartier, role: area, values: [Préville, Brook]}, {name: gender, values: [f, m]}]}
"""
SHAPES = """
{"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {"name": "Préville"},
 "geometry": {"type": "Polygon", "coordinates": [[[0, 0], [0, 1], [1, 1], [0, 0]]]}}]}
"""


def rows(of_time: str) -> list[str]:
    """Everybody once an hour; who is below 10 does not come in the first hour of all."""
    begins = [(FIRST + timedelta(hours=hour)).astimezone(PARIS) for hour in range(HOURS)]
    return [
        f"+336{person:08d};{begin.strftime(of_time)};{'Préville' if person % 3 else 'Brook'};{'f' if person % 2 else 'm'}"
        for begin in begins
        for person in range(10 if begin == FIRST else 0, PEOPLE)
    ]


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a survey, its map, its events, and what was collected from them."""
    root = tmp_path_factory.mktemp("city")
    (root / "city.yaml").write_text(SURVEY)
    (root / "city.geojson").write_text(SHAPES)
    (root / "city.csv").write_text("\n".join(["person;time;quartier;gender", *rows("%Y-%m-%dT%H:%M%z"), ""]))
    words = ["--survey", str(root / "city.yaml"), "--delimiter", ";", "--data", str(root / "data")]
    shown = hearsay("replay", str(root / "city.csv"), *words)
    assert shown.returncode == 0, shown.stderr
    return root


def report(city: Path, *words: str) -> str:
    shown = hearsay("report", "--data", str(city / "data"), *words)
    assert shown.returncode == 0, shown.stderr
    return shown.stdout


def test_a_survey_with_a_map_is_collected_in_a_fresh_directory_and_its_page_has_the_map(city: Path) -> None:
    report(city, "--html", str(city / "city.html"))
    shapes = events_in((city / "city.html").read_text())[0]["record"]["shapes"]
    assert [shape["properties"]["name"] for shape in shapes["features"]] == ["Préville"]
    refused = hearsay(
        "replay", str(city / "city.csv"), "--survey", str(city / "city.yaml"), "--data", str(city / "new")
    )
    assert refused.returncode == 1 and not (city / "new").exists()
