"""A Redis of our own: durable, found again, never two on one directory."""

import multiprocessing
import os
import signal
import stat
import subprocess
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event, Thread

import pytest
import redis

from protocols.errors import ServerError
from servers.ports import free_port
from servers.redis_server import SOCKET_PATH_BYTES, RedisServer, local
from tests.helpers.eventually import eventually


def client(server: RedisServer) -> redis.Redis:
    return redis.Redis.from_url(server.url, decode_responses=True)


def put(server: RedisServer, key: str, value: str) -> None:
    with client(server) as connection:
        connection.set(key, value)


def get(server: RedisServer, key: str) -> object:
    with client(server) as connection:
        return connection.get(key)


def test_it_is_durable_private_and_alone_in_its_directory(tmp_path: Path) -> None:
    with local(tmp_path / "redis") as server, client(server) as connection:
        config = connection.config_get("append*", "port", "save")
        assert (config["appendonly"], config["appendfsync"]) == ("yes", "always")
        assert (config["port"], config["save"]) == ("0", ""), "it has no network port"
        assert stat.S_IMODE(server.directory.stat().st_mode) == stat.S_IMODE(server.socket.stat().st_mode) == 0o700
        with pytest.raises(ServerError, match=f"already running .* process {server.pid}"):
            RedisServer(tmp_path / "redis").start()
        with pytest.raises(ServerError, match="another process is using"), local(tmp_path / "redis"):
            pass
        assert server.answers(), "being refused must not disturb the owner"


def test_a_killed_server_starts_again_at_the_same_address_with_every_answered_write(
    tmp_path: Path, redis_executable: Path
) -> None:
    server = RedisServer(tmp_path, executable=redis_executable).start()
    try:
        url, pid = server.url, server.pid
        put(server, "memo", "kept")
        server.kill()
        assert (server.running, server.pid) == (False, None)
        assert server.socket.exists(), "a crash leaves its socket behind, and that must not matter"
        server.start()
        assert server.pid != pid
        assert server.url == url
        assert get(server, "memo") == "kept"
    finally:
        server.stop()


def hold(directory: Path, ready: Connection) -> None:
    with local(directory) as server:
        put(server, "memo", "kept")
        ready.send(server.pid)
        signal.pause()


def test_a_server_whose_owner_was_killed_is_taken_over_and_stopped(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    owner = context.Process(target=hold, args=(tmp_path, theirs))
    owner.start()
    pid = ours.recv()
    owner.kill()
    eventually(lambda: not owner.is_alive())  # join waits for a pipe, which the server has inherited
    with local(tmp_path) as server:
        assert server.pid == pid
        assert get(server, "memo") == "kept"
    assert not server.running


def test_who_looks_whether_a_server_runs_is_not_taken_for_one(tmp_path: Path) -> None:
    """Failure would look like: the living stranger that the stale file names gets the signal meant for a server."""
    stranger, ended = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]), Event()
    (tmp_path / "redis.pid").write_text(f"{stranger.pid}\n")

    def look() -> None:
        while not ended.is_set():
            assert not RedisServer(tmp_path).running

    others = [Thread(target=look) for _ in range(2)]
    try:
        for other in others:
            other.start()
        for _ in range(500):
            RedisServer(tmp_path).stop()
        ended.set()
        for other in others:
            other.join(timeout=60)
        RedisServer(tmp_path).kill()
        with local(tmp_path) as server:
            assert server.pid != stranger.pid
        assert stranger.poll() is None
    finally:
        ended.set()
        stranger.kill()
        stranger.wait(timeout=60)


def test_a_deep_directory_gets_a_short_socket_where_nobody_else_may_enter(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    short = RedisServer(deep).socket.parent
    short.mkdir(mode=0o755)
    try:
        with pytest.raises(ServerError, match="is not private"):
            RedisServer(deep).start()
    finally:
        short.rmdir()
    with local(deep) as server:
        assert len(os.fsencode(server.socket)) <= SOCKET_PATH_BYTES
        assert stat.S_IMODE(short.stat().st_mode) == 0o700
        put(server, "memo", "kept")
    assert not short.exists()


def test_a_port_is_opened_on_loopback_when_asked_for(tmp_path: Path) -> None:
    server = RedisServer(tmp_path, port=free_port()).start()
    try:
        assert server.url == f"redis://127.0.0.1:{server.port}/0"
        put(server, "memo", "kept")
    finally:
        server.stop()


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match=r"ended while starting(?s:.*)no-such-option") as caught:
        RedisServer(tmp_path, options={"no-such-option": "1"}).start()
    assert str(tmp_path / "redis.log") in caught.value.hint


LIMITED = """
import resource, sys
from pathlib import Path
import redis
from protocols.errors import StoreUnavailable
from servers.redis_server import local

resource.setrlimit(getattr(resource, sys.argv[1]), (int(sys.argv[2]),) * 2)
with local(Path(sys.argv[3])) as server, redis.Redis.from_url(server.url) as client:
    try:
        for number in range(int(sys.argv[4])):
            client.set(number, bytes(1000))
    except redis.RedisError:
        raise StoreUnavailable("Redis does not answer") from None
print("done")
"""


def limited(limit: str, most: int, directory: Path, writes: int) -> str:
    """What a process prints that writes to a Redis of its own under a limit of the operating system."""
    command = [sys.executable, "-c", LIMITED, limit, str(most), str(directory), str(writes)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout + done.stderr


def test_a_redis_that_cannot_write_is_not_blamed_for_it(tmp_path: Path) -> None:
    assert "could not write and ended: the disk is full" in limited("RLIMIT_FSIZE", 100_000, tmp_path, 500)
    assert "done" in limited("RLIMIT_FSIZE", 10_000_000, tmp_path, 500), "what was full once need not be full again"


def test_few_open_files_are_enough(tmp_path: Path) -> None:
    assert "done" in limited("RLIMIT_NOFILE", 64, tmp_path, 1)
