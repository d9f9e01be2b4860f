"""A survey of very many values while its workers are killed: finals are those of a recount, answer by answer."""

import time
from collections.abc import Iterator
from threading import Thread

import numpy as np

from bench._processes import workers
from protocols.mechanisms import FreshHash
from protocols.question import Question
from protocols.wire import CLOCK, FRAME, Clock, Frame, encode_clock, encode_frame
from stream_app.kafka import KafkaMessages, publish
from tests.chaos.base import KafkaOrdeal
from tests.helpers.eventually import eventually
from tests.helpers.ordeal import send
from tests.helpers.surveys import of_size, scheme_with
from tests.helpers.traffic import Record
from views.reading import Results

PERIODS_PER_FAULT, FRAMES, ROWS, VALUES, HORIZON = 2, 20, 2000, 1000, 2
KEY = b"the operator of a large survey.."
SCHEME = scheme_with(of_size(VALUES, "item", mechanism="olh"), id="many", clock="source", eps=1, horizon=HORIZON)


class ManyValuesOrdeal(KafkaOrdeal):
    """Frames arrive, some of them twice, while workers are killed; then every answer was counted once."""

    def run(self, faults: int) -> None:
        publish(self._kafka, self._topics, SCHEME.survey)
        periods = faults * PERIODS_PER_FAULT
        self._frames: list[Frame] = []
        log = list(self._records(periods))
        with workers(2, self._kafka, self._topics, KEY, self._directory) as group:
            sending = Thread(target=send, args=(self._kafka, self._topics, log, 4.0 * faults))
            sending.start()
            for _ in range(faults):
                time.sleep(self._random.uniform(1, 4))
                self._kill(self._random.choice(group), "that counts very many values")
            sending.join(timeout=300)
            assert not sending.is_alive(), "reports were not sent within five minutes"
            results = Results(KafkaMessages(self._kafka, self._topics))
            eventually(lambda: len(results.histograms("many")) >= periods, 600)
            for histogram in results.histograms("many"):
                statistics, supports = histogram.attribute("item").statistics, self._recounted(histogram.period)
                assert statistics is not None and statistics.supports is not None
                assert (np.array(statistics.supports) == supports[np.array(statistics.gaps) - 1]).all()
                assert statistics.supports.sum() == supports.sum(), "no gap is missing"
        self._say(f"{sum(map(len, self._frames)):,} answers about very many values, each counted once")

    def _records(self, periods: int) -> Iterator[Record]:
        partitions = self._topics.partitions
        for period in range(periods):
            for number in range(FRAMES):
                partition = number % partitions
                self._frames.append(self._frame(period, partition).sorted())
                record = partition, FRAME, encode_frame(self._frames[-1], SCHEME)
                yield from [record] * (1 + (number % 5 == 0))  # some are sent again
            yield from ((partition, CLOCK, encode_clock(Clock("many", period), KEY)) for partition in range(partitions))

    def _frame(self, period: int, partition: int) -> Frame:
        random, partitions = self._draws, np.uint64(self._topics.partitions)
        answer = SCHEME.questions[0].mechanism.encoding.answer
        tokens = random.integers(1, 1 << 60, ROWS).astype(np.uint64) * partitions + np.uint64(partition)
        gaps = random.integers(1, HORIZON + 1, ROWS).astype(np.uint16)
        answers = {"item": random.integers(answer.count, size=ROWS).astype(answer.dtype)}
        return Frame("many", SCHEME.fingerprint, period, tokens, gaps, answers)

    def _recounted(self, period: int) -> np.ndarray:
        """Supports by gap and value, hash by hash."""
        supports = np.zeros((HORIZON, VALUES), dtype=np.int64)
        for frame in (frame for frame in self._frames if frame.period == period):
            sent = supported(SCHEME.questions[0], frame.answers["item"])
            for gap in range(HORIZON):
                supports[gap] += sent[frame.gaps == gap + 1].sum(axis=0)
        return supports


def supported(question: Question, symbols: np.ndarray) -> np.ndarray:
    """Which values the answers to a question support: a row for each answer."""
    encoding = question.mechanism.encoding
    assert isinstance(encoding, FreshHash)
    g, digits = encoding.g, encoding.digits
    vectors = np.stack(np.unravel_index(np.arange(g**digits), (g,) * digits), axis=1).astype(np.float32)
    hashes, sent = np.divmod(symbols.astype(np.int64), g)
    return np.asarray((vectors[hashes] @ vectors[: question.k].T).astype(np.int32) % g == sent[:, None])
