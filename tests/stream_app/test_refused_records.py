"""A record that a broker refuses quarantines its survey, as of the flush before; the others go on, and all are exact.

A position that is refused is not there, and everything goes on.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from protocols.errors import StateError
from protocols.randomness import Keyring
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.finals import Final
from stream_app.log.flushes import Flush, Output, state_key
from stream_app.log.log_reader import LogReader
from stream_app.log.quarantines import resumption, survey_of
from stream_app.merging.merger import Merger
from tests.stream_app.crashes import Worker, World
from tests.stream_app.test_exactness import SAVINGS, Counting, Merging
from tests.stream_app.test_quarantines import SCHEMES, a_log, a_script, records, recounts
from tests.stream_app.worlds import KEY, counts_of

TOO_LARGE = StateError("the broker refuses a record as too large", "")


@dataclass
class Refusing:
    """A worker some of whose records of the survey `bad` are refused, and some of whose positions.

    It reads on while it writes.
    """

    worker: Counting | Merging
    reader: LogReader
    chance: random.Random
    end: int
    on: list[bool]

    @property
    def next_offset(self) -> int:
        return self.worker.next_offset

    def read(self, offsets: range) -> None:
        self.worker.read(offsets)

    def flush(self) -> Flush:
        """What of a flush is written."""
        flush = self._without_a_record()
        if not self.on[0] or self.chance.random() < 0.6:
            return flush
        self.read(range(self.next_offset, min(self.next_offset + self.chance.randint(0, 3), self.end)))
        self.reader.position_refused(flush)
        stages = [[item for item in stage if not item.key.endswith(b"/position")] for stage in flush.stages[:-1]]
        return Flush(flush.offset, tuple(map(tuple, stages)))

    def _without_a_record(self) -> Flush:
        flush = self.worker.flush()
        places = [
            (number, item)
            for number, stage in enumerate(flush.stages)
            for item in stage
            if survey_of(item) == "bad" and item.value is not None
        ]
        if not (self.on[0] and places) or self.chance.random() < 0.3:
            return flush
        number, refused = self.chance.choice(places)
        self.read(range(self.next_offset, min(self.next_offset + self.chance.randint(0, 3), self.end)))
        left = self.reader.refused(flush, "bad", TOO_LARGE)
        assert self.reader.quarantines["bad"].why == TOO_LARGE.message
        written = tuple(item for item in flush.stages[number] if item is not refused)
        instead = tuple(item for item in left.stages[number] if item not in flush.stages[number])
        return Flush(flush.offset, (*flush.stages[:number], written, instead, *left.stages[number + 1 :]))


@pytest.mark.parametrize("seed", range(20))
def test_a_survey_of_which_any_record_was_refused_is_exact_once_it_goes_on(seed: int) -> None:
    chance = random.Random(seed)
    log, saving, on = a_log(chance), chance.choice(SAVINGS), [True]
    read_from = records(log)

    def recovered(found: list[tuple[bytes, bytes]]) -> Worker:
        counter = PartitionCounter(0, 1, SCHEMES.get, KEY, found, surveys=SCHEMES, saving=saving)
        return Refusing(Counting(read_from, counter), counter, chance, len(log), on)

    world = World(recovered, len(log))
    world.run(a_script(chance))
    on[0] = False
    world.store[state_key("count", 0, "resumed", "bad")] = resumption(99)
    worker = world.run(a_script(chance))
    assert isinstance(worker, Refusing) and isinstance(worker.reader, PartitionCounter)
    expected = recounts(log)
    for name, recount in expected.items():
        assert worker.reader.rejects.get(name, Counter()) == recount.rejects, name
        letters = {o.key.decode() for o in world.topics["deadletters"] if survey_of(o) == name}
        assert letters == recount.letters[0]
    topics = merged(world.topics["partials"], chance)
    for name, recount in expected.items():
        finals = [
            Final.decode(message.value) for message in topics["finals"] if message.key.startswith(f"{name}/".encode())
        ]
        assert {final.period: counts_of(final) for final in finals} == recount.finals, name
        first = {message.key: message.value for message in reversed(topics["finals"])}
        assert all(first[message.key] == message.value for message in topics["finals"])


def merged(partials: Sequence[Output], chance: random.Random) -> Mapping[str, list[Output]]:
    log, on = [partial.value for partial in partials], [True]

    def recovered(found: list[tuple[bytes, bytes]]) -> Worker:
        merger = Merger(0, 1, SCHEMES.get, Keyring(bytes(16)), found)
        return Refusing(Merging(log, merger), merger, chance, len(log), on)

    world = World(recovered, len(log))
    world.run(a_script(chance))
    on[0] = False
    world.store[state_key("merge", 0, "resumed", "bad")] = resumption(99)
    world.run(a_script(chance))
    return world.topics
