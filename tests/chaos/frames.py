"""Frames of symbols while the workers that count them are killed: finals are those of a recount, answer by answer."""

import time
from collections.abc import Iterator
from threading import Thread

import numpy as np

from bench._processes import workers
from protocols.arrays import PackedBits
from protocols.question import Question
from protocols.scheme import Scheme
from protocols.wire import CLOCK, FRAME, Clock, Frame, encode_clock, encode_frame
from stream_app.kafka import KafkaMessages, publish
from tests.chaos.base import KafkaOrdeal
from tests.helpers.eventually import eventually
from tests.helpers.ordeal import send
from tests.helpers.traffic import Record
from views.reading import Results
from views.results import Histogram

PERIODS_PER_FAULT, FRAMES, ROWS = 2, 20, 2000
KEY = b"the operator of a large survey.."


class FramesOrdeal(KafkaOrdeal):
    """Frames arrive, some of them twice, while workers are killed; then every answer was counted once.

    Devices of the survey answer one question each, with a symbol.
    """

    scheme: Scheme
    what: str  # is counted

    def run(self, faults: int) -> None:
        publish(self._kafka, self._topics, self.scheme.survey)
        periods = faults * PERIODS_PER_FAULT
        self._frames: list[Frame] = []
        log = list(self._records(periods))
        with workers(2, self._kafka, self._topics, KEY, self._directory) as group:
            sending = Thread(target=send, args=(self._kafka, self._topics, log, 4.0 * faults))
            sending.start()
            for _ in range(faults):
                time.sleep(self._random.uniform(1, 4))
                self._kill(self._random.choice(group), f"that counts {self.what}")
            sending.join(timeout=300)
            assert not sending.is_alive(), "reports were not sent within five minutes"
            results, survey = Results(KafkaMessages(self._kafka, self._topics)), self.scheme.survey.id
            eventually(lambda: len(results.histograms(survey)) >= periods, 600)
            for histogram in results.histograms(survey):
                for question in self.scheme.questions:
                    self._compare(histogram, question, self._recounted(histogram.period, question))
        self._say(f"{sum(map(len, self._frames)):,} answers about {self.what}, each counted once")

    def _supported(self, question: Question, symbols: np.ndarray) -> np.ndarray:
        """Which values each answer supports, `[answer, value]`."""
        return np.asarray(symbols[:, None] == np.arange(question.k))

    def _compare(self, histogram: Histogram, question: Question, supports: np.ndarray) -> None:
        """Fail unless a final has the recounted supports, by gap and value."""
        statistics = histogram.attribute(question.name).statistics
        assert statistics is not None and statistics.supports is not None
        gaps = np.array(statistics.gaps) - 1
        assert (np.array(statistics.supports) == supports[gaps]).all()
        assert statistics.supports.sum() == supports.sum(), "no gap is missing"

    def _records(self, periods: int) -> Iterator[Record]:
        partitions, questions, survey = self._topics.partitions, self.scheme.questions, self.scheme.survey.id
        for period in range(periods):
            for number in range(FRAMES):
                partition, question = number % partitions, questions[number // partitions % len(questions)]
                self._frames.append(self._frame(period, partition, question).sorted())
                record = partition, FRAME, encode_frame(self._frames[-1], self.scheme)
                yield from [record] * (1 + (number % 5 == 0))  # some are sent again
            yield from ((partition, CLOCK, encode_clock(Clock(survey, period), KEY)) for partition in range(partitions))

    def _frame(self, period: int, partition: int, question: Question) -> Frame:
        random, partitions = self._draws, np.uint64(self._topics.partitions)
        answer = question.mechanism.encoding.answer
        assert not isinstance(answer, PackedBits), "answers are symbols"
        tokens = random.integers(1, 1 << 60, ROWS).astype(np.uint64) * partitions + np.uint64(partition)
        gaps = random.integers(1, self.scheme.survey.horizon + 1, ROWS).astype(np.uint16)
        answers = {question.name: random.integers(answer.count, size=ROWS).astype(answer.dtype)}
        return Frame(self.scheme.survey.id, self.scheme.fingerprint, period, tokens, gaps, answers)

    def _recounted(self, period: int, question: Question) -> np.ndarray:
        """Supports by gap and value, answer by answer."""
        supports = np.zeros((self.scheme.survey.horizon, question.k), dtype=np.int64)
        for frame in self._frames:
            if frame.period == period and question.name in frame.answers:
                sent = self._supported(question, frame.answers[question.name].astype(np.int64))
                for gap in range(len(supports)):
                    supports[gap] += sent[frame.gaps == gap + 1].sum(axis=0)
        return supports
