"""`hearsay edge` over a topic: partitions, owners that die, and events that come too late."""

import json
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import NewTopic

from bench._processes import ServerProcess
from memo_store.drawer import Drawer
from servers.kafka_clients import connected
from stream_app.finals import FinalKey
from stream_app.local import LocalStore
from tests.helpers import town_calls as town
from tests.helpers.counting import Counting, NewCounting
from tests.helpers.eventually import eventually
from tests.helpers.nursery import run
from tests.stream_app.worlds import KEY
from views.reading import Results

PARTITIONS = 3
EDGE = """
survey: survey.yaml
events: {{topic: {topic}}}
columns: {{person: msisdn, time: at, offset: ahead, area: cell, way: cell}}
choose: {{area: longest, way: transition}}
lateness: 2h
idle: {idle}
data: {data}
"""
WAIT_SECONDS = 120.0


class World:
    """An events topic, a cluster that counts, and the files of edges."""

    def __init__(self, counting: Counting, redis_url: str) -> None:
        self.counting, self.kafka, self.root = counting, counting.kafka, counting.directory
        self.topic = f"{counting.topics.prefix}-calls"
        self.environment = {
            **counting.environment,
            "HEARSAY_CLOCK_KEY": KEY.hex(),
            "HEARSAY_REDIS_URL": redis_url,
        }
        (self.root / "survey.yaml").write_text(town.SURVEY)
        with connected(KafkaAdminClient, self.kafka, WAIT_SECONDS) as admin:
            admin.create_topics([NewTopic(self.topic, PARTITIONS, 1)])

    def write(self, some: list[town.Call]) -> None:
        with connected(KafkaProducer, self.kafka, WAIT_SECONDS) as producer:
            for call in some:
                producer.send(self.topic, *town.as_record(call))
            producer.flush()

    def edge(self, data: str, idle: str = "1d", more: str = "") -> Path:
        path = self.root / f"{data}.yaml"
        path.write_text(EDGE.format(topic=self.topic, idle=idle, data=data) + more)
        return path

    def started(self, path: Path) -> ServerProcess:
        """An edge that runs."""
        words = ("-m", "hearsay", "edge", str(path), "--kafka", self.kafka.bootstrap)
        return ServerProcess(self.root / "log", 0, *words, **self.environment).start()

    def done(self, *words: str) -> str:
        ended = run(*words, **self.environment)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout


@pytest.fixture
def world(new_counting: NewCounting, redis_url: str) -> Iterator[World]:
    counting = new_counting(partitions=2, merge_partitions=1)
    with counting.workers():
        yield World(counting, redis_url)


def replayed(world: World, some: list[town.Call]) -> dict[FinalKey, bytes]:
    """The finals of a replay of sorted events in one process, under the keys of the edge."""
    other = world.root / "other"
    other.mkdir()
    shutil.copy(world.root / "data" / "fleet.key", other)
    (other / "redis.new").touch()
    town.write(world.root / "sorted.csv", sorted(some, key=lambda call: call.at))
    words = "--person msisdn --time at --offset ahead --map cell=area --map cell=way --choose area=longest"
    files = [str(world.root / "sorted.csv"), "--survey", str(world.root / "survey.yaml"), "--data", str(other)]
    ended = run("replay", *files, *words.split(), "--choose", "way=transition")
    assert ended.returncode == 0, ended.stderr
    with closing(LocalStore.existing(other / "collector")) as store:
        return Results(store).finals("town")


def equal_to_replay(world: World, some: list[town.Call]) -> None:
    expected = replayed(world, some)
    eventually(lambda: len(world.counting.results.finals("town")) == len(expected))
    assert world.counting.results.finals("town") == expected != {}


