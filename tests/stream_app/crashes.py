"""A world in which workers crash, pause, and resume too late, while the log, the store and the topics remain.

A failure would look like this: a final that is not the recount's, or a second final with other bytes.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from hypothesis import strategies as st

from stream_app.counting.judging import Record
from stream_app.counting.partials import Part, Progress, decode_partial
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.log.flushes import Flush, Output, Write
from stream_app.log.log_reader import LogReader
from stream_app.log.recovery import NONE_FAIL, Errors
from stream_app.merging.merger import Merger

Action = Literal["read", "again", "flush", "crash", "pause", "resume", "revert"]
Step = tuple[Action, int]
scripts = st.lists(st.tuples(st.sampled_from(get_args(Action)), st.integers(0, 12)), min_size=10, max_size=40)


@dataclass
class Worker:
    """A PartitionCounter or a Merger, and what gives it the records of its log at some offsets, in one call."""

    reader: LogReader
    read: Callable[[range], object]

    @property
    def next_offset(self) -> int:
        return self.reader.next_offset

    def flush(self) -> Flush:
        return self.reader.flush()


def counting(log: Sequence[Record], counter: PartitionCounter) -> Worker:
    return Worker(counter, lambda offsets: counter.apply_all([log[offset] for offset in offsets]))


def merging(partials: Sequence[Output], merger: Merger) -> Worker:
    return Worker(merger, lambda offsets: [merger.apply(offset, partials[offset].value) for offset in offsets])


@dataclass
class World:
    start: Callable[[list[tuple[bytes, bytes]], Errors], Worker]
    end: int  # of the log
    store: dict[bytes, bytes] = field(default_factory=dict)
    topics: dict[str, list[Output]] = field(default_factory=lambda: defaultdict(list))
    past: dict[tuple[bytes, bytes], None] = field(default_factory=dict)  # every record that was ever in the store
    paused: list[list[Write | Output]] = field(default_factory=list)  # what paused workers have yet to write

    def run(self, script: Sequence[Step]) -> Worker:
        """Follow the script, then let paused workers write the rest, restart once more and read to the end."""
        worker = self._restart()
        for step in script:
            worker = self._follow(worker, step)
        for items in self.paused:
            self._write(items)
        to_the_end: list[Step] = [("read", self.end), ("flush", 0)]
        worker, last = self._restart(), None
        while worker is not last:  # it is another one if a survey failed
            last = worker
            for step in to_the_end:
                worker = self._follow(worker, step)
        return worker

    def _follow(self, worker: Worker, step: Step) -> Worker:
        """The worker after a step: a new one after a crash, or if something went wrong with a survey."""
        action, number = step
        try:
            match action:
                case "read":
                    worker.read(range(worker.next_offset, min(worker.next_offset + number, self.end)))
                case "again":
                    worker.read(range(max(0, worker.next_offset - number), worker.next_offset))
                case "flush":
                    self._write(list(worker.flush()))
                case "crash":
                    self._write(list(worker.flush())[:number])
                case "pause":
                    items = list(worker.flush())
                    self._write(items[:number])
                    self.paused.append(items[number:])
                case "resume":
                    if self.paused:
                        items = self.paused.pop(0)
                        self._write(items[: number + 1])
                        if items[number + 1 :]:
                            self.paused.append(items[number + 1 :])
                case "revert":
                    self._revert(number)
        except Exception:
            if not worker.reader.failing:
                raise
        if worker.reader.failing or action in ("crash", "pause", "revert"):
            return self._restart(worker.reader.failing)
        return worker

    def _restart(self, failing: Errors = NONE_FAIL) -> Worker:
        return self.start(list(self.store.items()), failing)

    def _revert(self, number: int) -> None:
        """Set one record back to an earlier version, as the late write of a worker that was paused does."""
        older = [record for record in self.past if record not in self.store.items()]
        if older:
            key, value = older[number % len(older)]
            self.store[key] = value

    def _write(self, items: Sequence[Write | Output]) -> None:
        for item in items:
            keep(self.store, [item])
            self.past |= dict.fromkeys(self.store.items())
            if isinstance(item, Output):
                self.topics[item.topic].append(item)


def keep(store: dict[bytes, bytes], items: Iterable[Write | Output]) -> None:
    """Write the state records of a flush to a store."""
    for item in items:
        if isinstance(item, Write) and item.value is not None:
            store[item.key] = item.value
        elif isinstance(item, Write):
            store.pop(item.key, None)


def outputs(flush: Iterable[Write | Output], topic: str) -> list[Output]:
    return [item for item in flush if isinstance(item, Output) and item.topic == topic]


def partials(flush: Iterable[Write | Output], kind: type[Part | Progress]) -> list[Any]:
    """What a flush tells the merge: the counts of parts of periods, or how far a partition is."""
    found = [decode_partial(output.value) for output in outputs(flush, "partials")]
    return [partial for partial in found if isinstance(partial, kind)]
