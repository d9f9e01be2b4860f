"""A survey whose state is poisoned on a real broker: it is quarantined, the other one goes on, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from kafka import KafkaProducer

from lab.worker_process import workers
from protocols.scheme import Scheme
from servers.settings import KafkaSettings
from stream_app.kafka import KafkaMessages, Topics, publish
from stream_app.log.flushes import state_key
from tests.helpers.command_line import hearsay, recover
from tests.helpers.eventually import eventually
from tests.helpers.published import read_finals
from tests.helpers.workers import PATIENT, caught_up, send
from tests.stream_app.worlds import KEY, SCHEME, Reports, Row, Tick
from views.reading import Results

SCHEMES = {name: Scheme(SCHEME.survey.model_copy(update={"id": name})) for name in ("good", "bad")}


def crowd(period: int, tokens: Iterable[int]) -> Reports:
    return Reports(period, tuple(map(Row, tokens)))


def counted(kafka: KafkaSettings, topics: Topics, survey: str) -> list[int | None]:
    return [final.n for final in Results(KafkaMessages(kafka, topics)).histograms(survey)]


@pytest.mark.long(part="cluster")
def test_a_survey_whose_state_is_poisoned_is_quarantined_and_exact_once_it_goes_on(
    kafka_settings: KafkaSettings, fresh_topics: Callable[..., Topics], tmp_path: Path
) -> None:
    """Failure would look like: a worker that ends at every start, with all its surveys; or a count that is wrong."""
    topics = fresh_topics(partitions=2, merge_partitions=1)
    for scheme in SCHEMES.values():
        publish(kafka_settings, topics, scheme.survey)
    with workers(1, kafka_settings, topics, KEY, tmp_path, *PATIENT) as (worker,):
        for scheme in SCHEMES.values():
            send(kafka_settings, topics, [crowd(0, range(1, 100))], scheme)
        eventually(lambda: caught_up(kafka_settings, topics))
        assert worker.leave() == 0
        poison(kafka_settings, topics, state_key("count", 0, "counter", "bad", 0))
        worker.start().wait_until_ready()
        for scheme in SCHEMES.values():
            send(kafka_settings, topics, [crowd(0, range(50, 200)), Tick(0), crowd(1, range(1, 31))], scheme)
        eventually(lambda: ("good", 0) in read_finals(kafka_settings, topics))
        eventually(lambda: worker.metric("hearsay_survey_quarantined") == 1)
        eventually(lambda: worker.metric("hearsay_passed_over_records_total") == 3)
        (said,) = worker.logged("a survey is quarantined")
        assert (said["survey"], said["partition"]) == ("bad", 0)
        assert worker.leave() == 0
        doctor = hearsay(kafka_settings, topics, "doctor")
        assert doctor.returncode == 1 and "bad is quarantined: a state record cannot be read" in doctor.stdout
        assert "not quarantined: other" in hearsay(kafka_settings, topics, "recover", "--survey", "other").stderr
        shown = hearsay(kafka_settings, topics, "recover")
        assert shown.returncode == 1 and "cannot be read" in shown.stdout
        worker.start().wait_until_ready()
        eventually(lambda: worker.metric("hearsay_survey_quarantined") == 1)  # a restart does not try again
        refused = hearsay(kafka_settings, topics, "recover", "--survey", "bad")
        assert refused.returncode == 1 and "stop all workers first" in refused.stderr
        worker.leave()
        assert recover(kafka_settings, topics, "--survey", "bad").returncode == 0
        assert hearsay(kafka_settings, topics, "recover").returncode == 0
        worker.start().wait_until_ready()
        for scheme in SCHEMES.values():
            send(kafka_settings, topics, [Tick(1)], scheme)
        eventually(lambda: len(read_finals(kafka_settings, topics)) == 4)
        assert worker.metric("hearsay_survey_quarantined") == 0
        assert worker.leave() == 0
    assert counted(kafka_settings, topics, "good") == counted(kafka_settings, topics, "bad") == [199, 30]


def poison(kafka: KafkaSettings, topics: Topics, key: bytes) -> None:
    producer = KafkaProducer(**kafka.client_options())
    producer.send(topics.counting_changelog, b"poison", key=key, partition=0).get(30)
    producer.close()
