"""What is closed is gone: memory and changelog do not grow with the number of periods."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lab.worker_process import workers
from producers.sinks import KafkaSink
from protocols.wire import CLOCK, FRAME, Clock, Frame, encode_clock, encode_frame
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, publish, read_topic
from tests.helpers.eventually import eventually
from tests.helpers.published import read_finals
from tests.helpers.surveys import of_size, scheme_with
from tests.helpers.workers import PATIENT
from tests.stream_app.worlds import KEY

MakeTopics = Callable[..., Topics]

PERIODS, FIRST, TOKENS, PARTITIONS = 200, 50, 40_000, 2
SCHEME = scheme_with(of_size(16, mechanism="l-grr"), id="long", eps_inf=2, eps_1=1, clock="source")
LEAK = (PERIODS - FIRST) * TOKENS * 16
"""What tokens that stay would take up between the two moments at which memory is looked at: 96 MB."""


def send_periods(sink: KafkaSink, periods: range) -> None:
    for period in periods:
        rng = np.random.default_rng(period)
        for partition in range(PARTITIONS):
            tokens = np.unique(rng.integers(1, 1 << 60, TOKENS // PARTITIONS, dtype=np.uint64)) * np.uint64(PARTITIONS)
            gaps = np.ones(len(tokens), dtype=np.uint16)
            answers = {"a": rng.integers(0, 16, len(tokens)).astype(np.uint8)}
            frame = Frame("long", SCHEME.fingerprint, period, tokens + np.uint64(partition), gaps, answers)
            sink.send(partition, FRAME, encode_frame(frame, SCHEME))
            sink.send(partition, CLOCK, encode_clock(Clock("long", period), KEY))
    sink.flush()


@pytest.mark.long(part="memory")
def test_memory_and_changelog_stay_flat_over_200_periods(
    kafka_settings: KafkaSettings, fresh_topics: MakeTopics, tmp_path: Path
) -> None:
    topics = fresh_topics(partitions=PARTITIONS, merge_partitions=1)
    publish(kafka_settings, topics, SCHEME.survey)
    sink = KafkaSink(kafka_settings, topics.reports)
    with workers(1, kafka_settings, topics, KEY, tmp_path, *PATIENT) as (worker,):
        resident = []
        for periods in (range(FIRST), range(FIRST, PERIODS), range(PERIODS, PERIODS + 1)):
            send_periods(sink, periods)
            eventually(lambda periods=periods: len(read_finals(kafka_settings, topics)) == periods.stop, 200)
            resident.append(worker.metric("process_resident_memory_bytes"))
        assert worker.metric("hearsay_open_periods") == worker.metric("hearsay_tokens") == 0
        # What was only held while periods were read is given back some seconds later, and a leak is not.
        eventually(lambda: worker.metric("process_resident_memory_bytes") - resident[0] < LEAK / 2)
        assert worker.leave() == 0
    sink.close()
    newest = {record.key.decode(): record.value for record in read_topic(kafka_settings, topics.counting_changelog)}
    assert len(newest) > PERIODS
    assert {key for key, value in newest.items() if value is not None} == {"count/0/position", "count/1/position"}
    merged = {record.key.decode(): record.value for record in read_topic(kafka_settings, topics.merging_changelog)}
    assert not [key for key, value in merged.items() if "/part/" in key and value is not None]
    finals = {key for key, value in merged.items() if "/final/" in key and value is not None}
    assert finals == {f"merge/0/final/long/{period}" for period in (PERIODS - 1, PERIODS)}
