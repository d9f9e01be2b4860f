"""Devices that are killed while they send: the next process sends the same bytes, whatever the value is by then."""

from __future__ import annotations

import shutil
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Event

import pytest

from tests.clients.gateways import TAKEN, answering, gateway
from tests.clients.test_device import CAPPED
from tests.helpers.node import LIBRARY, node

PATIENCE_SECONDS = 120
PYTHON = """
import sys
from datetime import UTC, datetime
import hearsay
with hearsay.Device(sys.argv[2], now=lambda: datetime(2026, 1, 1, 12, tzinfo=UTC)) as device:
    print(device.send(sys.argv[1], "test", {"a": sys.argv[3]}))
"""
JAVASCRIPT = f"""
import {{ Device }} from "{LIBRARY}/src/index.js";
import {{ FileStorage }} from "{LIBRARY}/src/storage/file.js";
const [gateway, state, a] = process.argv.slice(-3);
const device = new Device(new FileStorage(state), {{ now: () => Date.parse("2026-01-01T12:00:00Z") }});
console.log((await device.send(gateway, "test", {{ a }})).period);
"""


@pytest.mark.parametrize("language", ["python", "javascript"])
def test_a_device_that_was_killed_while_sending_sends_the_same_report_again(tmp_path: Path, language: str) -> None:
    command = _command(tmp_path, language)
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


def _command(directory: Path, language: str) -> list[str]:
    if language == "python":
        return [sys.executable, "-c", PYTHON]
    node("--version")  # skips the test where the library cannot run
    script = directory / "device.mjs"
    script.write_text(JAVASCRIPT)
    return [str(shutil.which("node")), str(script)]
