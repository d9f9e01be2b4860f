"""Any log, any split into batches and flushes, a crash between any two writes, late writes: the counts of a recount."""

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.randomness import Keyring
from stream_app.counting.open_periods import Saving
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.finals import Final, Status
from stream_app.log.flushes import Output
from stream_app.log.recovery import Errors
from stream_app.merging.merger import Merger
from tests.helpers.published import Memory
from tests.helpers.recount import finals_of, histograms_of
from tests.stream_app.crashes import Step, Worker, World, counting, merging, scripts
from tests.stream_app.worlds import KEY, SURVEYS, Event, Garbage, Recount, Reports, Row, Tick, counts_of, log_of
from views.results import HISTOGRAMS

rows = st.builds(Row, st.integers(1, 9), st.integers(0, 4), st.integers(0, 3), st.integers(0, 1100))
reports = st.builds(Reports, st.integers(0, 5), st.lists(rows, min_size=1, max_size=4).map(tuple))
events = st.one_of(reports, reports, reports, st.builds(Tick, st.integers(0, 5)), st.just(Garbage(b"?")))
logs = st.lists(events, min_size=12, max_size=40)
SAVINGS = [Saving(), Saving(repaid=0), Saving(repaid=0.3), Saving(repaid=0, token_bytes=64), Saving(0, 1 << 20, 10_000)]
savings = st.sampled_from(SAVINGS)  # counters that are written at once, or later, for one reason or another


def count(
    events: Sequence[Event], script: Sequence[Step], partition: int, partitions: int, saving: Saving
) -> tuple[World, PartitionCounter]:
    log = log_of(events)
    made: list[PartitionCounter] = []

    def start(records: list[tuple[bytes, bytes]], _: Errors) -> Worker:
        made.append(PartitionCounter(partition, partitions, SURVEYS.get, KEY, records, saving=saving))
        return counting(log, made[-1])

    world = World(start, len(log))
    world.run(script)
    return world, made[-1]


def merge(partials: Sequence[Output], script: Sequence[Step], partitions: int) -> World:
    keyring = Keyring(bytes(16))
    world = World(
        lambda records, _: merging(partials, Merger(0, partitions, SURVEYS.get, keyring, records)), len(partials)
    )
    world.run(script)
    return world


@pytest.mark.parametrize("seed", range(40))
def test_frames_that_can_be_counted_together_give_what_the_recount_gives(seed: int) -> None:
    """Good frames for a few periods, many of which are read at once; and some that are too far ahead of their clock."""
    chance = random.Random(seed)
    events: list[Event] = []
    through = -1
    for _ in range(60):
        if chance.random() < 0.1:
            through += 1
            events.append(Tick(through))
        else:
            ahead = chance.choice([1, 1, 1, 2, 2, 3])
            some = [Row(chance.randint(1, 60), chance.randint(1, 3), chance.randint(0, 2)) for _ in range(3)]
            events.append(Reports(through + ahead, tuple(some)))
    steps = [
        ("read", 12),
        ("read", 3),
        ("flush", 0),
        ("crash", chance.randint(0, 6)),
        ("revert", chance.randint(0, 99)),
    ]
    world, counter = count(events, chance.choices(steps, k=30), 0, 1, chance.choice(SAVINGS))
    recount = Recount.of([events])
    assert sum(counter.rejects.values(), Counter()) == recount.rejects
    assert {letter.key.decode() for letter in world.topics["deadletters"]} == recount.letters[0]
    topics = merge(world.topics["partials"], [], 1).topics
    finals = [Final.decode(message.value) for message in topics["finals"]]
    assert {final.period: counts_of(final) for final in finals} == recount.finals


@settings(max_examples=35, deadline=None)
@given(
    st.tuples(logs, logs),
    st.tuples(scripts, scripts),
    scripts,
    savings,
    st.randoms(use_true_random=False),
)
def test_whatever_happens_to_its_workers_finals_and_refusals_are_those_of_the_recount(
    partitions: tuple[list[Event], list[Event]],
    of_counters: tuple[list[Step], list[Step]],
    of_merge: list[Step],
    saving: Saving,
    random,
) -> None:
    counted = [count(partitions[p], of_counters[p], p, 2, saving) for p in range(2)]
    recount = Recount.of(partitions)
    assert sum((sum(counter.rejects.values(), Counter()) for _, counter in counted), Counter()) == recount.rejects
    letters = [{letter.key.decode() for letter in world.topics["deadletters"]} for world, _ in counted]
    assert letters == recount.letters
    streams = [world.topics["partials"] for world, _ in counted]
    partials = [
        streams[p].pop(0) for p in sorted([0] * len(streams[0]) + [1] * len(streams[1]), key=lambda _: random.random())
    ]
    merged = merge(partials, of_merge, 2)
    published = merged.topics["finals"]
    first = {message.key: message.value for message in reversed(published)}
    assert all(first[message.key] == message.value for message in published), "published with other bytes"
    assert {Final.decode(value).period: counts_of(Final.decode(value)) for value in first.values()} == recount.finals
    assert {("s", Final.decode(value).period): value for value in first.values()} == finals_of(recount)
    made = Memory(published, SURVEYS["s"].survey).values(HISTOGRAMS)
    assert made == histograms_of(recount), "verdicts included"
    statuses = [message.value for message in merged.topics["open"] if message.key == b"s"]
    last = Status.model_validate_json(statuses[-1]) if statuses else Status(survey="s")
    assert last.lates == recount.lates
