"""The connection to Redis: bounded retries, users with few rights, TLS, clusters, and warnings about durability."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import redis
from structlog.testing import capture_logs

from memo_store.connection.link import RIGHTS
from memo_store.store import MemoStore
from protocols.errors import HearsayError, ServerError, SettingsError, StoreError, StoreUnavailable
from servers.ports import free_port
from servers.redis_server import RedisServer
from servers.settings import RedisSettings
from tests.helpers.certificates import Authority
from tests.helpers.eventually import eventually
from tests.memo_store.surveys import devices, respondent, running

EVERYONE = devices(3000)
VALUES = np.arange(3000) % 10


def works(store: MemoStore) -> bool:
    """A round of everything a fleet does, twice."""
    people = respondent()
    memos, question = store.survey(people), people.scheme.questions[0]
    for period in (0, 1):
        assert memos.presence.status(EVERYONE, period).eligible.all()
        memo = memos.lookup(question, EVERYONE, VALUES, period)
        memos.presence.delivered(EVERYONE, period)
    assert store.stats().surveys[0].devices == len(EVERYONE)
    return bool((memo == people.memoise(question, EVERYONE, VALUES)).all())


def test_everything_works_on_every_redis_there_is(tmp_path: Path, redis_executable: Path) -> None:
    with running(tmp_path, executable=redis_executable) as server, MemoStore(server.url) as store:
        assert works(store)


def test_a_store_that_is_down_is_tried_a_few_times_with_growing_pauses(server: RedisServer) -> None:
    pauses = list[float]()
    with MemoStore(server.url, sleep=pauses.append) as store:
        memos = store.survey(respondent())
        server.stop()
        with pytest.raises(StoreUnavailable, match="did not answer after 8 tries") as caught:
            memos.lookup(memos.respondent.scheme.questions[0], EVERYONE, VALUES, 0)
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.0, 3.0]
    assert caught.value.retriable


def test_a_store_that_is_silent_is_not_waited_for_for_ever(server: RedisServer) -> None:
    with MemoStore(server.url, sleep=lambda _: None, socket_timeout=0.3) as store:
        memos = store.survey(respondent())
        pid = server.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(StoreUnavailable, match="Timeout"):
            memos.presence.status(EVERYONE, 0)
        os.kill(pid, signal.SIGCONT)
        assert memos.presence.status(EVERYONE, 0).eligible.all()


def test_a_client_that_decodes_and_an_invalid_url_are_refused(redis_url: str) -> None:
    with (
        redis.Redis.from_url(redis_url, decode_responses=True) as client,
        pytest.raises(SettingsError, match="decode_responses=False"),
    ):
        MemoStore(client)
    for url in ("http://localhost", "redis://localhost/0?colour=red"):
        with pytest.raises(SettingsError, match=r"'[a-z]*://localhost.*' is not a valid Redis URL"):
            MemoStore(url)


@pytest.mark.parametrize(
    "url",
    [
        "redis://fleet:hush@127.0.0.1:1/0",
        "redis://127.0.0.1:1/0?username=fleet&password=hush",
        "redis://fleet:hush/1@127.0.0.1:1/0",  # which makes a port of the password
        "redis://127.0.0.1:1/0?password=hush&db=first",
    ],
)
def test_a_password_in_a_url_is_not_shown_whatever_is_wrong_with_it(url: str) -> None:
    with pytest.raises(HearsayError) as caught:
        MemoStore(url, sleep=lambda _: None)
    assert "hush" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value)


def test_a_user_with_few_rights_is_enough_and_secrets_are_not_shown(server: RedisServer) -> None:
    with redis.Redis.from_url(server.url) as admin:
        admin.execute_command("ACL", "SETUSER", "fleet", "on", ">hush", *RIGHTS.split())
        admin.execute_command("ACL", "SETUSER", "guest", "on", ">hush", "+info", "+ping")
        admin.execute_command("ACL", "SETUSER", "half", "on", ">hush", *RIGHTS.replace("+@string", "").split())
    settings = RedisSettings(url=server.url, username="fleet", password="hush")
    assert settings.url is not None
    with MemoStore(settings.url, **settings.client_options()) as store:
        assert works(store)
        assert store.stats().durability.fsync is None, "a user who may not ask does not know"
    for name, word, reason in (
        ("guest", "hush", r"no permissions.*grant the user \+@hash"),
        ("fleet", "wrong", "refused the user"),
    ):
        with pytest.raises(StoreError, match=reason) as caught:
            MemoStore(f"{server.url}", username=name, password=word).survey(respondent())
        assert word not in str(caught.value)
    with (
        MemoStore(server.url, username="half", password="hush") as store,
        pytest.raises(StoreError, match=r"grant the user \+@hash \+@string"),
    ):
        people = respondent(id="others")  # what the user lacks here is lacking inside of a script
        store.survey(people).lookup(people.scheme.questions[0], EVERYONE, VALUES, 0)


def test_tls_by_settings(tmp_path: Path, redis_executable: Path) -> None:
    authority, port = Authority(tmp_path), free_port()
    certificate, key = authority.issue("redis")
    options = {
        "tls-port": str(port),
        "tls-cert-file": str(certificate),
        "tls-key-file": str(key),
        "tls-ca-cert-file": str(authority.certificate),
        "tls-auth-clients": "no",
    }
    try:
        with running(tmp_path / "redis", executable=redis_executable, options=options):
            settings = RedisSettings(url=f"rediss://127.0.0.1:{port}/0", ssl_ca=authority.certificate)
            assert settings.url is not None
            with MemoStore(settings.url, **settings.client_options()) as store:
                assert works(store)
            with pytest.raises(StoreUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
                MemoStore(settings.url, sleep=lambda _: None)
    except ServerError as error:
        if "TLS support" not in str(error):
            raise
        pytest.skip("this server was built without TLS")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[list[RedisServer]]:
    """Two servers that share the slots."""
    with ExitStack() as stack:
        servers, clients = list[RedisServer](), list[redis.Redis]()
        for number in range(2):
            options = {"cluster-enabled": "yes", "cluster-port": str(free_port())}
            servers.append(stack.enter_context(running(tmp_path / str(number), port=free_port(), options=options)))
            clients.append(stack.enter_context(redis.Redis.from_url(servers[-1].url)))
        for client, slots in zip(clients, ((0, 8191), (8192, 16383)), strict=True):
            client.execute_command("CLUSTER ADDSLOTSRANGE", *slots)
        bus = servers[1].options["cluster-port"]
        clients[0].execute_command("CLUSTER MEET", "127.0.0.1", servers[1].port, bus)
        eventually(lambda: all(client.cluster("info")["cluster_state"] == "ok" for client in clients))
        eventually(lambda: all(len(client.execute_command("CLUSTER SLOTS")) == 2 for client in clients))
        yield servers


def test_a_cluster_is_recognised_and_every_node_has_its_share(cluster: list[RedisServer]) -> None:
    with MemoStore(cluster[0].url) as store:
        assert works(store)
    for server in cluster:
        with redis.Redis.from_url(server.url) as client:
            held = sum(client.hlen(key) for key in client.scan_iter("hearsay:{*}:*", _type="hash"))
            assert len(EVERYONE) / 4 < held


@pytest.mark.parametrize(
    ("options", "warnings"),
    [
        ({}, []),
        ({"appendonly": "no"}, ["append-only is off"]),
        ({"appendfsync": "everysec"}, ["synced once a second"]),
        ({"appendfsync": "no"}, ["never synced"]),
        ({"maxmemory": "100mb", "maxmemory-policy": "allkeys-lru"}, ["allkeys-lru may evict ledgers"]),
    ],
)
def test_a_store_that_could_forget_is_warned_about(
    tmp_path: Path, options: dict[str, str], warnings: list[str]
) -> None:
    with running(tmp_path, options=options) as server, capture_logs() as logs, MemoStore(server.url):
        said = [entry["event"] for entry in logs if entry["log_level"] == "warning"]
    assert len(said) == len(warnings)
    assert all(expected in message for expected, message in zip(warnings, said, strict=True))
