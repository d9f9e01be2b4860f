"""Stores for tests; and a Redis for those that write thousands of batches and kill nobody: it never syncs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from memo_store.store import MemoStore
from servers.redis_server import RedisServer


@pytest.fixture(scope="session")
def _hasty_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("hasty-redis"), options={"appendfsync": "no"}).start()
    yield server
    server.stop()


@pytest.fixture
def hasty_redis_url(_hasty_server: RedisServer) -> str:
    """The address of a Redis that is empty at the start of the test and never syncs."""
    with redis.Redis.from_url(_hasty_server.url) as client:
        client.flushall()
    return _hasty_server.url


@pytest.fixture
def store(hasty_redis_url: str) -> Iterator[MemoStore]:
    """A new store with a confirmed history."""
    with MemoStore(hasty_redis_url) as store:
        store.accept_loss()
        yield store


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis of one's own."""
    server = RedisServer(tmp_path / "redis").start()
    yield server
    server.stop()
