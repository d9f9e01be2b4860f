"""Whatever never ends is refused after a bounded number of bytes: by each of our servers, in every state of the parser.

A parser may take 1 microsecond for each byte that it is sent. What is not counted would be parsed, and held, for as
long as the time of a request.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from hearsay.serving.worker import serve_pages
from pages.dashboard import Source
from servers.ports import free_port
from stream_app.local import DirectoryFollower
from tests.gateway.world import KeepingLog, serving
from tests.helpers.collecting import collecting, small_survey
from tests.helpers.dashboards import dashboard
from tests.helpers.endless import MOST_BYTES, STATES, answer_to


@contextmanager
def a_gateway(directory: Path) -> Iterator[int]:
    with serving(KeepingLog()) as served:
        yield served.port
        assert served.listener.held_bytes == 0


@contextmanager
def a_dashboard(directory: Path) -> Iterator[int]:
    with collecting(directory, small_survey()):
        pass
    with dashboard(Source(lambda: DirectoryFollower(directory))) as running:
        yield running.port


@contextmanager
def a_worker(directory: Path) -> Iterator[int]:
    port = free_port()
    with serve_pages("127.0.0.1", port):
        yield port


@pytest.mark.parametrize("server", [a_gateway, a_dashboard, a_worker])
def test_what_never_ends_is_refused_after_a_bounded_number_of_bytes(
    server: Callable[[Path], AbstractContextManager[int]], tmp_path: Path
) -> None:
    with server(tmp_path) as port:
        before = time.process_time()
        answers = {state: answer_to(port, state) for state in STATES}
        spent = time.process_time() - before
    assert set(answers.values()) <= {400, 405, 413, 431}, answers
    assert spent < len(STATES) * MOST_BYTES * 1e-6
