"""A survey whose results are cut into pieces, while its worker is killed after some pieces and before the manifest."""

import time
from collections import defaultdict
from contextlib import closing
from functools import cache

import numpy as np
from kafka import KafkaConsumer, TopicPartition

from bench._processes import WorkerProcess, workers
from producers.sinks import KafkaSink
from protocols.scheme import Scheme
from protocols.wire import CLOCK, FRAME, Clock, Frame, encode_clock, encode_frame
from stream_app.kafka import KafkaMessages, publish, read_topic
from stream_app.kafka.reading import ends
from stream_app.log import TopicName
from tests.chaos.base import KafkaOrdeal
from tests.chaos.many_values import supported
from tests.helpers.eventually import eventually
from tests.helpers.surveys import of_size, scheme_with
from tests.stream_app.worlds import KEY
from views.encoding import decode, digest
from views.reading import Results
from views.results import HISTOGRAMS, LIVE, MOBILITY

VALUES, ROWS, ATTEMPTS = 1_000_000, 1_000, 4
AT_ONCE = 40
"""How many answers are recounted at once: each takes an integer for every value."""
WAIT_SECONDS = 300.0
SESSION = "20"
"""In seconds. A result of so many values takes some, in which the worker's threads wait for each other."""


@cache
def scheme() -> Scheme:
    """Made when it is needed: it takes seconds."""
    return scheme_with(of_size(VALUES, mechanism="olh"), id="pieces", eps=1, clock="source")


class PiecesOrdeal(KafkaOrdeal):
    """Every kill leaves half of a result published; in the end all are whole and right."""

    def run(self, faults: int) -> None:
        publish(self._kafka, self._topics, scheme().survey)
        self._frames: list[Frame] = []
        self._sink = KafkaSink(self._kafka, self._topics.reports)
        with workers(1, self._kafka, self._topics, KEY, self._directory, "--session", SESSION) as (worker,):
            for _ in range(faults):
                hit = any(self._kill_between(worker) for _ in range(ATTEMPTS))
                assert hit, f"no kill between pieces and manifest in {ATTEMPTS} periods"
        self._sink.close()
        self._compare()

    def _kill_between(self, worker: WorkerProcess) -> bool:
        """Count a period, and kill the worker when half of its result is published. False if it was too fast."""
        period = len(self._frames)
        worker.wait_until_ready()
        before = self._records(LIVE.name)
        self._send(period)
        eventually(lambda: self._records(LIVE.name) > before, WAIT_SECONDS)
        topic = self._topics.named(HISTOGRAMS.name)
        begin = ends(self._kafka, topic)
        for partition in range(self._topics.partitions):
            self._sink.send(partition, CLOCK, encode_clock(Clock("pieces", period), KEY))
        self._sink.flush()
        hit = self._pause_between(worker, topic, begin, f"pieces/{period}".encode())
        if hit:
            self._kill(worker, "that has published some pieces of a result")
        else:
            worker.resume()
        eventually(lambda: self._finals() > period, WAIT_SECONDS)
        return hit

    def _pause_between(self, worker: WorkerProcess, topic: str, begin: dict[int, int], manifest: bytes) -> bool:
        """Pause the worker when a topic has some pieces; whether it has no manifest then."""
        deadline, seen = time.monotonic() + WAIT_SECONDS, begin
        partitions = [TopicPartition(topic, number) for number in begin]
        with closing(KafkaConsumer(**self._kafka.client_options())) as consumer:
            while time.monotonic() < deadline:
                now = {tp.partition: end for tp, end in consumer.end_offsets(partitions).items()}
                if now == seen:
                    continue
                worker.pause()
                keys = [record.key for record in read_topic(self._kafka, topic, begin)]
                if any(b"#" in key for key in keys):
                    return manifest not in keys
                worker.resume()
                seen = now
        raise AssertionError(f"no piece of a final within {WAIT_SECONDS:.0f} seconds")

    def _send(self, period: int) -> None:
        (question,) = scheme().questions
        answer = question.mechanism.encoding.answer
        answers = self._draws.integers(answer.count, size=ROWS).astype(answer.dtype)
        tokens = np.arange(1, ROWS + 1, dtype=np.uint64)
        frame = Frame("pieces", scheme().fingerprint, period, tokens, np.ones(ROWS, dtype=np.uint16), {"a": answers})
        self._frames.append(frame)
        self._sink.send(0, FRAME, encode_frame(frame, scheme()))
        self._sink.flush()

    def _records(self, name: TopicName) -> int:
        """How many records a topic has."""
        return sum(ends(self._kafka, self._topics.named(name)).values())

    def _finals(self) -> int:
        """How many finals are published, both results of each."""
        found = [
            [record.key for record in read_topic(self._kafka, self._topics.named(t.name))]
            for t in (HISTOGRAMS, MOBILITY)
        ]
        return min(len({key for key in keys if b"#" not in key}) for keys in found)

    def _compare(self) -> None:
        histograms = sorted(
            Results(KafkaMessages(self._kafka, self._topics)).histograms("pieces"), key=lambda one: one.period
        )
        assert [one.period for one in histograms] == list(range(len(self._frames))), "each final is read once"
        for one, frame in zip(histograms, self._frames, strict=True):
            statistics = one.attribute("a").statistics
            assert statistics is not None and statistics.supports is not None
            assert np.array_equal(np.asarray(statistics.supports).reshape(-1), _recounted(frame)), one.period
        pieces, repeated = self._published(HISTOGRAMS.name)
        live, _ = self._published(LIVE.name)
        assert pieces > len(self._frames) and live > len(self._frames), "results were in pieces, final and provisional"
        self._say(
            f"{len(self._frames)} finals of {VALUES:,} values in {pieces} pieces ({repeated} published again), and "
            f"provisional results in {live}: each answer counted once"
        )

    def _published(self, name: TopicName) -> tuple[int, int]:
        """How many pieces a topic has, and how many of its records again. Finals keep their bytes, and are whole."""
        values: dict[bytes, list[bytes]] = defaultdict(list)
        for record in read_topic(self._kafka, self._topics.named(name)):
            values[record.key].append(record.value)
        pieces = {key: found for key, found in values.items() if b"#" in key}
        if name != LIVE.name:
            assert all(len(set(found)) == 1 for found in values.values()), "a final was published with other bytes"
            for key in values.keys() - pieces.keys():
                listed = decode(values[key][0])["pieces"]
                there = [digest(pieces[b"%s#%d" % (key, at)][0]) for at in range(len(listed))]
                assert listed == there and b"%s#%d" % (key, len(listed)) not in pieces
        return sum(map(len, pieces.values())), sum(len(found) - 1 for found in values.values())


def _recounted(frame: Frame) -> np.ndarray:
    (question,) = scheme().questions
    answers = np.array_split(frame.answers["a"], ROWS // AT_ONCE)
    return sum((supported(question, some).sum(axis=0) for some in answers), np.zeros(VALUES, dtype=np.int64))
