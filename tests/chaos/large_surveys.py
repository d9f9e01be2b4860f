"""Surveys of many values, whose counters are deferred, and of many attributes, under workers that are killed."""

from __future__ import annotations

import time

import numpy as np

from hearsay.running.worker_process import workers
from producers.sinks import KafkaSink
from protocols.arrays import PackedBits
from protocols.scheme import Scheme
from protocols.wire import CLOCK, FRAME, Clock, Frame, encode_clock, encode_frame
from stream_app.kafka import KafkaResults, publish
from stream_app.kafka.results import read_finals
from stream_app.results import Histogram
from tests.chaos.base import KafkaOrdeal
from tests.helpers.eventually import eventually
from tests.helpers.frames import random_answers
from tests.helpers.surveys import of_size, scheme_with
from tests.stream_app.worlds import KEY

VALUES, ATTRIBUTES, HORIZON = 65_536, 50, 7
FRAMES, ROWS, PERIODS = 4, 40, 2
SCHEMES = {
    "values": scheme_with(
        of_size(VALUES, mechanism="l-osue"), id="values", eps_inf=4, eps_1=2, horizon=HORIZON, clock="source"
    ),
    "attributes": scheme_with(
        *(of_size(9, name=f"a{number}", mechanism="l-grr") for number in range(ATTRIBUTES)),
        id="attributes",
        eps_inf=4,
        eps_1=2,
        horizon=HORIZON,
        clock="source",
    ),
}
Supports = dict[tuple[str, int, str], np.ndarray]  # by survey, period and attribute: by value


class LargeOrdeal(KafkaOrdeal):
    """One worker after the other is killed while reports come; then every count is the one of what was sent."""

    def run(self, faults: int) -> None:
        self._sent: Supports = {}
        for scheme in SCHEMES.values():
            publish(self._kafka, self._topics, scheme.survey)
        places = sorted(self._random.sample(range(PERIODS * FRAMES), min(faults, PERIODS * FRAMES)))
        sink = KafkaSink(self._kafka, self._topics.reports)
        with workers(2, self._kafka, self._topics, KEY, self._directory) as group:
            group[0].wait_until_ready()
            for period in range(PERIODS):
                for number in range(FRAMES):
                    for scheme in SCHEMES.values():
                        self._send(sink, scheme, period, number)
                    sink.flush()
                    if period * FRAMES + number in places:
                        time.sleep(self._random.uniform(0, 3))
                        self._kill(self._random.choice(group), "that counts large surveys")
                for partition in range(self._topics.partitions):
                    for name in SCHEMES:
                        sink.send(partition, CLOCK, encode_clock(Clock(name, period), KEY))
                sink.flush()
            eventually(lambda: len(read_finals(self._kafka, self._topics)) == PERIODS * len(SCHEMES), 600)
        sink.close()
        self._compare()

    def _send(self, sink: KafkaSink, scheme: Scheme, period: int, number: int) -> None:
        """A frame with reports that answer one question, drawn evenly."""
        partitions = self._topics.partitions
        partition = number % partitions
        tokens = np.arange(number * ROWS + 1, (number + 1) * ROWS + 1, dtype=np.uint64) * np.uint64(partitions)
        gaps = self._draws.integers(1, HORIZON + 1, ROWS).astype(np.uint16)
        question = scheme.questions[self._random.randrange(len(scheme.questions))]
        layout = question.mechanism.encoding.answer
        answers = random_answers(layout, ROWS, self._draws)
        frame = Frame(
            scheme.survey.id, scheme.fingerprint, period, tokens + np.uint64(partition), gaps, {question.name: answers}
        )
        sink.send(partition, FRAME, encode_frame(frame, scheme))
        if isinstance(layout, PackedBits):
            found = np.unpackbits(answers, axis=1, count=question.k, bitorder="little").sum(axis=0, dtype=np.int64)
        else:
            found = np.bincount(answers, minlength=question.k)
        key = scheme.survey.id, period, question.name
        self._sent[key] = self._sent.get(key, np.zeros(question.k, dtype=np.int64)) + found

    def _compare(self) -> None:
        for name, scheme in SCHEMES.items():
            for final in KafkaResults(self._kafka, self._topics).histograms(name):
                for question in scheme.questions:
                    sent = self._sent.get((name, final.period, question.name), np.zeros(question.k, dtype=np.int64))
                    assert np.array_equal(_supports(final, question.name, question.k), sent), (name, question.name)
        reports = PERIODS * FRAMES * ROWS
        self._say(f"{reports:,} reports of each large survey, counted once")


def _supports(final: Histogram, attribute: str, k: int) -> np.ndarray:
    statistics = final.attribute(attribute).statistics
    if statistics is None or statistics.supports is None:
        return np.zeros(k, dtype=np.int64)
    return np.asarray(statistics.supports).reshape(-1, k).sum(axis=0)
