"""Every survey that we ship goes its whole way: check, plan, serve or gateway, a device's report, close, report, dossier.

Failure would look like: a command that ends with a bug's exit code, a report that is not taken, or a period without it.
"""

import json
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hearsay.cli import app
from hearsay.data_directory import DataDirectory
from hearsay.serving.embedded_log import EmbeddedLog
from protocols.wire import collectable
from tests.gateway.forked import Forked
from tests.helpers.counting import NewCounting
from tests.helpers.every_survey import Case, examples, vectors
from tests.helpers.nursery import run as hearsay
from views.local import collector

LONG_AFTER = timedelta(days=400)


def called(*words: object) -> str:
    """What a command prints, here in this process. An error that nobody foresaw is raised, and any other fails."""
    done = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("surveys")


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [*examples(), *vectors()]


@pytest.fixture(scope="module")
def files(directory: Path, cases: list[Case]) -> list[Path]:
    return [case.file(directory) for case in cases]


@pytest.fixture(scope="module")
def served(directory: Path, cases: list[Case], files: list[Path]) -> Path:
    """The data directory of one `hearsay serve` for all of them, after a report to each, and after all was closed."""
    data = directory / "data"
    go_through_serve(cases, files, data, directory)
    return data


def go_through_serve(cases: list[Case], files: list[Path], data: Path, states: Path) -> None:
    with Forked(states / "serve.log", "serve", *map(str, files), "--data", str(data)).serving() as server:
        address = f"http://127.0.0.1:{server.port}"
        for case in cases:
            assert case.report_to(address, states) == "reported", case.name
        assert json.loads(server.page("/ready")) == {"ready": True}
        assert server.leave() == 0, server.log.read_text()
    close_all(cases, data)


def close_all(cases: list[Case], data: Path) -> None:
    """Let the log of `serve` close what has ended, long after everything has."""
    directory = DataDirectory(data)
    surveys = [case.survey for case in cases]
    later = (datetime.now(UTC) + LONG_AFTER).timestamp()
    with collector(directory.collector, surveys, directory.clock_key(), directory.presence_key()) as kept:
        EmbeddedLog(kept, surveys, now=lambda: later, elapsed=count(step=86400 * 30).__next__)


def test_all_of_them_pass_the_check(files: list[Path], cases: list[Case]) -> None:
    checked = hearsay("survey", "check", *map(str, files), "--json")
    assert checked.returncode == 0, checked.stderr
    found = [survey["id"] for survey in json.loads(checked.stdout)]
    assert found == [case.survey.id for case in cases]


@pytest.mark.parametrize("place", range(len(examples())), ids=lambda place: examples()[place].name)
def test_each_example_is_planned(place: int, files: list[Path]) -> None:
    planned = hearsay("plan", str(files[place]), "--json")
    assert planned.returncode == 0, planned.stderr
    assert json.loads(planned.stdout)["attributes"]


def test_all_of_them_are_served_and_each_final_has_the_report(cases: list[Case], served: Path) -> None:
    for case in cases:
        if case.survey.presence_epsilon is None and not case.survey.minimum:
            assert 1 in reports_of(case, "--data", served), case.name
        called("report", case.survey.id, "--data", served, "--json")


def reports_of(case: Case, *where: object) -> list[Any]:
    """How many reports the periods of a survey have."""
    shown = json.loads(called("report", case.survey.id, *where, "--json"))
    return [period["n"] for period in shown["periods"]]


def test_all_of_them_have_a_dossier_of_what_was_collected(
    cases: list[Case], files: list[Path], served: Path, tmp_path: Path
) -> None:
    for case, file in zip(cases, files, strict=True):
        page = tmp_path / f"{case.survey.id}.html"
        called("dossier", file, "--data", served, "--html", page)
        assert case.survey.id in page.read_text()


def test_a_worker_and_a_gateway_register_all_of_them(cases: list[Case]) -> None:
    for case in cases:
        assert collectable(case.survey).survey is case.survey
