"""The state of partitions is what their changelog has, on a real broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from kafka import KafkaProducer

from servers.settings import KafkaSettings
from stream_app.faust_app.broker.acceptance import newest_records
from stream_app.faust_app.broker.state_table import Offsets, StateTable
from stream_app.kafka import Topics
from stream_app.log.flushes import state_key

PARTITIONS = 2
POSITIONS = [state_key("count", partition, "position") for partition in range(PARTITIONS)]
COUNTERS = [state_key("count", partition, "counter", "s", 0) for partition in range(PARTITIONS)]


def write(kafka: KafkaSettings, changelog: str, versions: int) -> None:
    """Several versions of a record of each partition, and one more record that is deleted."""
    producer = KafkaProducer(**kafka.client_options())
    for partition in range(PARTITIONS):
        producer.send(changelog, b"counts", key=COUNTERS[partition], partition=partition)
        for version in range(versions):
            producer.send(changelog, b"%d" % version, key=POSITIONS[partition], partition=partition)
        producer.send(changelog, None, key=COUNTERS[partition], partition=partition)
    producer.close()


async def recovered(kafka: KafkaSettings, changelog: str, check: Callable[[StateTable], None]) -> None:
    offsets = Offsets(kafka)
    await offsets.start([changelog])
    table = StateTable(kafka, offsets, "counting", changelog)
    try:
        await table.recover(range(PARTITIONS), lambda: True)
        check(table)
        await table.recover([1], lambda: True)
        table.put(POSITIONS[0], b"of a partition that is no longer ours")
        with pytest.raises(KeyError):
            table.records(0)
        assert table.records(1) == {POSITIONS[1]: b"2999"}
        await table.recover([0], lambda: False)  # revoked meanwhile
        assert table.records(0) == {}
    finally:
        await offsets.stop()


def test_a_table_has_the_newest_records_of_our_partitions_and_no_others(
    kafka_settings: KafkaSettings, fresh_topics: Callable[..., Topics]
) -> None:
    changelog = fresh_topics(partitions=PARTITIONS, merge_partitions=1).counting_changelog
    write(kafka_settings, changelog, 3000)

    def check(table: StateTable) -> None:
        ours = {key: value for p in range(PARTITIONS) for key, value in table.records(p).items()}
        assert ours == newest_records(kafka_settings, changelog) == dict.fromkeys(POSITIONS, b"2999")
        assert table.recovered_records == PARTITIONS * 3002

    asyncio.run(recovered(kafka_settings, changelog, check))
