"""Devices that stop at any moment: the next process sends the same bytes or none, whatever the value is by then."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from hearsay_device import Device, Limits
from lab.auditing.gateways import TAKEN, answering, gateway
from tests.clients.cases import ANY
from tests.clients.test_device import CAPPED, Days
from tests.helpers.node import find_node

HERE = Path(__file__).parent
PATIENCE_SECONDS = 120
PYTHON = """
import sys
from hearsay_device import Device, Limits
with Device(sys.argv[2], limits=Limits(value=9, year=99), now=lambda: 1767268800.0) as device:
    print(device.send(sys.argv[1], "test", {"a": sys.argv[3]}).period)
"""


class Watched:
    """A connection to a database that tells after every statement, and every commit, that it was executed."""

    def __init__(self, base: sqlite3.Connection, executed: Callable[[], None]) -> None:
        self._base, self._executed = base, executed

    def execute(self, *statement: Any) -> Any:
        found = self._base.execute(*statement)
        self._executed()
        return found

    def __enter__(self) -> None:
        self._base.__enter__()

    def __exit__(self, *given: Any) -> None:
        self._base.__exit__(*given)
        self._executed()

    def close(self) -> None:
        self._base.close()


def test_whatever_is_on_disk_when_a_device_stops_is_enough_for_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files after each statement of two reports, as a loss of power would leave them.

    A failure would be: other bytes for a period that was sent before; no report at all; or a charge that is missing.
    """
    clock, moments, first = Days(), [], tmp_path / "first"
    first.mkdir()
    connect = sqlite3.connect
    with gateway(answering(200, CAPPED.terms)) as running:

        def keep() -> None:
            copy = tmp_path / f"after {len(moments)}"
            shutil.copytree(first, copy)
            moments.append((copy, clock.day, list(running.posted)))

        monkeypatch.setattr(sqlite3, "connect", lambda *a, **o: Watched(connect(*a, **o), keep))
        with Device(first / "device", limits=Limits(**ANY), now=clock, wait=clock.waited.append) as device:
            for clock.day in (0, 1):
                device.send(running.address, "test", {"a": 1})
        monkeypatch.undo()
        assert len(moments) > 40
        for copy, clock.day, posted in moments:
            running.posted.clear()
            with Device(copy / "device", limits=Limits(**ANY), now=clock, wait=clock.waited.append) as device:
                sent = device.send(running.address, "test", {"a": 7})
                year = device.explain()["year"]
            assert sent.period == clock.day
            for report in posted:
                assert [each for each in running.posted if _period(each) == _period(report)] in ([], [report])
            assert {_period(each) for each in [*posted, *running.posted]} >= {clock.day}
            assert year["answers"] == 1 + clock.day and year["charged"] == pytest.approx(2 * (1 + clock.day))


def _period(report: bytes) -> int:
    return int(report.split(b'"period":"')[1][:8], 16)


@pytest.mark.parametrize("language", ["python", "javascript"])
def test_a_device_that_was_killed_while_sending_sends_the_same_report_again(tmp_path: Path, language: str) -> None:
    command = _command(language)
    arrived, over = Event(), Event()

    def hold_the_first(request: BaseHTTPRequestHandler) -> None:
        if not arrived.is_set():
            arrived.set()
            over.wait(PATIENCE_SECONDS)
        TAKEN(request)

    with gateway(answering(200, CAPPED.terms), hold_the_first) as running:
        first = subprocess.Popen([*command, running.address, str(tmp_path / "state"), "1"], cwd=tmp_path)
        try:
            assert arrived.wait(PATIENCE_SECONDS), "the device sent nothing"
        finally:
            first.kill()
            first.wait(PATIENCE_SECONDS)
            over.set()
        again = subprocess.run(
            [*command, running.address, str(tmp_path / "state"), "7"],
            capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True, cwd=tmp_path,
        )  # fmt: skip
        assert again.stdout.strip() == "0"
    assert len(running.posted) == 2
    assert running.posted[0] == running.posted[1]


@pytest.mark.long(part="clients")
def test_a_device_in_javascript_that_was_killed_at_any_operation_on_files_goes_on(tmp_path: Path) -> None:
    """A failure would be: other bytes for a period that was sent before, no report, or a lock that nobody removes."""
    command = _command("javascript")
    dying = [command[0], "--import", str(HERE / "dying.mjs"), *command[1:]]
    with gateway(answering(200, CAPPED.terms)) as running:
        for operation in count():
            running.posted.clear()
            state = tmp_path / f"killed at {operation}" / "device"
            state.parent.mkdir()
            killed = subprocess.run(
                [*dying, running.address, str(state), "1"],
                env={**os.environ, "DIES_AT": str(operation)}, timeout=PATIENCE_SECONDS, check=False, cwd=tmp_path,
            )  # fmt: skip
            again = subprocess.run(
                [*command, running.address, str(state), "7"],
                capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True, cwd=tmp_path,
            )  # fmt: skip
            assert again.stdout.strip() == "0", operation
            assert 1 <= len(running.posted) <= 2 and len(set(running.posted)) == 1, operation
            assert not (state.parent / "device.lock").exists()
            if killed.returncode == 0:
                break
    assert operation > 40


def _command(language: str) -> list[str]:
    return [sys.executable, "-c", PYTHON] if language == "python" else [find_node(), str(HERE / "device.mjs")]
