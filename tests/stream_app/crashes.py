"""A world in which workers crash, pause, and resume too late, while the log, the store and the topics remain.

A failure would look like this: a final that is not the recount's, or a second final with other bytes.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from hypothesis import strategies as st

from stream_app.counting.judging import Record
from stream_app.counting.partials import Part, Partial, Progress, decode_partial
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.log.flushes import Flush, Output, Write
from stream_app.log.log_reader import LogReader
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
    start: Callable[[list[tuple[bytes, bytes]]], Worker]
    end: int  # of the log
    store: dict[bytes, bytes] = field(default_factory=dict)
    topics: dict[str, list[Output]] = field(default_factory=lambda: defaultdict(list))
    past: dict[tuple[bytes, bytes], None] = field(default_factory=dict)  # every record that was ever in the store
    paused: list[list[Write | Output]] = field(default_factory=list)  # what paused workers have yet to write

    def run(self, script: Sequence[Step]) -> Worker:
        """Follow the script, then let paused workers write the rest, restart once more and read to the end."""
        worker = self._restart()
        for step, number in script:
            match step:
                case "read":
                    worker.read(range(worker.next_offset, min(worker.next_offset + number, self.end)))
                case "again":
                    worker.read(range(max(0, worker.next_offset - number), worker.next_offset))
                case "flush":
                    self._write(list(worker.flush()))
                case "crash":
                    self._write(list(worker.flush())[:number])
                    worker = self._restart()
                case "pause":
                    items = list(worker.flush())
                    self._write(items[:number])
                    self.paused.append(items[number:])
                    worker = self._restart()
                case "resume":
                    if self.paused:
                        items = self.paused.pop(0)
                        self._write(items[: number + 1])
                        if items[number + 1 :]:
                            self.paused.append(items[number + 1 :])
                case "revert":
                    self._revert(number)
                    worker = self._restart()
        for items in self.paused:
            self._write(items)
        worker = self._restart()
        worker.read(range(worker.next_offset, self.end))
        self._write(list(worker.flush()))
        return worker

    def _restart(self) -> Worker:
        return self.start(list(self.store.items()))

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


def parts(flush: Iterable[Write | Output]) -> list[Part]:
    return [found for found in _partials(flush) if isinstance(found, Part)]


def progress(flush: Iterable[Write | Output]) -> list[Progress]:
    return [found for found in _partials(flush) if isinstance(found, Progress)]


def _partials(flush: Iterable[Write | Output]) -> list[Partial]:
    return [decode_partial(output.value) for output in outputs(flush, "partials")]
