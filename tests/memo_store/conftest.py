"""Stores for tests; and a Redis for those that write thousands of batches and kill nobody: it never syncs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memo_store.store import MemoStore
from servers.redis_server import RedisServer
from tests.memo_store.surveys import empty, running


@pytest.fixture(scope="session")
def _hasty_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with running(tmp_path_factory.mktemp("hasty-redis"), options={"appendfsync": "no"}) as server:
        yield server


@pytest.fixture
def hasty_redis_url(_hasty_server: RedisServer) -> str:
    """The address of a Redis that is empty at the start of the test and never syncs."""
    empty(_hasty_server.url)
    return _hasty_server.url


@pytest.fixture
def store(hasty_redis_url: str) -> Iterator[MemoStore]:
    """A new store with a confirmed history."""
    with MemoStore(hasty_redis_url) as store:
        store.accept_loss()
        yield store


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with running(tmp_path / "redis") as server:
        yield server
