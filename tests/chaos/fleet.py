"""A fleet that reports while its Redis fails over to a replica, or runs into a full disk."""

import time
from threading import Thread

import numpy as np

from memo_store.store import MemoStore
from producers import reporting
from producers.kafka_sink import KafkaSink
from producers.simulation import Simulation
from protocols.errors import HearsayError
from protocols.respondent import Respondent
from tests.chaos.base import KafkaOrdeal
from tests.helpers.eventually import eventually
from tests.helpers.failover import ReplicatedRedis
from tests.producers.populations import CLOCK_KEY, KEYRING, Alternating, scheme
from views.results import Histogram

DEVICES, PERIODS_PER_FAULT = 3000, 3
SCHEME = scheme("crosses: [{of: [colour, plan], share: 0.4}],")


class PacedSink(KafkaSink):
    """Takes its time, so that there is always something going on."""

    def send(self, partition: int, content_type: str, value: bytes) -> None:
        time.sleep(0.1)
        super().send(partition, content_type, value)


class FleetOrdeal(KafkaOrdeal):
    """One fault of the memo store after the other, under a fleet; then every device was counted once."""

    def run(self, faults: int) -> None:
        self._counting.publish(SCHEME)
        self._failed: list[HearsayError] = []
        self._world = Alternating(DEVICES, faults * PERIODS_PER_FAULT)
        self._redis = ReplicatedRedis(self._counting.directory).start()
        kinds = {"a Redis that fails over": self._redis.fail_over, "a full disk under Redis": self._redis.fill_disk}
        dealt = [list(kinds)[number % len(kinds)] for number in range(faults)]
        self._random.shuffle(dealt)
        try:
            with self._counting.workers(key=CLOCK_KEY):
                reporting = Thread(target=self._report)
                reporting.start()
                for number, kind in enumerate(dealt):
                    time.sleep(self._random.uniform(0, 4))
                    self._say(f"fault {number + 1} of {faults}: {kind}")
                    kinds[kind]()
                reporting.join(timeout=600)
                assert not reporting.is_alive(), "the fleet did not report everything within ten minutes"
                assert not self._failed, self._failed
                eventually(lambda: len(self._counted()) >= self._world.periods, 240)
        finally:
            self._redis.stop()
        assert self._counted() == [len(self._world.presences(p).devices) for p in range(self._world.periods)]
        assert self._supports() == [self._recounted(period) for period in range(self._world.periods)]
        self._say(f"{sum(self._counted()):,} reports of a fleet in {self._world.periods} periods, each counted once")

    def _counted(self) -> list[int]:
        return [final.n or 0 for final in self._finals()]

    def _finals(self) -> list[Histogram]:
        return self._counting.results.histograms(SCHEME.survey.id)

    def _supports(self) -> list[dict[str, list[int]]]:
        """For each period the counts of each question, pairs included."""
        counts = [{one.name: one.statistics for one in final.attributes} for final in self._finals()]
        return [{name: one.supports.sum(axis=0).tolist() for name, one in period.items()} for period in counts]

    def _recounted(self, period: int) -> dict[str, list[int]]:
        """The same without store, wire and workers: what the devices answer, added up."""
        truth, respondent, found = self._world.presences(period), Respondent(SCHEME, KEYRING), {}
        for (question,), rows in respondent.asked(truth.devices, period):
            values = question.places(truth.values)[rows]
            answers = respondent.answers(question, truth.devices[rows], period, values)
            counts = question.mechanism.encoding.count(answers, np.zeros(len(rows), dtype=np.int64), 1)
            found[question.name] = counts[0].tolist()
        return found

    def _report(self) -> None:
        """Report everything; whoever cannot reach the store starts again, as an operator would."""
        reporting.ROWS_PER_FRAME = 500
        for _ in range(20):
            try:
                sink = PacedSink(self._counting.kafka, self._topics.reports)
                with MemoStore(self._redis.url) as store:
                    memos = store.survey(Respondent(SCHEME, KEYRING))
                    fleet = Simulation(memos, sink, self._world, CLOCK_KEY)
                    fleet.run()
                sink.close()
                return
            except HearsayError as error:
                if not error.retriable:
                    self._failed.append(error)
                    return
                self._say(f"the fleet starts again: {error.message}")
