"""The local broker is a real one: what it acknowledged survives whatever happens to its process."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from protocols.errors import ServerError, ServerUnavailable
from servers.kafka_broker import KafkaBroker
from servers.settings import KafkaSettings
from stream_app.kafka import read_topic


def produce(broker: KafkaBroker, topic: str, value: bytes) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, acks="all", enable_idempotence=True)
    producer.send(topic, value, partition=0).get(timeout=30)
    producer.close()


def consume(broker: KafkaBroker, topic: str, count: int) -> list[bytes]:
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=30_000
    )
    consumer.assign([TopicPartition(topic, 0)])
    values = [record.value for record in islice(consumer, count)]
    consumer.close()
    return values


def make_topic(broker: KafkaBroker, topic: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.create_topics({topic: {"num_partitions": 1}}, wait_for_metadata=True)
    admin.close()


@pytest.mark.long(part="cluster")
def test_acknowledged_records_survive_a_kill_and_a_restart_at_the_same_address(kafka: KafkaBroker) -> None:
    make_topic(kafka, "survives")
    address, pid = kafka.bootstrap, kafka.pid
    produce(kafka, "survives", b"before")
    kafka.kill()
    assert (kafka.running, kafka.pid) == (False, None)
    kafka.start()
    assert kafka.bootstrap == address
    assert kafka.pid != pid
    produce(kafka, "survives", b"after the kill")
    kafka.stop()
    kafka.start()
    produce(kafka, "survives", b"after the stop")
    assert consume(kafka, "survives", 3) == [b"before", b"after the kill", b"after the stop"]


def test_a_broker_is_found_again_by_its_directory_and_a_second_one_there_is_refused(kafka: KafkaBroker) -> None:
    again = KafkaBroker(kafka.directory)
    assert (again.pid, again.bootstrap, again.answers()) == (kafka.pid, kafka.bootstrap, True)
    with pytest.raises(ServerError, match=f"already running .* process {kafka.pid}"):
        again.start()


def test_topics_are_not_made_by_accident(kafka: KafkaBroker) -> None:
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    consumer = KafkaConsumer("misspelt", bootstrap_servers=kafka.bootstrap, consumer_timeout_ms=200)
    assert list(consumer) == []
    assert "misspelt" not in admin.list_topics()
    consumer.close()
    admin.close()


def test_a_taken_port_is_named_before_anything_is_started(kafka: KafkaBroker, tmp_path: Path) -> None:
    with pytest.raises(ServerError, match=f"port {kafka.port} is taken"):
        KafkaBroker(tmp_path, port=kafka.port).start()
    assert not (tmp_path / "kafka.log").exists()


def test_a_setting_that_kafka_refuses_is_shown(tmp_path: Path) -> None:
    broker = KafkaBroker(tmp_path, settings={"num.io.threads": "none"})
    with pytest.raises(ServerError, match=r"num\.io\.threads"):
        broker.start()
    assert not broker.running


@pytest.mark.long(part="cluster")
def test_reading_a_topic_ends_when_its_broker_goes_away(
    kafka: KafkaBroker, kafka_settings: KafkaSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_topic(kafka, "silenced")
    for _ in range(8):
        produce(kafka, "silenced", bytes(900_000))  # a fetch takes one or two of these
    records = read_topic(kafka_settings, "silenced")
    next(records)
    monkeypatch.setattr("stream_app.kafka.reading.SILENT_SECONDS", 2)
    kafka.kill()
    try:
        with pytest.raises(ServerUnavailable, match="silenced"):
            list(records)
    finally:
        kafka.start()
