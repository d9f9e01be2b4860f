"""Workers, a broker and a log to which everything happens while reports arrive; and what must come out even so."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import cycle
from random import Random
from threading import Thread

from kafka import KafkaProducer

from bench._processes import SESSION_SECONDS, WorkerProcess
from protocols.errors import StateError
from protocols.wire import CLOCK, CONTENT_TYPE_HEADER
from servers.kafka_broker import KafkaBroker
from stream_app.faust_app import stuck_partitions, write_state
from stream_app.faust_app.acceptance import StuckPartition
from tests.helpers import bombs
from tests.helpers.cluster import Cluster
from tests.helpers.counting import Counting
from tests.helpers.eventually import eventually
from tests.helpers.failover import fill_disk_of
from tests.helpers.recount import histograms_of, logged
from tests.helpers.topics import cut_log, log_ends, remake
from tests.helpers.traffic import traffic
from tests.stream_app.worlds import SCHEME, Event, Recount

UNREADABLE = ("undecodable", "bad-mac", "unknown-survey", "too-large")
"""Reasons under which a record belongs to no survey."""


class Ordeal:
    """Reports arrive at a steady pace while one thing after the other goes wrong. The same seed, the same faults."""

    def __init__(
        self,
        broker: KafkaBroker | Cluster,
        counting: Counting,
        seed: int,
        say: Callable[[str], None] = print,
        logs: bool = False,
    ) -> None:
        self._broker = broker
        self._counting = counting
        self._topics = topics = counting.topics
        self._random = Random(seed)
        self._say = say
        self._faults: dict[str, Callable[[WorkerProcess], object]] = {
            "kill -9 of a worker": WorkerProcess.kill,
            "a worker paused beyond its session": self._pause,
            "SIGTERM of a worker": WorkerProcess.leave,
            "kill -9 of the broker": self._kill_broker,
            "kill -9 of the broker while a worker recovers": self._kill_broker_in_recovery,
            "a transaction": self._transact,
            "a batch that decompresses to too much": self._send_bomb,
            "a full disk under the broker": self._fill_disk,
        }
        if logs:
            self._faults |= {"the reports topic made again": self._remake, "a log cut off": self._cut}
        # What was in the logs before they were made again or cut, by its offset in the state; by how much those are
        # larger from then on; and the offset from which on the logs have something else.
        self._earlier: list[dict[int, Event]] = [{} for _ in range(topics.partitions)]
        self._shifts = [0] * topics.partitions
        self._floors = [0] * topics.partitions

    def run(self, reports: int, periods: int, faults: int) -> None:
        """Send, disturb, wait, and compare with a recount of the topic."""
        self._counting.publish(SCHEME)
        log = list(traffic(self._random, reports, periods, self._topics.partitions))
        kinds = [kind for kind, _ in zip(cycle(self._faults), range(faults), strict=False)]
        self._random.shuffle(kinds)
        with self._counting.workers(3) as group:
            self._group = group
            for number, kind in enumerate(kinds):
                slice_ = log[len(log) * number // faults : len(log) * (number + 1) // faults]
                pause = self._random.uniform(2, 6) / max(1, len(slice_))
                self._sending = Thread(target=self._counting.put, args=(slice_, pause))
                self._sending.start()
                time.sleep(self._random.uniform(0, 4))
                self._say(f"fault {number + 1} of {faults}: {kind}")
                self._faults[kind](self._random.choice(group))
                self._all_sent()
                for worker in group:
                    if not worker.running:
                        worker.start()
            self._counting.until_final(periods, 600)
            self.compare()

    def compare(self) -> None:
        """Finals byte for byte; rows refused by reason, late ones by period; every refused record as a dead letter."""
        expected = Recount.of_logs(self._logged())
        finals = self._counting.finals()
        assert finals == histograms_of(expected)
        wanted = {reason: rows for reason, rows in expected.rejects.items() if reason not in UNREADABLE}
        eventually(lambda: self._refused() == wanted)
        eventually(lambda: self._late_rows() == expected.lates)
        eventually(lambda: self._letters() == set().union(*expected.letters))
        counted = sum(counts["n", gap] for counts in expected.finals.values() for gap in range(1, 4))
        self._say(f"{counted:,} reports in {len(finals)} periods, each counted once; refused: {dict(expected.rejects)}")

    def _logged(self) -> list[dict[int, Event]]:
        """Everything that was ever on the reports topic, by its offset in the state."""
        now = logged(self._counting)
        return [
            before | {offset + shift: event for offset, event in events.items() if offset >= floor}
            for before, events, shift, floor in zip(self._earlier, now, self._shifts, self._floors, strict=True)
        ]

    def _all_sent(self) -> None:
        self._sending.join(timeout=300)
        assert not self._sending.is_alive(), "reports were not sent within five minutes"

    def _refused(self) -> dict[str, int]:
        live = self._counting.results.live("s")
        return dict(Counter(live.rejects)) if live else {}

    def _late_rows(self) -> dict[int, int]:
        live = self._counting.results.live("s")
        return live.lates if live else {}

    def _letters(self) -> set[str]:
        return {record.key.decode() for record in self._counting.read(self._topics.deadletters)}

    def _pause(self, worker: WorkerProcess) -> None:
        worker.pause()
        time.sleep(SESSION_SECONDS + 2)
        worker.resume()

    def _kill_broker(self, _: WorkerProcess) -> None:
        self._broker.kill()
        self._broker.start()

    def _fill_disk(self, _: WorkerProcess) -> None:
        """Nothing can be written any more, so the broker ends; it is started again when there is room."""
        fill_disk_of(self._broker)
        eventually(lambda: not self._broker.running)
        self._broker.start()

    def _kill_broker_in_recovery(self, worker: WorkerProcess) -> None:
        worker.kill()
        worker.start()
        time.sleep(self._random.uniform(2, 6))
        self._kill_broker(worker)

    def _transact(self, _: WorkerProcess) -> None:
        """Some reports in a transaction, which is committed or aborted: they count either way."""
        name = f"{self._topics.prefix}-{self._random.randrange(10**9)}"
        producer = KafkaProducer(**self._counting.kafka.client_options(), transactional_id=name)
        producer.init_transactions()
        producer.begin_transaction()
        for partition, kind, value in traffic(self._random, 40, 2, self._topics.partitions, rows=10):
            headers = [(CONTENT_TYPE_HEADER, kind.encode())]
            if kind != CLOCK:
                producer.send(self._topics.reports, value, headers=headers, partition=partition).get(60)
        self._random.choice([producer.commit_transaction, producer.abort_transaction])()
        producer.close()

    def _send_bomb(self, _: WorkerProcess) -> None:
        partition = self._random.randrange(self._topics.partitions)
        bomb = self._random.choice([bombs.gzip_bomb(4), bombs.bomb(bombs.LZ4, 64 << 20)])
        bombs.send_batches(self._counting.kafka, self._topics.reports, partition, [bomb])

    def _remake(self, _: WorkerProcess) -> None:
        """Delete the reports topic when everything on it is counted, make it again, and accept that nothing is lost."""
        ends = self._all_counted()
        self._shifts = [shift + end for shift, end in zip(self._shifts, ends, strict=True)]
        self._floors = [0] * len(ends)
        remake(self._counting.kafka, self._topics)
        eventually(lambda: not any(worker.running for worker in self._group))
        self._accept("another")

    def _cut(self, _: WorkerProcess) -> None:
        """Cut a log off when everything in it is counted, and accept that nothing is lost."""
        ends = self._all_counted()
        for worker in self._group:
            worker.kill()
        partition = self._random.choice([partition for partition, end in enumerate(ends) if end > 0])
        self._broker.kill()
        end = cut_log(self._broker.data / f"{self._topics.reports}-{partition}", self._random.randrange(3))
        self._broker.start()
        self._shifts[partition] += ends[partition] - end
        self._floors[partition] = end
        if end < ends[partition]:
            self._accept("cut")

    def _all_counted(self) -> list[int]:
        """Wait until everything is counted and written, and remember it. Returns the ends of the logs.

        Counters may wait in memory, as the log has what they lack. Workers that leave write them.
        """
        self._all_sent()
        for worker in self._group:
            if not worker.running:
                worker.start()
        ends = log_ends(self._counting.kafka, self._topics)
        eventually(lambda: self._counting.caught_up(self._contained(ends)), 300)
        for worker in self._group:
            worker.leave()
            worker.start()
        eventually(lambda: all(worker.ready for worker in self._group), 300)
        self._earlier = self._logged()
        return ends

    def _contained(self, ends: Sequence[int]) -> dict[int, int]:
        """The last offset of the state in each partition, if everything up to the ends of the logs is counted."""
        return {p: end + shift - 1 for p, (end, shift) in enumerate(zip(ends, self._shifts, strict=True))}

    def _accept(self, fault: str) -> None:
        stuck = stuck_partitions(self._counting.kafka, self._topics)
        assert {one.fault.kind.value for one in stuck} == {fault}
        eventually(lambda: accepted(self._counting, stuck))


def accepted(counting: Counting, stuck: Sequence[StuckPartition]) -> bool:
    """Accept that nothing is lost, unless workers that have ended still count as running."""
    try:
        write_state(counting.kafka, counting.topics, [one.accepted(lost=0) for one in stuck])
    except StateError:
        return False
    return True
