"""A worker as a child process, where it does not do what is asked; that it does is in tests/integration."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.worker_process import WorkerProcess
from protocols.errors import ServerError
from servers.settings import KafkaSettings
from stream_app.kafka import Topics


def worker(directory: Path, *options: str) -> WorkerProcess:
    return WorkerProcess(KafkaSettings(), Topics("none"), b"an operator's key", directory / "worker.log", *options)


def test_a_worker_that_was_not_started_cannot_be_ended(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="was not started"):
        worker(tmp_path).kill()
    assert not worker(tmp_path).running


def test_a_worker_that_ends_while_it_starts_says_why(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match=r"(?s)ended while starting.*--no-such-option.*worker\.log"):
        worker(tmp_path, "--no-such-option").start().wait_until_ready()
