"""Reports that trickle in one by one on a real broker: what a worker writes grows with time, and not with reports."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from lab.worker_process import workers
from producers.sinks import KafkaSink
from protocols.wire import REPORT, Frame, encode_report
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, publish, read_topic
from tests.helpers.eventually import eventually
from tests.helpers.surveys import of_size, scheme_with
from tests.helpers.workers import PATIENT
from tests.stream_app.worlds import KEY

REPORTS, PARTITIONS = 240, 2
SCHEME = scheme_with(of_size(16, mechanism="l-grr"), id="trickle", eps_inf=4, eps_1=2, clock="source")


def report(token: int) -> bytes:
    answers = {"a": np.array([token % 16], dtype=np.uint8)}
    ones = np.ones(1, dtype=np.uint16)
    return encode_report(
        Frame("trickle", SCHEME.fingerprint, 0, np.array([token], dtype=np.uint64), ones, answers), SCHEME
    )


def test_a_worker_flushes_reports_that_trickle_at_most_once_a_second_however_many_they_are(
    kafka_settings: KafkaSettings, fresh_topics: Callable[..., Topics], tmp_path: Path
) -> None:
    topics = fresh_topics(partitions=PARTITIONS, merge_partitions=1)
    publish(kafka_settings, topics, SCHEME.survey)
    sink = KafkaSink(kafka_settings, topics.reports)
    with workers(1, kafka_settings, topics, KEY, tmp_path, *PATIENT) as (worker,):
        worker.wait_until_ready()
        began = time.monotonic()
        for token in range(1, REPORTS + 1):
            sink.send(token % PARTITIONS, REPORT, report(token))
            sink.flush()
            time.sleep(0.01)
        eventually(lambda: worker.metric("hearsay_reports_total") == REPORTS)
        flushes = worker.metric("hearsay_flush_seconds_count")
        seconds = time.monotonic() - began
        assert worker.leave() == 0
    sink.close()
    assert flushes <= (PARTITIONS + 1) * (seconds + 3), "one a second, and one for the first report"
    written = [record.key for record in read_topic(kafka_settings, topics.counting_changelog)]
    assert len(written) <= 3 * (flushes + PARTITIONS), "tokens, counter and position of each flush"