@pytest.mark.long(part="cluster")
def test_an_edge_over_a_topic_publishes_what_a_replay_does(world: World) -> None:
    came = town.in_time(town.calls(60, 2))
    half = len(came) // 2
    world.write(came[:half])
    path, to = world.edge("data"), ("--json", "--kafka", world.kafka.bootstrap)
    state = json.loads(world.done("edge", str(path), "--once", *to))
    assert state["rows"] == half
    world.write(came[half:])
    end = (town.START + timedelta(days=2)).isoformat()
    state = json.loads(world.done("edge", str(path), "--end", end, *to))
    assert state["rows"] == len(came) and state["late"] == {}
    equal_to_replay(world, came)
    world.write([came[0]] * 3)
    assert json.loads(world.done("edge", str(path), "--once", *to))["late"] == {"0": 3}
    with connected(KafkaAdminClient, world.kafka, WAIT_SECONDS) as admin:
        admin.create_partitions({world.topic: PARTITIONS + 1})
    refused = run("edge", str(path), "--once", *to, **world.environment)
    assert refused.returncode == 1 and "other partitions than before" in refused.stderr


@pytest.mark.long(part="kills")
def test_two_edges_that_are_killed_count_a_town_exactly(world: World) -> None:
    """Failure would look like: a person more or less in a period, finals that are not the replay's, or a marker."""
    came, rng, kills = town.in_time(town.calls(400, 3)), random.Random(4), 6
    paths = {name: world.edge(name) for name in ("data", "twin")}
    world.write(came[:1])
    world.done("edge", str(paths["data"]), "--once", "--kafka", world.kafka.bootstrap)  # makes the key
    (world.root / "twin").mkdir()
    shutil.copy(world.root / "data" / "fleet.key", world.root / "twin")
    edges = [world.started(path) for path in paths.values()]
    try:
        for part in range(kills):
            world.write(came[1:][len(came) * part // kills : len(came) * (part + 1) // kills])
            time.sleep(2 + 3 * rng.random())
            edge = rng.choice(edges)
            edge.kill()
            edge.start()
        eventually(  # one that ended is started again, as a supervisor does
            lambda: all(e.running or e.start() for e in edges) and world.counting.sent_by_edges(PARTITIONS) >= 9,
            WAIT_SECONDS,
        )
    finally:
        for edge in edges:
            edge.kill()
    end = (town.START + timedelta(days=3)).isoformat()
    state = json.loads(world.done("edge", str(paths["data"]), "--end", end, "--json", "--kafka", world.kafka.bootstrap))
    assert (state["rows"], state["late"]) == (len(came), {})
    equal_to_replay(world, came)
    world.done("edge", str(paths["twin"]), "--once", "--kafka", world.kafka.bootstrap)  # erases what a kill has left
    progress = b"".join(record.value for record in world.counting.read(f"{world.counting.topics.prefix}.edge"))
    kept = [path for name in paths for path in (world.root / name).rglob("*") if path.is_file()]
    for text in (progress, (world.root / "log").read_bytes(), *(path.read_bytes() for path in kept)):
        assert town.MARKER.encode() not in text
    assert not [path for path in kept if path.suffix == ".events"]


@pytest.mark.long(part="cluster")
def test_two_edges_that_forget_share_a_drawer_and_one_with_another_is_refused(world: World) -> None:
    """Failure would look like: tokens of two keys, and so a person who counts twice in a period."""
    came, forget = town.in_time(town.calls(100, 2)), "forget_after: 7h\n"
    paths = [world.edge(name, more=f"{forget}drawer: drawer\n") for name in ("data", "twin")]
    world.write(came[:1])
    world.done("memo", "accept-loss", "--nothing-lost")
    world.done("edge", str(paths[0]), "--once", "--kafka", world.kafka.bootstrap)  # makes the key
    for name in ("twin", "apart"):
        (world.root / name).mkdir()
        shutil.copy(world.root / "data" / "fleet.key", world.root / name)
    apart = world.edge("apart", more=forget)
    refused = run("edge", str(apart), "--kafka", world.kafka.bootstrap, "--once", **world.environment)
    assert refused.returncode == 1 and "are in a drawer on" in refused.stderr, refused.stderr
    edges = [world.started(path) for path in paths]
    try:
        for half in (came[1 : len(came) // 2], came[len(came) // 2 :]):
            world.write(half)
            time.sleep(3)
            edges[0].kill()
            edges[0].start()
        eventually(
            lambda: all(e.running or e.start() for e in edges) and world.counting.sent_by_edges(PARTITIONS) >= 5,
            WAIT_SECONDS,
        )
    finally:
        for edge in edges:
            edge.kill()
    end = (town.START + timedelta(days=2)).isoformat()
    ended = world.done("edge", str(paths[0]), "--end", end, "--json", "--kafka", world.kafka.bootstrap)
    assert (json.loads(ended)["rows"], json.loads(ended)["late"]) == (len(came), {})
    seen = {((call.at - town.START) // timedelta(hours=6), call.person) for call in came}
    expected = sorted(Counter(period for period, _ in seen).items())

    def counted() -> list[tuple[int, int]]:
        return sorted((final.period, final.n) for final in world.counting.results.histograms("town"))

    eventually(lambda: len(counted()) == len(expected), WAIT_SECONDS)
    assert counted() == expected
    drawer = Drawer(world.root / "drawer" / "town.keys")
    assert (drawer.first, drawer.periods) == (6, [6, 7])


@pytest.mark.long(part="cluster")
def test_an_edge_lets_go_of_partitions_while_it_waits_for_others(world: World) -> None:
    """Failure would look like: while one that is silent holds all up, it takes back what it has let go, for ever."""
    group = f"{world.counting.topics.prefix}.edge.town"

    def taken(*partitions: int) -> None:
        """Wait for as many lines in its log; these must be of these partitions."""
        words = "partition taken over"
        eventually(lambda: (world.root / "log").read_text().count(words) >= len(partitions), WAIT_SECONDS)
        lines = [json.loads(line) for line in (world.root / "log").read_text().splitlines() if words in line]
        assert [line["partition"] for line in lines] == list(partitions)

    def member(name: str) -> Any:
        """Another one of the group. Partitions are given in the order of names: kafka-python is that of an edge."""
        options = {"max_poll_interval_ms": 15_000, "session_timeout_ms": 6_000, **world.kafka.client_options()}
        return KafkaConsumer(world.topic, group_id=group, client_id=name, enable_auto_commit=False, **options)

    def joins(consumer: Any, given: int) -> None:
        eventually(lambda: consumer.poll(100) is not None and len(consumer.assignment()) == given, WAIT_SECONDS)

    edge = world.started(world.edge("data"))
    try:
        taken(0, 1, 2)
        with closing(member("z")) as silent, closing(member("a")) as other:
            joins(silent, 1)
            taken(0, 1, 2, 0, 1)
            joins(other, 2)
            taken(0, 1, 2, 0, 1, 2)
    finally:
        edge.kill()


@pytest.mark.long(part="cluster")
def test_events_of_aborted_transactions_never_were(world: World) -> None:
    """Failure would look like: an aborted event is counted, or an edge waits for ever for the end of its partition."""
    someone, path = town.Call(1, town.START, "north"), world.edge("data")
    options = world.kafka.client_options() | {"transactional_id": world.topic}
    with closing(KafkaProducer(**options)) as producer:
        producer.init_transactions()
        for hour, end in (
            (0, producer.abort_transaction),
            (1, producer.commit_transaction),
            (2, producer.abort_transaction),
        ):
            producer.begin_transaction()
            producer.send(world.topic, *town.as_record(replace(someone, at=town.START + timedelta(hours=hour))))
            end()
        for _ in range(2):  # a second start finds nothing new behind the last marker
            state = json.loads(world.done("edge", str(path), "--once", "--json", "--kafka", world.kafka.bootstrap))
            assert state["rows"] == 1


@pytest.mark.long(part="cluster")
def test_a_silent_partition_holds_nobody_up_and_a_wrong_key_is_refused(world: World) -> None:
    someone = town.Call(1, town.START, "north")
    world.write([someone, replace(someone, at=town.START + timedelta(hours=9))])  # one partition has all
    path = world.edge("data", idle="1s")
    edge = world.started(path)
    try:
        eventually(lambda: world.counting.sent_by_edges(PARTITIONS) == 0, seconds=WAIT_SECONDS)
    finally:
        edge.kill()
    with connected(KafkaProducer, world.kafka, WAIT_SECONDS) as producer:
        producer.send(world.topic, b'{"msisdn": "1", "at": "2026-10-24 08:00:00"}', key=b"another").get(WAIT_SECONDS)
    refused = run("edge", str(path), "--kafka", world.kafka.bootstrap, "--once", **world.environment)
    assert refused.returncode == 1 and "the key of the record is not its msisdn" in refused.stderr
