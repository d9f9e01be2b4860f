"""Topics that are copied record by record to another cluster, and brokers that are restarted one after the other."""

from pathlib import Path

from kafka import KafkaProducer

from bench._processes import workers
from servers.kafka_broker import KafkaBroker
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, create, publish, read_topic
from tests.helpers.cluster import BROKERS, Cluster
from tests.helpers.command_line import hearsay
from tests.helpers.eventually import eventually
from tests.helpers.published import read_finals
from tests.helpers.recount import histograms_of, recount
from tests.helpers.workers import caught_up, send
from tests.stream_app.worlds import KEY, SCHEME, Reports, Row, Tick

TOPICS = Topics("copied", partitions=2, merge_partitions=1)


def copy(source: KafkaSettings, target: KafkaSettings) -> None:
    """Copy every record of every topic, as a mirroring tool does."""
    create(target, TOPICS)
    producer = KafkaProducer(**target.client_options(), max_request_size=8 << 20)
    for topic in TOPICS.all():
        for record in read_topic(source, topic.name):
            headers = list(record.headers)
            producer.send(topic.name, record.value, record.key, headers=headers, partition=record.partition).get(60)
    producer.close()


def test_results_of_copied_topics_are_read_and_a_worker_counts_nothing_on_them(tmp_path: Path) -> None:
    """Failure would look like: a state that goes on with reports that are not the ones that it was counted from."""
    first, second = (KafkaBroker(tmp_path / name).start() for name in ("first", "second"))
    source, target = (KafkaSettings(bootstrap=broker.bootstrap) for broker in (first, second))
    try:
        create(source, TOPICS)
        publish(source, TOPICS, SCHEME.survey)
        with workers(1, source, TOPICS, KEY, tmp_path):
            send(source, TOPICS, [Reports(0, tuple(Row(token) for token in range(1, 100))), Tick(0)])
            send(source, TOPICS, [Reports(1, tuple(Row(token) for token in range(1, 50)))])
            eventually(lambda: len(read_finals(source, TOPICS)) == 1 and caught_up(source, TOPICS))
        copy(source, target)
        assert read_finals(target, TOPICS) == read_finals(source, TOPICS)
        shown = hearsay(target, TOPICS, "report", "s", "--kafka", target.bootstrap)
        assert shown.returncode == 0, shown.stderr
        with workers(1, target, TOPICS, KEY, tmp_path / "target") as (worker,):
            eventually(lambda: 'fault="another"' in worker.page("/metrics"))
            send(target, TOPICS, [Tick(1)])
            eventually(lambda: worker.metric("hearsay_lag_records") > 0)
            assert worker.metric("hearsay_reports_total") == 0
        assert read_finals(target, TOPICS) == read_finals(source, TOPICS)
    finally:
        first.stop()
        second.stop()


ROLLED = Topics("rolled", partitions=3, merge_partitions=1)


def test_brokers_that_are_restarted_one_after_the_other_change_no_count(tmp_path: Path) -> None:
    """Failure would look like: a report that was confirmed and is not counted, or is counted twice."""
    cluster = Cluster(tmp_path)
    try:
        kafka = cluster.start().settings
        create(kafka, ROLLED, replication=BROKERS)
        publish(kafka, ROLLED, SCHEME.survey)
        with workers(2, kafka, ROLLED, KEY, tmp_path) as group:
            for period, broker in enumerate(cluster.brokers.values()):
                send(kafka, ROLLED, [Reports(period, tuple(Row(token) for token in range(1, 500)))])
                broker.stop()
                send(kafka, ROLLED, [Reports(period, tuple(Row(token) for token in range(500, 900))), Tick(period)])
                cluster.start()
                cluster.wait_until_in_sync(ROLLED.reports, ROLLED.partitions)
            for worker in group:
                if not worker.running:
                    worker.start()
            eventually(lambda: len(read_finals(kafka, ROLLED)) == BROKERS, 240)
        assert read_finals(kafka, ROLLED) == histograms_of(recount(kafka, ROLLED))
    finally:
        cluster.stop()
