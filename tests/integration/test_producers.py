"""Producers that write to a real broker, and dashboards that read from one."""

from collections.abc import Callable
from contextlib import closing
from threading import Thread

import pytest
from kafka import KafkaProducer

from hearsay.reports.serving import Published
from memo_store.survey_memos import SurveyMemos
from pages.dashboard import Source
from producers.kafka_sink import KafkaSink
from producers.simulation import Simulation
from protocols.errors import DeliveryError, ServerUnavailable
from protocols.respondent import Respondent
from servers.kafka_broker import KafkaBroker
from servers.settings import KafkaSettings
from stream_app.kafka import KafkaMessages, TopicFollower, Topics, publish
from stream_app.log import FINALS, Come
from tests.helpers.dashboards import Viewer, dashboard
from tests.helpers.eventually import eventually
from tests.helpers.sinks import KeepingSink
from tests.helpers.topics import read_records
from tests.producers.populations import CLOCK_KEY, KEYRING, Alternating, scheme
from tests.views.trials import World
from views.following import KafkaTopics
from views.reading import Results
from views.runner import Runner

MakeTopics = Callable[..., Topics]
OpenMemos = Callable[[Respondent], SurveyMemos]


@pytest.mark.long(part="kills")
def test_the_topic_holds_what_was_sent_through_broker_restarts(
    kafka: KafkaBroker, kafka_settings: KafkaSettings, fresh_topics: MakeTopics, open_memos: OpenMemos
) -> None:
    """Failure would look like: a record missing, twice on the topic, or out of order."""
    topic = fresh_topics(partitions=3).reports
    sent = KeepingSink(3)
    sink = Watched(kafka_settings, topic, sent)

    def restart(end: Callable[[], None]) -> None:
        end()
        kafka.start()

    outages = [Thread(target=restart, args=(end,)) for end in (kafka.kill, kafka.stop)]
    sink.at(20, outages[0].start)
    sink.at(60, lambda: (outages[0].join(timeout=120), outages[1].start()))
    survey = scheme()
    memos = open_memos(Respondent(survey, KEYRING))
    Simulation(memos, sink, Alternating(6000, 12), CLOCK_KEY).run()
    outages[1].join(timeout=120)
    sink.close()
    assert len(sent.records) > 100
    assert read_records(kafka_settings, topic) == sorted(sent.records, key=lambda record: record[0])


class Watched(KafkaSink):
    """A Kafka sink that also keeps what it is given, and does something when it has sent so many records."""

    def __init__(self, settings: KafkaSettings, topic: str, kept: KeepingSink) -> None:
        super().__init__(settings, topic)
        self._kept = kept
        self._at: dict[int, Callable[[], object]] = {}

    def at(self, count: int, action: Callable[[], object]) -> None:
        self._at[count] = action

    def send(self, partition: int, content_type: str, value: bytes) -> None:
        super().send(partition, content_type, value)
        self._kept.send(partition, content_type, value)
        self._at.get(len(self._kept.records), lambda: None)()


@pytest.mark.long(part="kills")
def test_what_is_not_delivered_is_named_held_within_bounds_and_can_be_sent_again(
    kafka: KafkaBroker, kafka_settings: KafkaSettings, fresh_topics: MakeTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the broker away, a sink with room for three records must not take a fourth."""
    topic = fresh_topics(partitions=2).reports
    monkeypatch.setattr("producers.kafka_sink.DEADLINE_SECONDS", 8)
    monkeypatch.setattr("producers.kafka_sink.IN_FLIGHT_BYTES", 3000)
    sink = KafkaSink(kafka_settings, topic)
    sink.send(0, "kind", b"in time")
    sink.flush()
    kafka.kill()
    for partition in (0, 1, 1):
        sink.send(partition, "kind", bytes(1000))
    with pytest.raises(DeliveryError, match=r"3 of the last 3 records .*1 to partition 0, 2 to partition 1"):
        sink.send(0, "kind", bytes(1000))
    kafka.start()
    sink.send(1, "kind", b"again")
    sink.flush()
    sink.close()
    assert read_records(kafka_settings, topic) == [(0, "kind", b"in time"), (1, "kind", b"again")]


def test_what_kafka_python_will_not_take_is_not_delivered_either(
    kafka_settings: KafkaSettings, fresh_topics: MakeTopics
) -> None:
    sink = KafkaSink(kafka_settings, fresh_topics(partitions=1).reports)
    with pytest.raises(DeliveryError, match=r"1 of the last 1 records .*MessageSizeTooLarge"):
        sink.send(0, "kind", bytes(9 << 20))
        sink.flush()
    sink.close()
    with pytest.raises(DeliveryError, match=r"1 of the last 1 records .*1 to partition 0"):
        sink.send(0, "kind", b"too late")


def test_a_topic_that_does_not_exist_is_named(kafka_settings: KafkaSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("producers.kafka_sink.OPEN_SECONDS", 6)
    with pytest.raises(DeliveryError, match="has no topic 'nowhere'"):
        KafkaSink(kafka_settings, "nowhere")


def test_a_broker_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("producers.kafka_sink.OPEN_SECONDS", 1)
    with pytest.raises(ServerUnavailable, match=r"127\.0\.0\.1:1 does not answer.*HEARSAY_KAFKA"):
        KafkaSink(KafkaSettings(bootstrap="127.0.0.1:1"), "reports")


# The dashboard of results on a Kafka cluster.
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
