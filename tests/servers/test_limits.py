"""No wait for another process is without a limit, and each says what it waited for."""

import fcntl
from pathlib import Path

import pytest

from hearsay.running import stack
from protocols.errors import ServerError
from servers import kafka_broker
from servers.processes import lock_within

SHORT = 0.3


def program(home: Path, name: str) -> Path:
    """A directory with a program that never ends."""
    (home / "bin").mkdir(parents=True)
    path = home / "bin" / name
    path.write_text("#!/bin/sh\nexec sleep 600\n")
    path.chmod(0o755)
    return home


def test_a_lock_that_another_process_keeps(tmp_path: Path) -> None:
    with (tmp_path / "a.lock").open("w") as ours, (tmp_path / "a.lock").open("w") as theirs:
        fcntl.flock(theirs, fcntl.LOCK_EX)
        with pytest.raises(ServerError, match=r"a neighbour did not end within 0 seconds .*a.lock is locked"):
            lock_within(SHORT, ours, "a neighbour", "wait")
        fcntl.flock(theirs, fcntl.LOCK_UN)
        lock_within(SHORT, ours, "a neighbour", "wait")
        with pytest.raises(BlockingIOError):
            fcntl.flock(theirs, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_stack_that_another_command_works_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack, "ALONE_SECONDS", SHORT)
    with (tmp_path / "stack.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ServerError, match=r"another `hearsay stack` command"):
            stack.Stack(tmp_path).down()


def test_a_maven_that_never_ends_and_those_who_wait_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEARSAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MAVEN_HOME", str(program(tmp_path / "maven", "mvn")))
    monkeypatch.setattr(kafka_broker, "FETCH_SECONDS", SHORT)
    with pytest.raises(ServerError, match=r"Maven, which fetches Kafka [0-9.]+, did not end"):
        kafka_broker.kafka_jars()
    jars = kafka_broker.jars_directory()
    assert [path.name for path in jars.parent.iterdir()] == [f"{jars.name}.lock"]
    with (jars.parent / f"{jars.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ServerError, match=r"another process that fetches Kafka did not end"):
            kafka_broker.kafka_jars()


def test_a_java_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(program(tmp_path / "java", "java")))
    monkeypatch.setattr(kafka_broker, "FORMAT_SECONDS", SHORT)
    monkeypatch.setattr(kafka_broker, "kafka_jars", lambda: tmp_path)
    broker = kafka_broker.KafkaBroker(tmp_path / "kafka")
    with pytest.raises(ServerError, match=r"Kafka, which prepares .*, did not end"):
        broker.start()
    assert not broker.running
