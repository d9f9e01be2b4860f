"""One rule for directories: hearsay-data/SURVEY, for every command; and what is refused leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hearsay.cli import app
from protocols.errors import HearsayError, ResultsError, ScenarioError, ServerUnavailable

SURVEY = """
id: buttons
start: 2026-01-01T00:00:00Z
period: 1d
eps_inf: 4
eps_1: 2
clock: source
attributes:
  - {name: colour, values: [red, green]}
"""
RUN = ("run", "survey.yaml", "--devices", "40", "--periods", "1")


@pytest.fixture(autouse=True)
def _survey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("survey.yaml").write_text(SURVEY)


def type_in(*words: str) -> Result:
    return CliRunner().invoke(app, words, env={"HEARSAY_CLOCK_KEY": "5e" * 32})


def refused(error: type[HearsayError], *words: str) -> str:
    result = type_in(*words)
    assert isinstance(result.exception, error), result.output
    return f"{result.exception.message}: {result.exception.hint}"


def test_a_run_is_read_where_it_was_written() -> None:
    assert "no results in hearsay-data" in refused(ResultsError, "report")
    done = type_in(*RUN)
    assert done.exit_code == 0, done.exception
    assert "Next: hearsay report buttons\n" in done.output and "hearsay-data/buttons/reports" in done.output
    for words in (["report"], ["report", "buttons"], ["memo", "stats"]):
        assert type_in(*words).exit_code == 0, words
    assert "here: buttons" in refused(ResultsError, "report", "other")
    Path("hearsay-data/others/collector").mkdir(parents=True)
    assert "give the id of one: buttons, others" in refused(ResultsError, "report")
    assert type_in("report", "buttons").exit_code == 0


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ServerUnavailable, ("--kafka", "127.0.0.1:1")),
        (ScenarioError, ("--scenario", "virtual-humans")),
        (HearsayError, ("--scenario", "nothing")),
    ],
)
def test_a_refused_run_leaves_nothing_behind(error: type[HearsayError], words: tuple[str, ...]) -> None:
    refused(error, *RUN, *words)
    assert [path.name for path in Path().iterdir()] == ["survey.yaml"]


def test_a_run_that_was_refused_late_leaves_nothing_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memo store cannot be reached, after the collector was opened."""
    monkeypatch.setenv("HEARSAY_REDIS_URL", "redis://127.0.0.1:1")
    refused(HearsayError, *RUN)
    assert [path.name for path in Path().iterdir()] == ["survey.yaml"]
    monkeypatch.delenv("HEARSAY_REDIS_URL")
    assert type_in(*RUN, "--seed", "7").exit_code == 0


def test_what_other_surveys_left_stays() -> None:
    Path("hearsay-data").mkdir()
    Path("hearsay-data/notes").touch()
    refused(ServerUnavailable, *RUN, "--kafka", "127.0.0.1:1")
    assert [path.name for path in Path("hearsay-data").iterdir()] == ["notes"]
