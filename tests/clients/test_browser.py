"""The JavaScript library in a real browser: its module, IndexedDB, and fetch."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import pytest

from lab.auditing.gateways import served
from tests.clients.test_device import CAPPED
from tests.clients.vectors import FILE
from tests.helpers.browser import find_browser
from tests.helpers.node import LIBRARY

PATIENCE_SECONDS = 180


@contextmanager
def serving(posted: list[bytes], said: Queue[str]) -> Iterator[str]:
    """The library's files, the vectors, and a gateway with one survey, at one address; `said` is what the page says."""

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(LIBRARY))

        def do_GET(self) -> None:
            own = {"/vectors.json": FILE.read_bytes(), "/v1/surveys/test": CAPPED.terms}
            if self.path in own:
                self._answer(200, own[self.path])
            else:
                super().do_GET()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path == "/done":
                said.put(body.decode())
            else:
                posted.append(body)
            self._answer(201, b"{}")

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with served(Handler) as address:
        yield address


@pytest.mark.long(part="clients")
def test_a_browser_makes_the_reports_of_the_vectors_and_sends_its_own(tmp_path: Path) -> None:
    browser = find_browser()
    posted: list[bytes] = []
    said: Queue[str] = Queue()
    with serving(posted, said) as address:
        command = [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            f"--user-data-dir={tmp_path / 'profile'}", f"{address}/tests/browser.html",
        ]  # fmt: skip
        with (tmp_path / "browser.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as running:
            try:
                outcome = said.get(timeout=PATIENCE_SECONDS)
            except Empty:
                outcome = f"the page said nothing for {PATIENCE_SECONDS} seconds"
            finally:
                running.terminate()
    cases = len(json.loads(FILE.read_text())["cases"])
    assert outcome == f"{cases} cases, 0 wrong steps, period 4 sent, then already reported"
    (report,) = posted
    assert json.loads(report)["fingerprint"] == CAPPED.fingerprint
