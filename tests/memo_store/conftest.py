"""A Redis for tests that write thousands of batches and kill nobody: it does not wait for the disk."""

from collections.abc import Iterator

import pytest
import redis

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
