"""A day's visitors across a clock change, from recorded events to the report."""

from __future__ import annotations

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
    return result.output


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


def test_days_of_24_hours_lose_half_of_them() -> None:
    """What the time zone is for."""
    replay(SURVEY.replace("time_zone: Europe/Paris\n", ""), "--zone", "Europe/Paris")
    report = json.loads(hearsay("report", "--data", "data", "--json"))
    assert list(visitors(report).values()) == [PEOPLE, PEOPLE, PEOPLE, PEOPLE / 2]
