"""The example of a device in another language: its reports are good reports, made once."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.gateway.world import KeepingLog, serving
from tests.helpers.node import node
from tests.producers.populations import scheme

EXAMPLE = Path(__file__).parents[2] / "examples" / "foreign-client"
SURVEY = scheme()
ANSWERS = ("colour=blue", "plan=paid")


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Runs the client on a day; what it says."""

    def run(port: int, state: Path, day: int, *answers: str) -> str:
        monkeypatch.setitem(os.environ, "NOW", f"2026-01-{day + 1:02d}T12:00:00Z")
        said = node(EXAMPLE / "client.mjs", f"http://127.0.0.1:{port}", "buttons", state, *answers)
        return (said.stdout + said.stderr).strip()

    return run


@pytest.mark.long(part="clients")
def test_reports_of_a_foreign_client_are_good_reports(tmp_path: Path, report: Callable[..., str]) -> None:
    log = KeepingLog(partitions=3)
    with serving(log, [SURVEY]) as served:
        for device in range(2):
            state = tmp_path / str(device)
            assert report(served.port, state, 0, *ANSWERS) == "period 0: reported"
            assert report(served.port, state, 0, "colour=red", "plan=free") == "period 0: already reported"
            assert report(served.port, state, 4, *ANSWERS) == "period 4: reported"
    frames = [frame for _, frame in log.decoded(SURVEY)]
    assert len({int(token) for frame in frames for token in frame.tokens}) == 4
    assert sorted((frame.period, int(frame.gaps[0])) for frame in frames) == [(0, 7)] * 2 + [(4, 4)] * 2


def test_a_report_that_was_not_delivered_is_sent_again_as_it_was(tmp_path: Path, report: Callable[..., str]) -> None:
    log, state = KeepingLog(fails=True), tmp_path / "state"
    with serving(log, [SURVEY]) as served:
        assert "status 503" in report(served.port, state, 0, *ANSWERS)
        log.fails = False
        assert "the report says" in report(served.port, state, 0, "colour=red", "plan=free", "--show")
        assert report(served.port, state, 0, "colour=red", "plan=free") == "period 0: reported"
    assert log.attempts == 2 and len(log.frames) == 1


def test_a_client_answers_under_the_terms_of_its_first_use_only(tmp_path: Path, report: Callable[..., str]) -> None:
    log, state = KeepingLog(), tmp_path / "state"
    with serving(log, [SURVEY]) as served:
        assert report(served.port, state, 0, *ANSWERS) == "period 0: reported"
    with serving(log, [scheme(budgets="eps_inf: 2, eps_1: 0.9, clock: source")]) as served:
        assert "wrong-fingerprint" in report(served.port, state, 1, *ANSWERS)
    with serving(log, [scheme(budgets="eps_inf: 20, eps_1: 15, clock: source")]) as served:
        assert "the limit of a report" in report(served.port, tmp_path / "new", 1, *ANSWERS)
    assert len(log.frames) == 1
