"""Topics that are copied record by record to another cluster, and brokers that are restarted one after the other."""

from pathlib import Path

from kafka import KafkaProducer

from servers.kafka_broker import KafkaBroker
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, create
from tests.helpers.cluster import BROKERS, Cluster
from tests.helpers.counting import Counting
from tests.helpers.eventually import eventually
from tests.helpers.recount import histograms_of, recount
from tests.stream_app.worlds import SCHEME, Reports, Row, Tick

TOPICS = Topics("copied", partitions=2, merge_partitions=1)


def copy(source: Counting, target: Counting) -> None:
    """Copy every record of every topic, as a mirroring tool does."""
    create(target.kafka, TOPICS)
    producer = KafkaProducer(**target.kafka.client_options(), max_request_size=8 << 20)
    for topic in TOPICS.all():
        for record in source.read(topic.name):
            headers = list(record.headers)
            producer.send(topic.name, record.value, record.key, headers=headers, partition=record.partition).get(60)
    producer.close()


def test_results_of_copied_topics_are_read_and_a_worker_counts_nothing_on_them(tmp_path: Path) -> None:
    """Failure would look like: a state that goes on with reports that are not the ones that it was counted from."""
    first, second = (KafkaBroker(tmp_path / name).start() for name in ("first", "second"))
    source, target = (
        Counting(KafkaSettings(bootstrap=broker.bootstrap), TOPICS, broker.directory) for broker in (first, second)
    )
    try:
        create(source.kafka, TOPICS)
        source.publish(SCHEME)
        with source.workers():
            source.send([Reports(0, tuple(Row(token) for token in range(1, 100))), Tick(0)])
            source.send([Reports(1, tuple(Row(token) for token in range(1, 50)))])
            eventually(lambda: len(source.finals()) == 1 and source.caught_up())
        copy(source, target)
        assert target.finals() == source.finals()
        shown = target.hearsay("report", "s", "--kafka", target.kafka.bootstrap)
        assert shown.returncode == 0, shown.stderr
        with target.workers() as (worker,):
            eventually(lambda: 'fault="another"' in worker.page("/metrics"))
            target.send([Tick(1)])
            eventually(lambda: worker.metric("hearsay_lag_records") > 0)
            assert worker.metric("hearsay_reports_total") == 0
        assert target.finals() == source.finals()
    finally:
        first.stop()
        second.stop()


ROLLED = Topics("rolled", partitions=3, merge_partitions=1)


def test_brokers_that_are_restarted_one_after_the_other_change_no_count(tmp_path: Path) -> None:
    """Failure would look like: a report that was confirmed and is not counted, or is counted twice."""
    cluster = Cluster(tmp_path)
    try:
        create(cluster.start().settings, ROLLED, replication=BROKERS)
        counting = Counting(cluster.settings, ROLLED, tmp_path).publish(SCHEME)
        with counting.workers(2) as group:
            for period, broker in enumerate(cluster.brokers.values()):
                counting.send([Reports(period, tuple(Row(token) for token in range(1, 500)))])
                broker.stop()
                counting.send([Reports(period, tuple(Row(token) for token in range(500, 900))), Tick(period)])
                cluster.start()
                cluster.wait_until_in_sync(ROLLED.reports, ROLLED.partitions)
            for worker in group:
                if not worker.running:
                    worker.start()
            counting.until_final(BROKERS, 240)
        assert counting.finals() == histograms_of(recount(counting))
    finally:
        cluster.stop()
