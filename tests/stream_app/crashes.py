"""A world in which workers crash, pause and wake too late, while the log, the store and the topics remain.

A failure would look like this: a final that is not the recount's, or a second final with other bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from hypothesis import strategies as st

from stream_app.flushes import Flush, Output, Write

Step = tuple[Literal["read", "again", "flush", "crash", "pause", "wake"], int]
scripts = st.lists(
    st.tuples(st.sampled_from(["read", "again", "flush", "crash", "pause", "wake"]), st.integers(0, 12)), max_size=25
)


class Worker(Protocol):
    """PartitionCounter or Merger, fed by offset."""

    @property
    def next_offset(self) -> int: ...
    def read(self, offset: int) -> None: ...
    def flush(self) -> Flush: ...


@dataclass
class World:
    start: Callable[[list[tuple[bytes, bytes]]], Worker]
    end: int  # of the log
    store: dict[bytes, bytes] = field(default_factory=dict)
    topics: dict[str, list[Output]] = field(default_factory=lambda: defaultdict(list))
    asleep: list[list[Write | Output]] = field(default_factory=list)  # what paused workers have yet to write

    def live_through(self, script: Sequence[Step]) -> Worker:
        """Follow the script, then wake whoever sleeps, restart once more and bring everything to an end."""
        worker = self._restart()
        for step, number in script:
            match step:
                case "read":
                    self._read(worker, min(worker.next_offset + number, self.end))
                case "again":
                    for offset in range(max(0, worker.next_offset - number), worker.next_offset):
                        worker.read(offset)
                case "flush":
                    self._land(list(worker.flush()))
                case "crash":
                    self._land(list(worker.flush())[:number])
                    worker = self._restart()
                case "pause":
                    items = list(worker.flush())
                    self._land(items[:number])
                    self.asleep.append(items[number:])
                    worker = self._restart()
                case "wake":
                    if self.asleep:
                        items = self.asleep.pop(0)
                        self._land(items[: number + 1])
                        if items[number + 1 :]:
                            self.asleep.append(items[number + 1 :])
        for items in self.asleep:
            self._land(items)
        worker = self._restart()
        self._read(worker, self.end)
        self._land(list(worker.flush()))
        return worker

    def _restart(self) -> Worker:
        return self.start(list(self.store.items()))

    def _read(self, worker: Worker, end: int) -> None:
        for offset in range(worker.next_offset, end):
            worker.read(offset)

    def _land(self, items: Sequence[Write | Output]) -> None:
        keep(self.store, items)
        for item in items:
            if isinstance(item, Output):
                self.topics[item.topic].append(item)


def keep(store: dict[bytes, bytes], items: Iterable[Write | Output]) -> None:
    """What a store does with the state records of a flush."""
    for item in items:
        if isinstance(item, Write) and item.value is not None:
            store[item.key] = item.value
        elif isinstance(item, Write):
            store.pop(item.key, None)
