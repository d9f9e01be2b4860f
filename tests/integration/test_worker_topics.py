"""Topics that are deleted under a worker, partitions that are added to one: what is said, and the way on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from lab.worker_process import WorkerProcess, workers
from servers.settings import KafkaSettings
from stream_app.kafka import KafkaMessages, Topics, publish
from tests.helpers.command_line import hearsay, recover
from tests.helpers.eventually import eventually
from tests.helpers.published import read_finals
from tests.helpers.workers import PATIENT, caught_up, send
from tests.stream_app.worlds import KEY, SCHEME, Reports, Row, Tick
from views.reading import Results

TWO = ("--partitions", "2", "--merge-partitions", "1")


@pytest.fixture
def topics(fresh_topics: Callable[..., Topics], kafka_settings: KafkaSettings) -> Topics:
    made = fresh_topics(partitions=2, merge_partitions=1)
    publish(kafka_settings, made, SCHEME.survey)
    return made


def crowd(period: int, first: int, last: int) -> Reports:
    return Reports(period, tuple(Row(token) for token in range(first, last)))


def delete(kafka: KafkaSettings, topic: str) -> None:
    admin = KafkaAdminClient(**kafka.client_options())
    admin.delete_topics([topic])
    eventually(lambda: topic not in admin.list_topics())
    admin.close()


def why_it_ended(worker: WorkerProcess) -> str:
    """Libraries may log something after it."""
    return str(worker.logged("this worker ends; start it again")[-1]["error"])


@pytest.mark.long(part="cluster")
def test_a_topic_that_is_deleted_is_named_by_the_worker_that_reads_it_and_by_every_next_one(
    kafka_settings: KafkaSettings, topics: Topics, tmp_path: Path
) -> None:
    """Failure would look like: advice to make the topic with other partitions, or a worker that counts it as new."""
    with workers(1, kafka_settings, topics, KEY, tmp_path, *PATIENT) as (worker,):
        send(kafka_settings, topics, [crowd(0, 1, 100)])
        eventually(lambda: caught_up(kafka_settings, topics))
        assert hearsay(kafka_settings, topics, "topics", "check").returncode == 0
        delete(kafka_settings, topics.reports)
        eventually(lambda: not worker.running)
        assert f"topic {topics.reports} was deleted" in why_it_ended(worker)
        worker.log.write_text("")
        worker.start()
        eventually(lambda: not worker.running)
        said = worker.log.read_text()
        assert f"topic {topics.reports} was deleted: the state" in said
        assert f"hearsay topics create --prefix {topics.prefix} {' '.join(TWO)}" in said.replace("\n", " ")
        assert hearsay(kafka_settings, topics, "topics", "create", *TWO).returncode == 0
        worker.log.write_text("")
        worker.start()
        eventually(lambda: 'fault="another"' in worker.page("/metrics"))
    checked = hearsay(kafka_settings, topics, "topics", "check", "--json")
    assert checked.returncode == 1
    assert [found["setting"] for found in json.loads(checked.stdout)] == [f"the log of partition {p}" for p in (0, 1)]
    doctor = hearsay(kafka_settings, topics, "doctor", "--json")
    (broker,) = [found for found in json.loads(doctor.stdout)["findings"] if found["what"] == "broker"]
    assert doctor.returncode == 1 and "deleted and made again" in broker["found"]


def test_a_registry_that_is_deleted_ends_the_worker_with_a_sentence(
    kafka_settings: KafkaSettings, topics: Topics, tmp_path: Path
) -> None:
    """Failure would look like: a worker that is ready, knows no new survey, and asks thousands of times a second."""
    with workers(1, kafka_settings, topics, KEY, tmp_path, *PATIENT) as (worker,):
        send(kafka_settings, topics, [crowd(0, 1, 100)])
        eventually(lambda: caught_up(kafka_settings, topics))
        delete(kafka_settings, topics.surveys)
        eventually(lambda: not worker.running)
        assert f"topic {topics.surveys} was deleted" in why_it_ended(worker)
        assert hearsay(kafka_settings, topics, "topics", "create").returncode == 0
        worker.start()
        eventually(lambda: "the state counts survey 's', which is not published" in worker.log.read_text())
        worker.leave()
        publish(kafka_settings, topics, SCHEME.survey)
        assert recover(kafka_settings, topics, "--survey", "s").returncode == 0
        worker.start().wait_until_ready()
        send(kafka_settings, topics, [Tick(0)])
        eventually(lambda: len(read_finals(kafka_settings, topics)) == 1)
    (final,) = Results(KafkaMessages(kafka_settings, topics)).histograms("s")
    assert final.n == 99


@pytest.mark.long(part="cluster")
def test_the_way_on_after_partitions_were_added_from_its_first_step_to_its_last(
    kafka_settings: KafkaSettings, topics: Topics, tmp_path: Path
) -> None:
    """Failure would look like: a final that lacks the reports of the added partitions, and does not say so."""
    with workers(1, kafka_settings, topics, KEY, tmp_path, *PATIENT) as (worker,):
        send(kafka_settings, topics, [crowd(0, 1, 100), Tick(0), crowd(1, 1, 100)])
        eventually(lambda: len(read_finals(kafka_settings, topics)) == 1)
        admin = KafkaAdminClient(**kafka_settings.client_options())
        admin.create_partitions({topics.reports: 4})
        admin.close()
        send(kafka_settings, replace(topics, partitions=4), [crowd(1, 100, 200), Tick(1)])  # half to the added ones
        eventually(lambda: worker.metric("hearsay_reports_total") == 99 + 99 + 50)
        eventually(lambda: 'fault="partitions"' in worker.page("/metrics"))
        assert worker.leave() == 0
        delete(kafka_settings, topics.reports)
        assert hearsay(kafka_settings, topics, "topics", "create", *TWO).returncode == 0
        done = recover(kafka_settings, topics, "--lost", "25")  # in each of two partitions
        assert done.returncode == 0, done.stderr
        worker.start().wait_until_ready()
        send(kafka_settings, topics, [crowd(1, 201, 211), Tick(1)])
        eventually(lambda: len(read_finals(kafka_settings, topics)) == 2)
        assert worker.leave() == 0
    assert hearsay(kafka_settings, topics, "topics", "check").returncode == 0
    results = Results(KafkaMessages(kafka_settings, topics))
    assert [final.n for final in results.histograms("s")] == [99, 99 + 50 + 10]
    live = results.live("s")
    assert live is not None and sum(loss.reports for loss in live.lost if 1 in loss.periods) == 50
