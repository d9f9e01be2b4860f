"""File descriptors: as many connections as they allow, and never one that keeps an honest client out."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import urllib.request
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from socket import create_connection

import pytest

from protocols.errors import StateError
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from servers.ports import free_port
from tests.gateway.test_serve_killed import SURVEY, reports_of
from tests.gateway.world import embedded
from tests.helpers.eventually import eventually

IDLE, DESCRIPTORS = 1100, 1024
PATIENCE_SECONDS = 60
LIMITS = """
import resource
from gateway.http import most_connections
from protocols.errors import ServerError
resource.setrlimit(resource.RLIMIT_NOFILE, (512, 4096))
print(most_connections(), resource.getrlimit(resource.RLIMIT_NOFILE))
resource.setrlimit(resource.RLIMIT_NOFILE, (250, 250))
try:
    most_connections()
except ServerError as error:
    print(error)
"""


def test_the_soft_limit_is_raised_to_the_hard_one_and_too_few_are_named() -> None:
    command = [sys.executable, "-c", LIMITS]
    said = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True).stdout
    raised, refused = said.splitlines()
    assert raised == "3896 (4096, 4096)"
    assert re.match("250 file descriptors are too few .*ulimit", refused)


def test_a_log_that_lacks_descriptors_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with embedded(tmp_path) as log:
        monkeypatch.setattr(log._app, "sync", lambda: os.open(os.devnull, os.O_RDONLY))
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        first_free = os.dup(0)
        os.close(first_free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (first_free, hard))
        try:
            with pytest.raises(StateError, match=r"make sure there are enough file descriptors \(ulimit -n\)"):
                log._write([])
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def enough_descriptors() -> None:
    """Enough for the clients of the test itself."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2 * IDLE:
        pytest.skip(f"this test needs {2 * IDLE} file descriptors")
    if soft < 2 * IDLE:
        resource.setrlimit(resource.RLIMIT_NOFILE, (2 * IDLE, hard))


def test_serve_answers_beside_more_idle_connections_than_it_has_descriptors(
    tmp_path: Path, enough_descriptors: None
) -> None:
    text = SURVEY.format(start=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")).replace("4s", "7d")
    file, log, port = tmp_path / "survey.yaml", tmp_path / "serve.log", free_port()
    file.write_text(text)
    arguments = ["serve", str(file), "--data", str(tmp_path / "data"), "--port", str(port)]
    command = ["sh", "-c", f'ulimit -n {DESCRIPTORS}; exec "$0" "$@"', sys.executable, "-m", "hearsay", *arguments]
    scheme = Scheme(parse_survey(text))
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            eventually(lambda: process.poll() is not None or "Results as they come: " in log.read_text())
            dashboard = re.findall(r"Results as they come: (\S+)", log.read_text())[0]
            with ExitStack() as clients:
                for _ in range(IDLE):
                    clients.enter_context(closing(create_connection(("127.0.0.1", port), PATIENCE_SECONDS)))
                for report in reports_of(scheme, 3):
                    headers = {"content-type": "application/json"}
                    body = json.dumps({**report, "gap": "0001"}).encode()
                    asked = urllib.request.Request(f"http://127.0.0.1:{port}/v1/reports", body, headers)
                    with urllib.request.urlopen(asked, timeout=PATIENCE_SECONDS) as answer:
                        assert answer.status == 201
                with urllib.request.urlopen(dashboard, timeout=PATIENCE_SECONDS) as answer:
                    assert answer.status == 200
            process.terminate()
            assert process.wait(PATIENCE_SECONDS) == 0, log.read_text()
        finally:
            process.kill()
