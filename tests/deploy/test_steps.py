"""The runner of `make deploy-test`: a line for each step, missing tools named, failures told by the exit code."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest

from tests.deploy_test import __main__ as runner
from tests.deploy_test.tools import Tool
from tests.deploy_test.workplace import Workplace

HERE, NOT_HERE = Tool("sh", "Debian: dash", lambda: True), Tool("a-tool", "Debian: a-package", lambda: False)


def good(place: Workplace) -> str:
    return f"said {place.run('echo', 'hello', within=10).strip()}"


def bad(place: Workplace) -> str:
    place.run("sh", "-c", "echo the cause >&2; exit 3", within=10)
    return ""


def slow(place: Workplace) -> str:
    place.run("sleep", "60", within=0.2)
    return ""


def broken(place: Workplace) -> str:
    raise ValueError("a bug")


STEPS = {
    "bad": runner.Step((HERE,), bad),
    "slow": runner.Step((HERE,), slow),
    "broken": runner.Step((HERE,), broken),
    "absent": runner.Step((HERE, NOT_HERE), good),
    "good": runner.Step((HERE,), good),
}


@pytest.fixture(autouse=True)
def steps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(runner, "STEPS", STEPS)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # a run that failed keeps its directory


def run(monkeypatch: pytest.MonkeyPatch, only: str) -> None:
    monkeypatch.setattr(sys, "argv", ["deploy_test", "--only", only])
    runner.main()


def test_a_step_that_fails_says_why_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, "bad,slow,broken,absent,good")
    assert ended.value.code == 1
    shown = capsys.readouterr().out
    results = [line.split()[:2] for line in shown.splitlines() if line.split()[1:2] and line.split()[1] in STEPS]
    assert results == [
        ["failed", "bad"],
        ["failed", "slow"],
        ["failed", "broken"],
        ["skipped", "absent"],
        ["ok", "good"],
    ]
    assert "ended with code 3" in shown and "the cause" in shown
    assert "did not end within 0 seconds" in shown and "ValueError: a bug" in shown
    assert "a-tool (Debian: a-package)" in shown and "sh (" not in shown
    assert "said hello" in shown and "1 ok, 3 failed, 1 skipped" in shown


def test_a_run_without_failures_leaves_nothing_and_ends_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, "good,absent")
    log = Path(capsys.readouterr().out.splitlines()[0].removeprefix("the log is "))
    assert log.name == "log.txt" and not log.parent.exists()


def test_a_step_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, "good,other")
    assert ended.value.code == 2
