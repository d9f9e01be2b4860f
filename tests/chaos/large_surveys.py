"""Surveys of many values and of many attributes, whose counters are deferred, under workers that are killed."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench._processes import WorkerProcess
from producers.kafka_sink import KafkaSink
from protocols.arrays import PackedBits
from protocols.mechanisms import FreshHash
from protocols.question import Question
from protocols.scheme import Scheme
from protocols.wire import CLOCK, FRAME, Clock, Frame, encode_clock, encode_frame
from stream_app.counting.state import Position
from stream_app.log.codec import unpack
from stream_app.log.flushes import state_key
from tests.chaos.base import KafkaOrdeal
from tests.helpers.eventually import eventually
from tests.helpers.frames import random_answers
from tests.helpers.surveys import of_size, scheme_with
from tests.stream_app.worlds import KEY

VALUES, ATTRIBUTES, HORIZON = 65_536, 50, 7
FRAMES, ROWS, PERIODS = 4, 40, 2
COMMON: dict[str, Any] = {"horizon": HORIZON, "clock": "source"}
MANY = [of_size(9, name=f"a{number}", mechanism="l-grr") for number in range(ATTRIBUTES)]
SCHEMES = {
    "values": scheme_with(of_size(VALUES, mechanism="l-osue"), id="values", eps_inf=4, eps_1=2, **COMMON),
    "hashes": scheme_with(of_size(1000, mechanism="olh"), id="hashes", eps=1, **COMMON),
    "attributes": scheme_with(*MANY, id="attributes", eps_inf=4, eps_1=2, **COMMON),
}
Supports = dict[tuple[str, int, str], np.ndarray]  # by survey, period and attribute: by gap and value


class LargeOrdeal(KafkaOrdeal):
    """All workers are killed while counters are deferred; then every count is the one of what was sent."""

    def run(self, faults: int) -> None:
        self._sent: Supports = {}
        self._counting.publish(*SCHEMES.values())
        # The first frame of a partition opens its counter, which is written; later ones do not repay it.
        possible = [(period, number) for period in range(PERIODS) for number in range(self._topics.partitions, FRAMES)]
        places = self._random.sample(possible, min(faults, len(possible)))
        sink = KafkaSink(self._counting.kafka, self._topics.reports)
        with self._counting.workers(2) as group:
            group[0].wait_until_ready()
            for period in range(PERIODS):
                for number in range(FRAMES):
                    if (period, number) in places:
                        eventually(lambda period=period: self._has_counters(period))
                    for scheme in SCHEMES.values():
                        self._send(sink, scheme, period, number, times=1 + number % 2)
                    sink.flush()
                    if (period, number) in places:
                        self._kill_all(group)
                for partition in range(self._topics.partitions):
                    for name in SCHEMES:
                        sink.send(partition, CLOCK, encode_clock(Clock(name, period), KEY))
                sink.flush()
            self._counting.until_final(PERIODS * len(SCHEMES), 600)
        sink.close()
        self._compare()

    def _kill_all(self, group: Sequence[WorkerProcess]) -> None:
        """Kill the workers while the state lacks reports that were counted; they must read these again."""
        eventually(lambda: bool(self._deferred()))
        for worker in group:
            worker.pause()
        deferred, before = self._deferred(), self._begun(group)
        assert deferred, "a counter was written between two looks at the state"
        self._say(f"kill -9 of all workers while the state lacks reports of {len(deferred)} counters")
        for worker in group:
            worker.kill()
            worker.start()
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
        return {record.key: record.value for record in self._counting.read(self._topics.counting_changelog)}

    def _begun(self, group: Sequence[WorkerProcess]) -> Counter[tuple[int, int]]:
        """After which offsets of their partitions workers have begun to read, by their logs."""
        entries = [entry for worker in group for entry in worker.logged("reading")]
        offsets = [entry["next_offsets"] for entry in entries if entry["topic"] == self._topics.reports]
        return Counter((int(partition), offset - 1) for found in offsets for partition, offset in found.items())

    def _send(self, sink: KafkaSink, scheme: Scheme, period: int, number: int, times: int) -> None:
        """A frame, once or again, with reports that answer one question, drawn evenly."""
        partitions = self._topics.partitions
        partition = number % partitions
        tokens = np.arange(number * ROWS + 1, (number + 1) * ROWS + 1, dtype=np.uint64) * np.uint64(partitions)
        gaps = self._draws.integers(1, HORIZON + 1, ROWS).astype(np.uint16)
        question = scheme.questions[self._random.randrange(len(scheme.questions))]
        answers = random_answers(question.mechanism.encoding.answer, ROWS, self._draws)
        frame = Frame(
            scheme.survey.id, scheme.fingerprint, period, tokens + np.uint64(partition), gaps, {question.name: answers}
        )
        for _ in range(times):
            sink.send(partition, FRAME, encode_frame(frame, scheme))
        sent = self._sent.setdefault((scheme.survey.id, period, question.name), nothing(question))
        np.add.at(sent, gaps - 1, supported(question, answers))

    def _compare(self) -> None:
        for name, scheme in SCHEMES.items():
            for final in self._counting.results.histograms(name):
                for question in scheme.questions:
                    found, statistics = nothing(question), final.attribute(question.name).statistics
                    if statistics is not None and statistics.supports is not None:
                        found[np.array(statistics.gaps) - 1] = np.asarray(statistics.supports).reshape(-1, question.k)
                    sent = self._sent.get((name, final.period, question.name), nothing(question))
                    assert np.array_equal(found, sent), (name, question.name)
        reports = PERIODS * FRAMES * ROWS
        self._say(f"{reports:,} reports of each large survey, counted once, those too that no state had")


def nothing(question: Question) -> np.ndarray:
    return np.zeros((HORIZON, question.k), dtype=np.int64)


def supported(question: Question, answers: np.ndarray) -> np.ndarray:
    """Which values the answers to a question support: a row for each answer. Hash by hash, where they have hashes."""
    encoding = question.mechanism.encoding
    if isinstance(encoding.answer, PackedBits):
        return np.unpackbits(answers, axis=1, count=question.k, bitorder="little")
    if not isinstance(encoding, FreshHash):
        return np.eye(question.k, dtype=np.int64)[answers]
    g, digits = encoding.g, encoding.digits
    vectors = np.stack(np.unravel_index(np.arange(g**digits), (g,) * digits), axis=1).astype(np.float32)
    hashes, sent = np.divmod(answers.astype(np.int64), g)
    return np.asarray((vectors[hashes] @ vectors[: question.k].T).astype(np.int32) % g == sent[:, None])
