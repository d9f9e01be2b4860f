"""A survey with very many values runs on a real broker like any other: counted, published, read and reported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lab.worker_process import workers
from producers.sinks import KafkaSink
from protocols.wire import CLOCK, FRAME, Clock, Frame, encode_clock, encode_frame
from servers.settings import KafkaSettings
from stream_app.kafka import KafkaMessages, Topics, publish, read_topic
from tests.helpers.eventually import eventually
from tests.helpers.frames import random_answers
from tests.helpers.published import read_finals
from tests.helpers.surveys import of_size, scheme_with
from tests.stream_app.worlds import KEY
from views.reading import Results

VALUES, HORIZON, ROWS, PERIODS = 20_000, 7, 300, 3
LARGE = scheme_with(
    of_size(VALUES, mechanism="l-osue"), id="large", eps_inf=4, eps_1=2, horizon=HORIZON, clock="source"
)


def frame_of(period: int) -> Frame:
    """Reports with every gap, so that the counters become as large as they can."""
    rng = np.random.default_rng(period)
    answers = random_answers(LARGE.questions[0].mechanism.encoding.answer, ROWS, rng)
    gaps = (np.arange(ROWS) % HORIZON + 1).astype(np.uint16)
    tokens = np.arange(1, ROWS + 1, dtype=np.uint64)
    return Frame("large", LARGE.fingerprint, period, tokens, gaps, {"a": answers})


@pytest.mark.long(part="cluster")
def test_a_survey_of_20_000_values_and_a_horizon_of_7_is_counted_and_reported(
    kafka_settings: KafkaSettings, fresh_topics: Callable[..., Topics], tmp_path: Path
) -> None:
    topics = fresh_topics(partitions=1, merge_partitions=1)
    publish(kafka_settings, topics, LARGE.survey)
    sink = KafkaSink(kafka_settings, topics.reports)
    with workers(1, kafka_settings, topics, KEY, tmp_path) as (worker,):
        for period in range(PERIODS):
            sink.send(0, FRAME, encode_frame(frame_of(period), LARGE))
            sink.send(0, CLOCK, encode_clock(Clock("large", period), KEY))
        sink.close()
        eventually(lambda: len(read_finals(kafka_settings, topics)) == PERIODS or not worker.running)
        assert worker.leave() == 0
    finals = Results(KafkaMessages(kafka_settings, topics)).histograms("large")
    for final, sent in zip(finals, map(frame_of, range(PERIODS)), strict=True):
        statistics = final.attribute("a").statistics
        assert statistics is not None and statistics.supports is not None
        assert statistics.gaps.tolist() == list(range(1, HORIZON + 1))
        bits = np.unpackbits(sent.answers["a"], axis=1, count=VALUES, bitorder="little")
        for row, gap in enumerate(statistics.gaps):
            assert np.array_equal(statistics.supports[row], bits[sent.gaps == gap].sum(axis=0))
    largest = max(len(record.value or b"") for record in read_topic(kafka_settings, topics.merging_changelog))
    assert largest < 3 * 8 * HORIZON * VALUES, "a part, or a final with its messages"
    (*_, report) = Results(KafkaMessages(kafka_settings, topics)).mobility("large")
    week = report.window(0, PERIODS - 1).attribute("a").values
    assert week is not None and len(week.share.value) == len(report.asked("a").values) == VALUES
