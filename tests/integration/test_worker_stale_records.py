"""Late writes of a worker that was paused: old records on top of newer ones, in every topic that holds state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from itertools import chain
from pathlib import Path
from random import Random

import pytest
from kafka import KafkaProducer

from lab.worker_process import workers
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, publish, read_topic
from tests.helpers.eventually import eventually
from tests.helpers.published import read_finals
from tests.helpers.recount import histograms_of, recount
from tests.helpers.traffic import a_row
from tests.helpers.workers import caught_up, send
from tests.stream_app.worlds import KEY, SCHEME, Event, Reports, Tick

MakeTopics = Callable[..., Topics]

ROUNDS = ("count/*/counter/*", "count/*/tokens/*", "count/*/position", "merge/*/p*", "partials", "*")


@pytest.mark.long(part="kills")
def test_stale_records_change_nothing(kafka_settings: KafkaSettings, fresh_topics: MakeTopics, tmp_path: Path) -> None:
    """Failure would look like: reports between an old record and the newest counted twice or not at all, tokens of an
    old record that let a repeat through, or a closed period that opens again.

    In each round some periods go on, one is closed, and the worker stops; then older versions of some records, also of
    those that were deleted, are written after the newest.
    """
    random = Random(11)
    topics = fresh_topics(partitions=2, merge_partitions=1)
    publish(kafka_settings, topics, SCHEME.survey)
    with workers(1, kafka_settings, topics, KEY, tmp_path) as (worker,):
        for number, kind in enumerate(ROUNDS):
            if number:
                worker.start()
            for events in a_round(random, number):
                send(kafka_settings, topics, events)
                eventually(lambda: caught_up(kafka_settings, topics))
            worker.leave()
            written = [*stale(kafka_settings, topics, kind, random)]
            assert written, f"nothing to write again of {kind}"
        worker.start()
        send(kafka_settings, topics, [*chain(*a_round(random, len(ROUNDS))), Tick(len(ROUNDS) + 1)])
        eventually(lambda: caught_up(kafka_settings, topics))
        expected = recount(kafka_settings, topics)
        eventually(lambda: len(read_finals(kafka_settings, topics)) == len(expected.finals))
        worker.leave()
    assert read_finals(kafka_settings, topics) == histograms_of(expected)


def a_round(random: Random, number: int) -> Iterator[list[Event]]:
    """Reports for two periods, again with repeats of the same round, then the end of the first.

    The worker writes its state after each list.
    """
    rows = tuple(a_row(random, 0, 1) for _ in range(200))
    yield [Reports(number, rows[:100]), Reports(number + 1, rows[50:150])]
    yield [Reports(number, rows[50:])]
    yield [Tick(number), Reports(number + 1, rows[100:])]


def stale(kafka: KafkaSettings, topics: Topics, kind: str, random: Random) -> Iterator[str]:
    """Write an older version of every record of a kind again."""
    producer = KafkaProducer(**kafka.client_options(), enable_idempotence=True)
    if kind == "partials":
        for record in [*read_topic(kafka, topics.partials)]:
            producer.send(topics.partials, record.value, key=record.key, partition=record.partition)
            yield "partial"
    else:
        for topic in (topics.counting_changelog, topics.merging_changelog):
            versions = defaultdict(list)
            for record in read_topic(kafka, topic):
                versions[record.partition, record.key].append(record.value)
            for (partition, key), values in versions.items():
                older = [value for value in values[:-1] if value is not None]
                if older and fnmatch(key.decode(), kind):
                    producer.send(topic, random.choice(older), key=key, partition=partition)
                    yield key.decode()
    producer.flush()
    producer.close()
