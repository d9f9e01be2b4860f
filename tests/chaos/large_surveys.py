"""Surveys of many values, whose counters are deferred, and of many attributes, under workers that are killed."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from bench._processes import WorkerProcess, workers
from producers.sinks import KafkaSink
from protocols.arrays import PackedBits
from protocols.scheme import Scheme
from protocols.wire import CLOCK, FRAME, Clock, Frame, encode_clock, encode_frame
from stream_app.counting.state import Position
from stream_app.kafka import KafkaMessages, publish, read_topic
from stream_app.log.codec import unpack
from stream_app.log.flushes import state_key
from tests.chaos.base import KafkaOrdeal
from tests.helpers.eventually import eventually
from tests.helpers.frames import random_answers
from tests.helpers.published import read_finals
from tests.helpers.surveys import of_size, scheme_with
from tests.stream_app.worlds import KEY
from views.reading import Results
from views.results import Histogram

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
    """All workers are killed while counters are deferred; then every count is the one of what was sent."""

    def run(self, faults: int) -> None:
        self._sent: Supports = {}
        for scheme in SCHEMES.values():
            publish(self._kafka, self._topics, scheme.survey)
        # The first frame of a partition opens its counter, which is written; later ones do not repay it.
        possible = [(period, number) for period in range(PERIODS) for number in range(self._topics.partitions, FRAMES)]
        places = self._random.sample(possible, min(faults, len(possible)))
        sink = KafkaSink(self._kafka, self._topics.reports)
        with workers(2, self._kafka, self._topics, KEY, self._directory) as group:
            group[0].wait_until_ready()
            for period in range(PERIODS):
                for number in range(FRAMES):
                    if (period, number) in places:
                        eventually(lambda period=period: self._has_counters(period))
                    for scheme in SCHEMES.values():
                        self._send(sink, scheme, period, number)
                    sink.flush()
                    if (period, number) in places:
                        self._kill_all(group)
                for partition in range(self._topics.partitions):
                    for name in SCHEMES:
                        sink.send(partition, CLOCK, encode_clock(Clock(name, period), KEY))
                sink.flush()
            eventually(lambda: len(read_finals(self._kafka, self._topics)) == PERIODS * len(SCHEMES), 600)
        sink.close()
        self._compare()

    def _kill_all(self, group: Sequence[WorkerProcess]) -> None:
        """Kill the workers while the state lacks reports that were counted; they must read these again."""
        eventually(lambda: bool(self._deferred()))
        for worker in group:
            worker.pause()
        deferred, before = self._deferred(), self._begun(group)
        assert deferred, "a counter was written between two looks at the state"
        for worker in group:
            self._kill(worker, f"while the state lacks reports of {len(deferred)} counters")
        eventually(lambda: deferred.items() <= (self._begun(group) - before).keys())

    def _has_counters(self, period: int) -> bool:
        """Whether every partition has written its counters of a period: what comes now is not in their first write."""
        state, partitions = self._state(), range(self._topics.partitions)
        return all(state.get(state_key("count", p, "counter", s, period)) for p in partitions for s in SCHEMES)

    def _deferred(self) -> dict[int, int]:
        """Partitions with a counter that is older than the position lists it, and the offset that it contains."""
        state, found = self._state(), dict[int, int]()
        for partition in range(self._topics.partitions):
            position = state.get(state_key("count", partition, "position"))
            for period, listed in Position.decode(position).open.items() if position else ():
                saved = unpack(state[state_key("count", partition, "counter", *period)])[0]["offset"]
                if saved < listed.due:
                    found[partition] = min(saved, found.get(partition, saved))
        return found

    def _state(self) -> dict[bytes, bytes]:
        return {record.key: record.value for record in read_topic(self._kafka, self._topics.counting_changelog)}

    def _begun(self, group: Sequence[WorkerProcess]) -> Counter[tuple[int, int]]:
        """After which offsets of their partitions workers have begun to read, by their logs."""
        entries = [entry for worker in group for entry in worker.logged("reading")]
        offsets = [entry["next_offsets"] for entry in entries if entry["topic"] == self._topics.reports]
        return Counter((int(partition), offset - 1) for found in offsets for partition, offset in found.items())

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
            for final in Results(KafkaMessages(self._kafka, self._topics)).histograms(name):
                for question in scheme.questions:
                    sent = self._sent.get((name, final.period, question.name), np.zeros(question.k, dtype=np.int64))
                    assert np.array_equal(_supports(final, question.name, question.k), sent), (name, question.name)
        reports = PERIODS * FRAMES * ROWS
        self._say(f"{reports:,} reports of each large survey, counted once, those too that no state had")


def _supports(final: Histogram, attribute: str, k: int) -> np.ndarray:
    statistics = final.attribute(attribute).statistics
    if statistics is None or statistics.supports is None:
        return np.zeros(k, dtype=np.int64)
    return np.asarray(statistics.supports).reshape(-1, k).sum(axis=0)
