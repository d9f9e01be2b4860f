"""A cluster of three brokers that is replaced one broker at a time, while reports arrive and workers count."""

from pathlib import Path

from bench._processes import workers
from stream_app.kafka import Topics, create, publish
from tests.helpers.cluster import BROKERS, Cluster
from tests.helpers.eventually import eventually
from tests.helpers.published import read_finals
from tests.helpers.recount import histograms_of, recount
from tests.helpers.workers import send
from tests.stream_app.worlds import KEY, SCHEME, Reports, Row, Tick

TOPICS = Topics("rolled", partitions=3, merge_partitions=1)


def test_brokers_that_are_restarted_one_after_the_other_change_no_count(tmp_path: Path) -> None:
    """Failure would look like: a report that was confirmed and is not counted, or is counted twice."""
    cluster = Cluster(tmp_path)
    try:
        kafka = cluster.start().settings
        create(kafka, TOPICS, replication=BROKERS)
        publish(kafka, TOPICS, SCHEME.survey)
        with workers(2, kafka, TOPICS, KEY, tmp_path) as group:
            for period, broker in enumerate(cluster.brokers.values()):
                send(kafka, TOPICS, [Reports(period, tuple(Row(token) for token in range(1, 500)))])
                broker.stop()
                send(kafka, TOPICS, [Reports(period, tuple(Row(token) for token in range(500, 900))), Tick(period)])
                cluster.start()
                cluster.wait_until_in_sync(TOPICS.reports, TOPICS.partitions)
            for worker in group:
                if not worker.running:
                    worker.start()
            eventually(lambda: len(read_finals(kafka, TOPICS)) == BROKERS, 240)
        assert read_finals(kafka, TOPICS) == histograms_of(recount(kafka, TOPICS))
    finally:
        cluster.stop()
