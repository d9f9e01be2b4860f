"""A city's first hours: a map, hours around a clock change, and files as cities have them."""

import json
import re
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from hearsay import read_results
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
        f"+336{person:08d};{begin.strftime(of_time)};{'Préville' if person % 3 else 'Brook'};{'fm'[person % 2]}"
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
    about = events_in((city / "city.html").read_text())[0]["record"]
    assert [shape["properties"]["name"] for shape in about["shapes"]["features"]] == ["Préville"]
    words = "--survey", str(city / "city.yaml"), "--data", str(city / "new")
    assert hearsay("replay", str(city / "city.csv"), *words).returncode == 1 and not (city / "new").exists()


def test_what_a_refusal_proposes_can_be_pasted_and_a_check_names_hours_without_anybody(city: Path) -> None:
    """Which of the repeated hours is meant is not proposed: the operator chooses."""
    dirty, words = city / "dirty.csv", ["--survey", str(city / "city.yaml"), "--check"]
    lines = [
        "msisdn;heure;cellule;sexe",
        *rows("%d/%m/%Y %H:%M"),
        ";25/10/2026 08:00;Brook;f",
        "x;1/1/2020 08:00;Brook;f",
    ]
    dirty.write_text("\n".join([*lines, ""]), encoding="latin-1")
    refused = hearsay("replay", str(dirty), *words)
    assert refused.returncode == 1 and "+336" not in refused.stderr
    proposed = shlex.split(refused.stderr.partition("right of: ")[2])
    unclear = hearsay("replay", str(dirty), *words, *proposed)
    assert unclear.returncode == 1 and "--repeated first or second" in " ".join(unclear.stdout.split())
    shown = hearsay("replay", str(dirty), *words, *proposed, "--repeated", "first")
    assert shown.returncode == 0, shown.stderr
    said = " ".join(shown.stdout.split())
    assert "of 28, nobody in Sun 2026-10-25 02:00 +01:00" in said
    assert "row without a person 1" in said and "time outside the survey 1" in said and "bad time 0" in said
    assert "1 event before the survey's start" in said
    dirty.write_text("\n".join(lines[1:]), encoding="latin-1")
    assert "+336" not in hearsay("replay", str(dirty), *words).stderr


def test_days_and_hours_are_asked_for_by_their_dates_and_two_equal_hours_have_a_row_each(city: Path) -> None:
    shown = report(city)
    assert "Sun 2026-10-25 02:00 +02:00" in shown and "Sun 2026-10-25 02:00 +01:00" in shown
    monday = json.loads(report(city, "--day", "2026-10-26", "--json"))["windows"]
    assert [window["begin"][:16] for window in monday if window["kind"] == "period"] == [
        f"2026-10-26T0{hour}:00" for hour in range(3)
    ]
    hours = report(city, "--by", "hour", "--since", "2026-10-25", "--last", "2")
    assert "Mon 2026-10-26 01:00" in hours and "Mon 2026-10-26 02:00" in hours and "00:00" not in hours
    refused = hearsay("report", "--data", str(city / "data"), "--by", "week")
    assert refused.returncode == 1 and "no week is published" in refused.stderr
    assert hearsay("report", "--data", str(city / "data"), "--day", "2026-10-26", "--period", "3").returncode == 2
    tables = city / "tables"
    report(city, "--csv", str(tables))
    assert not re.search(r"\d\.\d{10}", "".join(file.read_text() for file in tables.glob("*.csv")))
    nowhere = hearsay("report", "--data", str(city / "data"), "--html", str(city / "no" / "page.html"))
    assert nowhere.returncode == 1 and not (city / "no").exists()


def test_simulated_results_keep_their_truth_and_are_found_where_serve_keeps_them(tmp_path: Path) -> None:
    (tmp_path / "a b.yaml").write_text(SURVEY.replace(" areas: city.geojson,", ""))
    where = {"directory": tmp_path}
    ran = hearsay("run", "a b.yaml", "--devices", "100", "--periods", "2", "--data", "hearsay-data/serve", **where)
    assert "survey publish 'a b.yaml'" in ran.stdout, ran.stderr
    assert "truth" in hearsay("report", "city", **where).stdout
    visitors = read_results(tmp_path / "hearsay-data" / "serve")["visitors"].to_pylist()
    assert all(row["truth"] == row["visitors"] for row in visitors)
