"""A broker that wants TLS, a client's certificate and a password: the settings open it, for fleets and for workers."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from pydantic import SecretStr

from lab.worker_process import workers
from memo_store.survey_memos import SurveyMemos
from producers.simulation import Simulation
from producers.sinks import KafkaSink
from protocols.errors import ServerUnavailable
from protocols.respondent import Respondent
from servers.kafka_clients import opened
from servers.settings import KafkaSettings, load
from stream_app.kafka import KafkaMessages, Topics, create, existing, publish
from tests.helpers.certificates import Authority
from tests.helpers.eventually import eventually
from tests.helpers.leaks import alone, leaves_nothing
from tests.helpers.published import read_finals
from tests.helpers.secured import Secured
from tests.helpers.sinks import KeepingSink
from tests.helpers.topics import read_topic
from tests.producers.populations import CLOCK_KEY, KEYRING, Alternating, scheme
from views.reading import Results

pytestmark = [pytest.mark.long(part="cluster"), pytest.mark.integration, pytest.mark.xdist_group("kafka")]


@pytest.fixture
def environment(secured: Secured) -> dict[str, str]:
    """What an operator sets to reach a broker that takes nobody without a certificate and a password."""
    return secured.environment()


def send(settings: KafkaSettings, topic: str, records: list[tuple[int, str, bytes]]) -> None:
    sink = KafkaSink(settings, topic)
    for record in records:
        sink.send(*record)
    sink.flush()
    sink.close()


@pytest.fixture
def settings(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> KafkaSettings:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return load().kafka


def test_a_fleet_sends_and_a_worker_counts_through_a_secured_door(
    settings: KafkaSettings, open_memos: Callable[[Respondent], SurveyMemos], tmp_path: Path
) -> None:
    topics, survey, world = Topics("secured", partitions=2, merge_partitions=1), scheme(), Alternating(300, 2)
    create(settings, topics)
    publish(settings, topics, survey.survey)
    sent = KeepingSink(2)
    Simulation(open_memos(Respondent(survey, KEYRING)), sent, world, CLOCK_KEY).run()
    send(settings, topics.reports, sent.records)
    assert read_topic(settings, topics.reports) == sorted(sent.records, key=lambda record: record[0])
    with workers(1, settings, topics, CLOCK_KEY, tmp_path) as (worker,):
        eventually(lambda: len(read_finals(settings, topics)) == world.periods or not worker.running)
        finals = Results(KafkaMessages(settings, topics)).histograms(survey.survey.id)
    assert [final.n for final in finals] == [len(world.presences(p).devices) for p in range(2)]


def test_the_other_way_to_log_in(settings: KafkaSettings) -> None:
    plain = settings.model_copy(update={"sasl_mechanism": "PLAIN"})
    create(plain, Topics("plain", partitions=1, merge_partitions=1))
    send(plain, "plain.reports", [(0, "kind", b"value")])
    assert read_topic(plain, "plain.reports") == [(0, "kind", b"value")]


def use_a_wrong_password(settings: KafkaSettings, client: Callable[..., object]) -> None:
    wrong = settings.model_copy(update={"sasl_password": SecretStr("wrong horse")})

    with pytest.raises(ServerUnavailable, match="connection of user 'fleet'"):
        opened(client, wrong, 5)
    with leaves_nothing():
        for _ in range(4):
            with pytest.raises(ServerUnavailable):
                opened(client, wrong, 1)


@pytest.mark.parametrize("client", [KafkaAdminClient, KafkaConsumer, KafkaProducer])
def test_refused_passwords_leave_nothing_open(settings: KafkaSettings, client: Callable[..., object]) -> None:
    alone(use_a_wrong_password, settings, client)


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whoever is refused hears of it soon. kafka-python forgets sockets whose handshake fails; the test drops them."""
    monkeypatch.setattr("servers.kafka_clients.FIRST_SECONDS", 1.0)
    monkeypatch.setattr("producers.sinks.kafka.OPEN_SECONDS", 3)
    monkeypatch.setattr("stream_app.kafka.topics.ANSWER_SECONDS", 3)
    yield
    gc.collect()


@pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")
@pytest.mark.usefixtures("settings", "_impatient")
@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"SASL_PASSWORD": "wrong horse"}, "connection of user 'fleet' .*_PASSWORD"),
        ({"SASL_PASSWORD": "wrong horse", "SASL_MECHANISM": "PLAIN"}, "connection of user 'fleet' .*_PASSWORD"),
        ({"SECURITY": "PLAINTEXT"}, "closes the connection .*HEARSAY_KAFKA_SECURITY"),
        ({"SSL_CA": "stranger.pem"}, "certificates do not fit: .*CERTIFICATE_VERIFY_FAILED.*HEARSAY_KAFKA_SSL_CA"),
    ],
)
@pytest.mark.parametrize("knock", [lambda kafka: KafkaSink(kafka, "reports"), existing], ids=["sender", "collector"])
def test_who_is_not_let_in_is_told_why(
    knock: Callable[[KafkaSettings], object],
    changed: dict[str, str],
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Authority(tmp_path, "stranger")
    for name, value in changed.items():
        monkeypatch.setenv(f"HEARSAY_KAFKA_{name}", value)
    with pytest.raises(ServerUnavailable, match=complaint) as refused:
        knock(load().kafka)
    assert "horse" not in str(refused.value)
