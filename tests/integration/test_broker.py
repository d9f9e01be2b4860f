"""The local broker and its program files: found again, refused where they must be, and fetched once."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from kafka import KafkaAdminClient, KafkaConsumer

from producers.kafka_sink import KafkaSink
from protocols.errors import ServerError, ServerUnavailable
from servers import kafka_broker as jars
from servers.kafka_broker import KafkaBroker
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, read_topic

ASK = "from servers.kafka_broker import kafka_jars; print(kafka_jars())"


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
    kafka: KafkaBroker,
    kafka_settings: KafkaSettings,
    fresh_topics: Callable[..., Topics],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = fresh_topics(partitions=1).reports
    sink = KafkaSink(kafka_settings, topic)
    for seed in range(8):
        sink.send(0, "noise", Random(seed).randbytes(900_000))  # a fetch takes one or two of these
        sink.flush()
    sink.close()
    records = read_topic(kafka_settings, topic)
    next(records)
    monkeypatch.setattr("stream_app.kafka.reading.SILENT_SECONDS", 2)
    kafka.kill()
    try:
        with pytest.raises(ServerUnavailable, match=topic):
            list(records)
    finally:
        kafka.start()


@pytest.mark.long(part="kills")
def test_two_processes_that_ask_at_once_get_the_same_complete_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEARSAY_CACHE", str(tmp_path))
    asking = [subprocess.Popen([sys.executable, "-c", ASK], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = [process.communicate(timeout=300)[0].strip() for process in asking]
    assert answers == [str(jars.jars_directory())] * 2
    assert any(jars.jars_directory().glob(f"kafka-clients-{jars.kafka_version()}.jar"))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        jars.jars_directory().name,
        f"{jars.jars_directory().name}.lock",
    ]


@pytest.mark.long(part="kills")
def test_a_fetch_that_fails_leaves_nothing_behind_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "pom.xml"
    broken.write_text(jars.POM.read_text().replace("kafka_2.13", "kafka_0.0"))
    monkeypatch.setattr(jars, "POM", broken)
    monkeypatch.setenv("HEARSAY_CACHE", str(tmp_path / "cache"))
    with pytest.raises(ServerError, match=r"could not fetch Kafka(?s:.*)kafka_0\.0"):
        jars.kafka_jars()
    assert not jars.jars_directory().exists()
