"""A day's visitors across a clock change, from recorded events to the report."""

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hearsay.cli import app
from tests.helpers.clock_change import DAYS, PEOPLE, SURVEY, write_events


def hearsay(*words: str) -> str:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output + str(result.exception)
    return result.stdout


def replay(survey: str, *more: str) -> None:
    Path("survey.yaml").write_text(survey)
    words = "replay events.csv --survey survey.yaml --until 2026-04-30T00:00:00Z --data data"
    hearsay(*words.split(), *more)


def visitors(report: dict) -> dict[str, int]:
    return {w["begin"]: w["visitors"]["value"] for w in report["windows"] if w["kind"] == "period"}


@pytest.fixture(autouse=True)
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_events(tmp_path / "events.csv")


def test_everybody_is_counted_on_every_local_day() -> None:
    replay(SURVEY)
    report = json.loads(hearsay("report", "--data", "data", "--json"))
    offsets = ("+01:00", "+01:00", "+02:00", "+02:00")
    assert visitors(report) == {f"{day}T00:00:00{ahead}": PEOPLE for day, ahead in zip(DAYS, offsets, strict=True)}
    (all_days,) = [w for w in report["windows"] if (w["first"], w["last"]) == (0, 3)]
    assert all_days["visitors"]["value"] == PEOPLE
    hearsay("report", "--data", "data", "--csv", "tables")
    with Path("tables/visitors.csv").open() as file:
        begins = [row["begin"] for row in csv.DictReader(file) if row["kind"] == "period"]
    assert begins == [f"{day}T00:00:00{ahead}" for day, ahead in zip(DAYS, offsets, strict=True)]
    with Path("tables/columns.csv").open() as file:
        assert ("visitors", "begin", "local time") in {
            (r["table"], r["column"], r["unit"]) for r in csv.DictReader(file)
        }
    shown = hearsay("report", "--data", "data")
    assert "Sun 2026-03-29" in shown and "Tue 2026-03-31" in shown


HOURS = SURVEY.replace("2026-03-28T00:00:00+01:00", "2026-10-25T00:00:00+02:00").replace("1d", "1h")


def put_back(with_offset: bool) -> None:
    """200 people in each hour from 01:00 to 04:00 when clocks are put back, in the order of time, at local times."""
    hours = [("01", "+02:00"), ("02", "+02:00"), ("02", "+01:00"), ("03", "+01:00")]
    rows = [
        f"{person},2026-10-25 {hour}:{person * 59 // 200:02d}:00,north{f',{offset}' if with_offset else ''}"
        for hour, offset in hours
        for person in range(200)
    ]
    Path("events.csv").write_text("\n".join([f"person,time,area{',ahead' if with_offset else ''}", *rows, ""]))


AUTUMN = ["replay", "events.csv", "--survey", "survey.yaml", "--data", "data", "--until", "2026-11-01T00:00:00Z"]


def test_local_times_that_the_clock_repeats_are_counted_named_and_refused() -> None:
    """Failure would look like: "nothing is wrong", and the people of one hour in another."""
    put_back(with_offset=False)
    Path("survey.yaml").write_text(HOURS)
    checked = CliRunner().invoke(app, [*AUTUMN, "--check"])
    assert checked.exit_code == 1 and "local time that the clock repeats" in checked.output
    assert "400 times in column time that the clock in Europe/Paris shows twice" in " ".join(checked.output.split())
    refused = CliRunner().invoke(app, AUTUMN)
    assert "50.0% have one fault: local time that the clock repeats" in str(refused.exception)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--repeated", "order"), [200, 200, 200, 200]),
        (("--repeated", "first"), [200, 200, 200]),
        (("--repeated", "second"), [200, 200, 200]),
        (("--offset", "ahead"), [200, 200, 200, 200]),
        (("--most-faults", "60%"), [200, 200]),
    ],
    ids=lambda given: " ".join(map(str, given)),
)
def test_repeated_hours_are_told_apart_as_the_operator_says(options: tuple[str, ...], expected: list[int]) -> None:
    put_back(with_offset="--offset" in options)
    Path("survey.yaml").write_text(HOURS)
    summary = json.loads(hearsay(*AUTUMN, *options, "--json"))
    report = json.loads(hearsay("report", "--data", "data", "--json"))
    assert [found for found in visitors(report).values() if found] == expected
    assert summary["told_apart"] == (400 if "--repeated" in options else 0)
    assert summary["faults"]["repeated"]["count"] == (400 if "--most-faults" in options else 0)


def test_local_times_that_the_clock_skips_are_no_times() -> None:
    Path("survey.yaml").write_text(SURVEY)
    rows = ["0,2026-03-29 01:59:59,north", "1,2026-03-29 02:00:00,north", "2,2026-03-29 02:59:59.5,north"]
    Path("events.csv").write_text("\n".join(["person,time,area", *rows, "3,2026-03-29 03:00:00,north", ""]))
    words = ("replay", "events.csv", "--survey", "survey.yaml", "--check", "--json", "--until", "2026-04-30T00:00:00Z")
    found = json.loads(CliRunner().invoke(app, words).stdout)
    assert [place["line"] for place in found["faults"]["skipped"]["first"]] == [3, 4] and found["people"] == {"1": 2}
    assert found["faults"]["bad_time"]["count"] == 0
    assert "2 times in column time that the clock in Europe/Paris skips" in found["advice"][0]


def test_days_of_24_hours_lose_half_of_them() -> None:
    """What the time zone is for."""
    replay(SURVEY.replace("time_zone: Europe/Paris\n", ""), "--zone", "Europe/Paris")
    report = json.loads(hearsay("report", "--data", "data", "--json"))
    assert list(visitors(report).values()) == [PEOPLE, PEOPLE, PEOPLE, PEOPLE / 2]
