"""The queries of docs/results.md say what is published, on SQLite and on PostgreSQL."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from analytics.mobility import tables
from protocols.survey_text import parse_survey
from stream_app.finals import Final
from tests.docs.pages import ROOT, Page
from tests.views.trials import World
from views.past import Past
from views.results import HISTOGRAMS, MOBILITY, histogram_table
from views.runner import backfill
from views.sinks import open_sink

SURVEY = """
{id: festival-week, start: 2026-03-28T00:00+01:00, period: 1d, time_zone: Europe/Paris, horizon: 3, eps_inf: 6,
 eps_1: 4, clock: source, minimum: MINIMUM, attributes: [{name: district, role: area, values: [north, east, south]},
 {name: version, values: ["1.0", "1.1", "2.0"]}]}
"""
Rows = list[tuple[Any, ...]]


def world(minimum: int = 0) -> World:
    return World(parse_survey(SURVEY.replace("MINIMUM", str(minimum))), periods=6)


def queries() -> dict[str, str]:
    """By the heading above each."""
    page = Page(ROOT / "docs/results.md")
    blocks, lines = [block for block in page.blocks if block.language == "sql"], page.text.splitlines()
    headings = [(number, line.strip("# ")) for number, line in enumerate(lines) if line.startswith("#")]
    return {[heading for line, heading in headings if line < block.line][-1]: block.text for block in blocks}


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., Rows]:
    def answer(heading: str, world: World) -> Rows:
        file = tmp_path / f"{world.scheme.survey.minimum}.sqlite"
        with closing(open_sink(f"sqlite:{file}")) as sink:
            backfill(world, sink)
        with closing(sqlite3.connect(file)) as db:
            return db.execute(queries()[heading]).fetchall()

    return answer


def shares(final: Final) -> dict[tuple[str, str], dict[str, Any]]:
    """The rows of a period's histogram, by attribute and value."""
    histogram = HISTOGRAMS.make(Past(world().scheme, [final]))
    assert histogram is not None
    return {(row["attribute"], row["value"]): row for row in histogram_table([histogram]).to_pylist()}


def test_visitors_by_area_and_day(ask: Callable[..., Rows]) -> None:
    found = ask("Visitors by area and day", world())
    assert len(found) == 6 * 3
    report = MOBILITY.make(Past(world().scheme, world().finals[-3:]))
    assert report is not None
    rows = tables(report)["values"].to_pylist()
    expected = {row["value"]: row["people"] for row in rows if (row["first"], row["role"]) == (5, "area")}
    assert {area: people for begin, area, people, *_ in found if begin == "2026-04-01 22:00:00"} == expected


def test_different_visitors_since_the_beginning(ask: Callable[..., Rows]) -> None:
    found = ask("Different visitors since the beginning", world())
    assert [until for until, _ in found] == ["2026-03-28 23:00:00", "2026-03-29 22:00:00", "2026-03-30 22:00:00"]
    reports = [MOBILITY.make(Past(world().scheme, world().finals[: last + 1])) for last in range(3)]
    expected = [report.window(0, last).visitors for last, report in enumerate(reports) if report is not None]
    assert [visitors for _, visitors in found] == [visitors.value for visitors in expected if visitors is not None]


def test_how_common_each_value_is_now(ask: Callable[..., Rows]) -> None:
    found = ask("How common each version or feature is now", world())
    expected = {name: row["estimate"] for name, row in shares(world().finals[-1]).items()}
    assert {(attribute, value): share for attribute, value, share, *_ in found} == expected


def test_what_changed_by_more_than_its_noise(ask: Callable[..., Rows]) -> None:
    found = ask("What changed by more than its noise", world())
    expected = [
        name
        for before, now in pairwise(map(shares, world().finals))
        for name in now
        if now[name]["low"] > before[name]["high"] or now[name]["high"] < before[name]["low"]
    ]
    assert expected and sorted((attribute, value) for _, attribute, value, *_ in found) == sorted(expected)


def test_what_not_to_rely_on(ask: Callable[..., Rows]) -> None:
    verdicts = [row for row in ask("What not to rely on", world()) if row[1] is None]
    assert all(verdict != "consistent" for *_, verdict in verdicts)
    suppressed = ask("What not to rely on", world(minimum=10_000))
    assert [why for _, why, *_ in suppressed] == ["minimum"] * 6


@pytest.mark.integration
def test_postgresql_answers_the_same(ask: Callable[..., Rows], database: Callable[[str], str]) -> None:
    import psycopg

    with closing(open_sink(database("queries"))) as sink:
        backfill(world(), sink)
    with psycopg.connect(database("queries")) as db:
        for heading, query in queries().items():
            answers = [row[1:] for row in db.execute(query).fetchall()]
            assert answers == [row[1:] for row in ask(heading, world())], heading
