"""Workers and a broker that are killed, paused and stopped while reports arrive; and what must come out even so."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from random import Random
from threading import Thread

from hearsay.running.worker_process import SESSION_SECONDS, WorkerProcess, workers
from producers.sinks import KafkaSink
from servers.kafka_broker import KafkaBroker
from servers.settings import KafkaSettings
from stream_app.kafka import KafkaResults, Topics, publish, read_topic
from stream_app.kafka.results import read_finals
from tests.helpers.eventually import eventually
from tests.helpers.recount import final_of, recount
from tests.helpers.traffic import Record, traffic
from tests.stream_app.worlds import KEY, SCHEME

UNREADABLE = ("undecodable", "bad-mac", "unknown-survey")
"""Reasons under which a record belongs to no survey."""


class Ordeal:
    """Reports arrive at a steady pace while one thing after the other goes wrong. The same seed, the same faults."""

    def __init__(
        self, broker: KafkaBroker, topics: Topics, directory: Path, seed: int, say: Callable[[str], None] = print
    ) -> None:
        self._broker = broker
        self._kafka = KafkaSettings(bootstrap=broker.bootstrap)
        self._topics = topics
        self._directory = directory
        self._random = Random(seed)
        self._say = say
        self._faults = {
            "kill -9 of a worker": self._kill,
            "a worker paused beyond its session": self._pause,
            "SIGTERM of a worker": self._leave,
            "kill -9 of the broker": self._kill_broker,
            "kill -9 of the broker while a worker recovers": self._kill_broker_in_recovery,
        }

    def run(self, reports: int, periods: int, faults: int) -> None:
        """Send, disturb, wait, and compare with a recount of the topic."""
        publish(self._kafka, self._topics, SCHEME.survey)
        log = list(traffic(self._random, reports, periods, self._topics.partitions))
        kinds = [kind for kind, _ in zip(cycle(self._faults), range(faults), strict=False)]
        self._random.shuffle(kinds)
        with workers(3, self._kafka, self._topics, KEY, self._directory) as group:
            sink = KafkaSink(self._kafka, self._topics.reports)
            for number, kind in enumerate(kinds):
                slice_ = log[len(log) * number // faults : len(log) * (number + 1) // faults]
                sending = Thread(target=send, args=(sink, slice_, self._random.uniform(2, 6)))
                sending.start()
                time.sleep(self._random.uniform(0, 4))
                self._say(f"fault {number + 1} of {faults}: {kind}")
                self._faults[kind](self._random.choice(group))
                sending.join(timeout=120)
                assert not sending.is_alive(), "reports were not sent within two minutes"
                for worker in group:
                    if not worker.running:
                        worker.start()
            sink.close()
            eventually(lambda: len(read_finals(self._kafka, self._topics)) >= periods, 240)
            self.compare()

    def compare(self) -> None:
        """Finals byte for byte; rows refused by reason; every refused record among the dead letters."""
        expected = recount(self._kafka, self._topics)
        finals = read_finals(self._kafka, self._topics)
        assert finals == {("s", period): final_of(period, counted) for period, counted in expected.finals.items()}
        wanted = {reason: rows for reason, rows in expected.rejects.items() if reason not in UNREADABLE}
        eventually(lambda: self._refused() == wanted, 30)
        letters = {record.key.decode() for record in read_topic(self._kafka, self._topics.deadletters)}
        assert letters == set().union(*expected.letters)
        counted = sum(counts["n", gap] for counts in expected.finals.values() for gap in range(1, 4))
        self._say(f"{counted:,} reports in {len(finals)} periods, each counted once; refused: {dict(expected.rejects)}")

    def _refused(self) -> dict[str, int]:
        live = KafkaResults(self._kafka, self._topics).live("s")
        return dict(Counter(live.rejects)) if live else {}

    def _kill(self, worker: WorkerProcess) -> None:
        worker.kill()

    def _pause(self, worker: WorkerProcess) -> None:
        worker.pause()
        time.sleep(SESSION_SECONDS + 2)
        worker.resume()

    def _leave(self, worker: WorkerProcess) -> None:
        worker.leave()

    def _kill_broker(self, _: WorkerProcess) -> None:
        self._broker.kill()
        self._broker.start()

    def _kill_broker_in_recovery(self, worker: WorkerProcess) -> None:
        worker.kill()
        worker.start()
        time.sleep(self._random.uniform(2, 6))
        self._kill_broker(worker)


def send(sink: KafkaSink, records: Sequence[Record], seconds: float) -> None:
    """Send at a steady pace."""
    for record in records:
        sink.send(*record)
        time.sleep(seconds / len(records))
    sink.flush()
