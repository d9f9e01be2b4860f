"""A world in which workers crash, pause and wake too late, while the log, the store and the topics remain.

A failure would look like this: a final that is not the recount's, or a second final with other bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args

from hypothesis import strategies as st

from stream_app.log.flushes import Flush, Output, Write

Deed = Literal["read", "again", "flush", "crash", "pause", "wake", "relapse"]
Step = tuple[Deed, int]
scripts = st.lists(st.tuples(st.sampled_from(get_args(Deed)), st.integers(0, 12)), min_size=10, max_size=40)


class Worker(Protocol):
    """PartitionCounter or Merger, fed by offsets: those of one call arrive together."""

    @property
    def next_offset(self) -> int: ...
    def read(self, offsets: range) -> None: ...
    def flush(self) -> Flush: ...


@dataclass
class World:
    start: Callable[[list[tuple[bytes, bytes]]], Worker]
    end: int  # of the log
    store: dict[bytes, bytes] = field(default_factory=dict)
    topics: dict[str, list[Output]] = field(default_factory=lambda: defaultdict(list))
    past: dict[tuple[bytes, bytes], None] = field(default_factory=dict)  # every record that was ever in the store
    asleep: list[list[Write | Output]] = field(default_factory=list)  # what paused workers have yet to write

    def live_through(self, script: Sequence[Step]) -> Worker:
        """Follow the script, then wake whoever sleeps, restart once more and bring everything to an end."""
        worker = self._restart()
        for step, number in script:
            match step:
                case "read":
                    worker.read(range(worker.next_offset, min(worker.next_offset + number, self.end)))
                case "again":
                    worker.read(range(max(0, worker.next_offset - number), worker.next_offset))
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
                case "relapse":
                    self._relapse(number)
                    worker = self._restart()
        for items in self.asleep:
            self._land(items)
        worker = self._restart()
        worker.read(range(worker.next_offset, self.end))
        self._land(list(worker.flush()))
        return worker

    def _restart(self) -> Worker:
        return self.start(list(self.store.items()))

    def _relapse(self, number: int) -> None:
        """One record is again what it was at some time before, as after the late write of somebody long paused."""
        older = [record for record in self.past if record not in self.store.items()]
        if older:
            key, value = older[number % len(older)]
            self.store[key] = value

    def _land(self, items: Sequence[Write | Output]) -> None:
        for item in items:
            keep(self.store, [item])
            self.past |= dict.fromkeys(self.store.items())
            if isinstance(item, Output):
                self.topics[item.topic].append(item)


def keep(store: dict[bytes, bytes], items: Iterable[Write | Output]) -> None:
    """What a store does with the state records of a flush."""
    for item in items:
        if isinstance(item, Write) and item.value is not None:
            store[item.key] = item.value
        elif isinstance(item, Write):
            store.pop(item.key, None)
