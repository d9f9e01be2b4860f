"""A survey of very many values while its workers are killed: finals are those of a recount, answer by answer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from threading import Thread

import numpy as np

from hearsay.running.worker_process import workers
from producers.sinks import KafkaSink
from protocols.mechanisms import FreshHash
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from protocols.wire import CLOCK, FRAME, Clock, Frame, encode_clock, encode_frame
from stream_app.kafka import KafkaResults, publish
from tests.chaos.base import KafkaOrdeal
from tests.helpers.eventually import eventually

VALUES, HORIZON = 1000, 2
PERIODS_PER_FAULT, FRAMES, ROWS = 2, 20, 2000
AT_ONCE = 50
"""How many answers are recounted at once: each takes an integer for every value."""
KEY = b"the operator of a large survey.."
SCHEME = Scheme(
    parse_survey(
        f"{{id: many, start: 2026-01-01T00:00:00Z, period: 1d, clock: source, eps: 1, horizon: {HORIZON}, "
        f"attributes: [{{name: item, range: {{last: {VALUES - 1}}}, mechanism: olh}}]}}"
    )
)
Record = tuple[int, str, bytes]


class ManyValuesOrdeal(KafkaOrdeal):
    """Frames arrive, some of them twice, while workers are killed; then every answer was counted once."""

    def run(self, faults: int) -> None:
        publish(self._kafka, self._topics, SCHEME.survey)
        periods = faults * PERIODS_PER_FAULT
        self._frames: list[Frame] = []
        log = list(self._records(periods))
        with workers(2, self._kafka, self._topics, KEY, self._directory) as group:
            sending = Thread(target=self._send, args=(log, 4.0 * faults))
            sending.start()
            for _ in range(faults):
                time.sleep(self._random.uniform(1, 4))
                self._kill(self._random.choice(group), "that counts very many values")
            sending.join(timeout=300)
            assert not sending.is_alive(), "reports were not sent within five minutes"
            results = KafkaResults(self._kafka, self._topics)
            eventually(lambda: len(results.histograms("many")) >= periods, 600)
            for histogram in results.histograms("many"):
                statistics = histogram.attribute("item").statistics
                assert statistics is not None and statistics.supports is not None
                expected = recounted(SCHEME, [one for one in self._frames if one.period == histogram.period])
                assert (np.array(statistics.supports) == expected[np.array(statistics.gaps) - 1]).all()
        self._say(f"{sum(map(len, self._frames)):,} answers to {VALUES:,} values, each counted once")

    def _records(self, periods: int) -> Iterator[Record]:
        random, partitions = self._draws, self._topics.partitions
        count = SCHEME.questions[0].mechanism.encoding.answer.count
        for period in range(periods):
            for number in range(FRAMES):
                partition = number % partitions
                tokens = random.integers(1, 1 << 60, ROWS).astype(np.uint64) * np.uint64(partitions)
                gaps = random.integers(1, HORIZON + 1, ROWS).astype(np.uint16)
                answers = random.integers(count, size=ROWS).astype(np.uint16)
                made = Frame("many", SCHEME.fingerprint, period, tokens + np.uint64(partition), gaps, {"item": answers})
                self._frames.append(made.sorted())
                record = partition, FRAME, encode_frame(self._frames[-1], SCHEME)
                yield from [record] * (1 + (number % 5 == 0))  # some are sent again
            yield from ((partition, CLOCK, encode_clock(Clock("many", period), KEY)) for partition in range(partitions))

    def _send(self, log: list[Record], seconds: float) -> None:
        sink = KafkaSink(self._kafka, self._topics.reports)
        for record in log:
            sink.send(*record)
            time.sleep(seconds / len(log))
        sink.flush()
        sink.close()


def recounted(scheme: Scheme, frames: Sequence[Frame]) -> np.ndarray:
    """The supports of the only question by gap and value, hash by hash and value by value."""
    (question,) = scheme.questions
    encoding = question.mechanism.encoding
    assert isinstance(encoding, FreshHash)
    g, digits = encoding.g, encoding.digits
    vectors = np.stack(np.unravel_index(np.arange(g**digits), (g,) * digits), axis=1).astype(np.float32)
    supports = np.zeros((scheme.survey.horizon, question.k), dtype=np.int64)
    for frame in frames:
        hashes, symbols = np.divmod(frame.answers[question.name].astype(np.int64), g)
        for begin in range(0, len(frame), AT_ONCE):
            rows = slice(begin, begin + AT_ONCE)
            sent = (vectors[: question.k] @ vectors[hashes[rows]].T).astype(np.int32) % g == symbols[rows]
            for gap in np.unique(frame.gaps[rows]):
                supports[gap - 1] += sent[:, frame.gaps[rows] == gap].sum(axis=1)
    return supports
