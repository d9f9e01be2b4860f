"""The dashboard of results on a Kafka cluster."""

from collections.abc import Callable
from contextlib import closing

import pytest
from kafka import KafkaProducer

from hearsay.reports.serving import Published
from pages.dashboard import Source
from servers.kafka_broker import KafkaBroker
from servers.settings import KafkaSettings
from stream_app.kafka import KafkaMessages, TopicFollower, Topics, publish
from stream_app.log import FINALS, Come
from tests.helpers.dashboards import Viewer, dashboard
from tests.helpers.eventually import eventually
from tests.views.trials import World
from views.following import KafkaTopics
from views.reading import Results
from views.runner import Runner


@pytest.fixture
def topics(fresh_topics: Callable[..., Topics], monkeypatch: pytest.MonkeyPatch) -> Topics:
    made = fresh_topics(partitions=2, merge_partitions=1)
    monkeypatch.setenv("HEARSAY_KAFKA_PREFIX", made.prefix)
    return made


@pytest.mark.parametrize("goes_away", [False, pytest.param(True, marks=pytest.mark.long(part="cluster"))])
def test_a_viewer_is_sent_what_is_on_the_topics_once_also_if_the_broker_goes_away_in_between(
    kafka: KafkaBroker, kafka_settings: KafkaSettings, topics: Topics, goes_away: bool
) -> None:
    """Failure would look like: a period that is missing, or an event that a viewer is sent twice."""
    world = World(periods=3)
    publish(kafka_settings, topics, world.scheme.survey)

    def make_results(periods: int) -> None:
        with closing(KafkaTopics(kafka_settings, topics)) as sink:
            finals = [(0, 0, final) for final in world.messages(FINALS)]
            Runner([sink]).apply(Come(world.surveys(), finals[:periods]))

    make_results(1)
    published = Published([], None, kafka_settings.bootstrap)
    with dashboard(Source(published.follow, (), published.describe)) as running:
        viewer = Viewer(running, "town")
        viewer.view(lambda one: "mobility/town/0" in one.state)
        if goes_away:
            kafka.kill()
            try:
                viewer.view(lambda one: one.state["status"]["record"]["trouble"])
            finally:
                kafka.start()
        make_results(3)
        viewer.view(lambda one: "mobility/town/2" in one.state and not one.state["status"]["record"]["trouble"])
    received = [key for _, key in viewer.received if key.startswith("mobility")]
    assert sorted(received) == [f"mobility/town/{period}" for period in range(3)]
    assert viewer.resets <= 1, "one at the beginning"
    for period, report in enumerate(Results(KafkaMessages(kafka_settings, topics)).mobility("town")):
        shown = viewer.state[f"mobility/town/{period}"]["record"]["windows"]
        assert [window["visitors"]["value"] for window in shown] == [
            window.visitors and window.visitors.value for window in report.windows
        ]


def test_the_lag_is_what_workers_have_not_counted(kafka_settings: KafkaSettings, topics: Topics) -> None:
    with closing(TopicFollower(kafka_settings, topics)) as follower:
        eventually(lambda: follower.lag() == 0)  # not before the cluster knows about groups
        producer = KafkaProducer(**kafka_settings.client_options(), acks="all", enable_idempotence=True)
        for partition in (0, 0, 1):
            producer.send(topics.reports, b"x", partition=partition)
        producer.close(30)
        eventually(lambda: follower.lag() == 3)
