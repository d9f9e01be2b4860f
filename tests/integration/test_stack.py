"""`hearsay stack` and `hearsay topics` as a person or a script meets them, with the real servers behind them."""

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from typer.testing import CliRunner

from hearsay.commands.operations import stack as stack_command
from hearsay.running.stack import Stack
from protocols.errors import ServerError
from servers import kafka_jars as jars
from servers.kafka_broker import KafkaBroker
from servers.ports import free_port
from servers.settings import load
from stream_app.kafka import check, existing

pytestmark = [pytest.mark.long(part="cluster"), pytest.mark.integration, pytest.mark.xdist_group("kafka")]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("stack"))
    stack.up()
    yield stack
    stack.down()


def run(app: Any, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    return result.exit_code, result.output


def status(stack: Stack) -> tuple[int, dict[str, Any]]:
    code, output = run(stack_command.app, "status", "--dir", str(stack.directory), "--json")
    return code, {server["name"]: server for server in json.loads(output)["servers"]}


def test_up_leaves_two_servers_that_answer_and_topics_as_they_must_be_and_settings_that_lead_there(
    stack: Stack,
) -> None:
    code, servers = status(stack)
    assert (code, servers["kafka"]["answers"], servers["redis"]["answers"]) == (0, True, True)
    settings = load(stack.settings_file)
    assert check(settings.kafka, existing(settings.kafka)) == []
    assert (settings.kafka.bootstrap, settings.redis.url) == (servers["kafka"]["address"], stack.redis.url)
    assert len(settings.clock_key_bytes()) == 32
    assert stat.S_IMODE((stack.directory / "clock.key").stat().st_mode) == 0o600


def test_up_again_changes_nothing(stack: Stack) -> None:
    before = stack.status(), stack.settings_file.read_text(), (stack.directory / "clock.key").read_text()
    code, output = run(stack_command.app, "up", "--dir", str(stack.directory))
    assert code == 0
    assert f"HEARSAY_SETTINGS={stack.settings_file}" in output
    assert (stack.status(), stack.settings_file.read_text(), (stack.directory / "clock.key").read_text()) == before


def test_a_killed_server_is_reported_and_up_brings_it_back_with_its_data(stack: Stack) -> None:
    with redis.Redis.from_url(stack.redis.url) as client:
        client.set("memo", "kept")
    stack.redis.kill()
    code, servers = status(stack)
    assert (code, servers["redis"]["answers"], servers["kafka"]["answers"]) == (1, False, True)
    stack.up()
    with redis.Redis.from_url(stack.redis.url, decode_responses=True) as client:
        assert client.get("memo") == "kept"


def test_the_logs_are_shown_with_their_places(stack: Stack) -> None:
    code, output = run(stack_command.app, "logs", "--dir", str(stack.directory), "-n", "3", "--json")
    shown = json.loads(output)
    assert code == 0
    assert [len(lines) for lines in shown.values()] == [3, 3]
    assert list(shown) == [str(stack.kafka.log_file), str(stack.redis.log_file)]


def test_down_stops_both_may_be_repeated_and_up_returns_to_the_same_addresses(stack: Stack) -> None:
    addresses = [server.address for server in stack.status()]
    for _ in range(2):
        code, _ = run(stack_command.app, "down", "--dir", str(stack.directory))
        assert code == 0
        assert [server.pid for server in stack.status()] == [None, None]
    stack.up()
    assert [server.address for server in stack.status()] == addresses


def test_a_broker_moves_to_another_port_when_it_is_stopped(stack: Stack) -> None:
    with pytest.raises(ServerError, match=f"running on port {stack.kafka.port}, not 4711"):
        stack.up(port=4711)
    stack.down()
    port = free_port()
    stack.up(port=port)
    assert stack.kafka.bootstrap == f"127.0.0.1:{port}"
    assert stack.kafka.answers()


def test_nothing_is_running_where_nothing_was_started(tmp_path: Path) -> None:
    never = Stack(tmp_path / "never")
    never.down()
    assert [server.pid for server in never.status()] == [None, None]
    assert not never.directory.exists()


@pytest.mark.parametrize(("program", "package"), [("java", "default-jre-headless"), ("mvn", "maven")])
def test_a_missing_program_is_one_sentence_that_says_what_to_install(
    program: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEARSAY_CACHE", str(tmp_path / "empty"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("MAVEN_HOME", raising=False)
    installed = jars.shutil.which
    monkeypatch.setattr(jars.shutil, "which", lambda name: None if name == program else installed(name))
    with pytest.raises(ServerError, match="is not installed") as caught:
        Stack(tmp_path / "stack").up()
    assert package in caught.value.hint
    assert not KafkaBroker(tmp_path / "stack" / "kafka").running
