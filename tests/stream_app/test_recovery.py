"""Recovery of the counting state, rule by rule; test_exactness tests all rules together."""

from collections import Counter

from stream_app.counting.judging import Record
from stream_app.counting.open_periods import Saving
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.log.flushes import state_key
from tests.stream_app.crashes import keep, parts, progress
from tests.stream_app.worlds import KEY, SURVEYS, Event, Reports, Row, Tick, log_of

EVENTS: list[Event] = [
    Reports(0, (Row(1), Row(2))),
    Reports(1, (Row(1),)),
    Reports(0, (Row(3), Row(2))),
    Reports(1, (Row(1), Row(4))),
]
LOG = log_of(EVENTS)
COUNTER, TOKENS = state_key("count", 0, "counter", "s", 0), state_key("count", 0, "tokens", "s", 0, 0)
Store = dict[bytes, bytes]


def start(store: Store, log_start: int = 0) -> PartitionCounter:
    return PartitionCounter(0, 1, SURVEYS.get, KEY, store.items(), log_start)


def state_after(*flushes_at: int, log: list[Record] = LOG) -> Store:
    """The store after reading the log, with a flush after each of these many records."""
    store: Store = {}
    worker = start(store)
    for end in flushes_at:
        for record in log[worker.next_offset : end]:
            worker.apply(record)
        keep(store, worker.flush())
    return store


def finish(store: Store, log: list[Record] = LOG) -> PartitionCounter:
    worker = start(store)
    worker.apply_all(log[worker.next_offset :])
    return worker


def in_full(worker: PartitionCounter) -> tuple[dict[int, int], Counter[str]]:
    """Reports counted by period, and rows refused."""
    counts = {key[1]: period.counts.snapshot()["colour"].total for key, period in worker.open_periods.items()}
    return counts, worker.rejects["s"]


EXPECTED = ({0: 3, 1: 2}, Counter({"repeat": 2}))


def test_a_counter_older_than_the_position_says_is_counted_again_from_where_it_stands() -> None:
    store = state_after(1, 3) | {COUNTER: state_after(1)[COUNTER]}
    assert start(store).next_offset == 1
    assert in_full(finish(store)) == EXPECTED


def test_a_counter_newer_than_the_position_says_skips_what_it_contains() -> None:
    store = {**state_after(1, 3), **{key: value for key, value in state_after(1).items() if b"position" in key}}
    assert start(store).next_offset == 1
    assert in_full(finish(store)) == EXPECTED


def test_records_of_closed_periods_that_come_back_are_deleted() -> None:
    old = state_after(3)
    store = dict(old)
    worker = start(store)
    for record in log_of([*EVENTS[:3], Tick(0)])[worker.next_offset :]:
        worker.apply(record)
    keep(store, worker.flush())
    assert COUNTER not in store
    store |= {key: value for key, value in old.items() if b"/s/0" in key}  # the late writes of a paused worker
    worker = start(store)
    assert [key[1] for key in worker.open_periods] == [1]
    keep(store, worker.flush())
    assert not [key for key in store if b"/s/0" in key]


def test_after_a_restart_the_merge_is_sent_what_it_may_lack() -> None:
    store: Store = {}
    worker = start(store)
    for record in LOG:
        worker.apply(record)
    keep(store, worker.flush(provisional=False))
    sent = start(store).flush()
    assert {part.period: part.counts["colour"].total for part in parts(sent)} == EXPECTED[0]
    assert [one.rejects for one in progress(sent)] == [EXPECTED[1]]


def test_a_counter_that_waited_in_memory_is_counted_again_from_its_record_and_that_is_no_news() -> None:
    store: Store = {}
    worker = PartitionCounter(0, 1, SURVEYS.get, KEY, saving=Saving(repaid=0))
    for record in LOG[:3]:
        worker.apply(record)
        keep(store, worker.flush(provisional=False))
    assert (worker.next_offset, start(store).next_offset) == (3, 1)
    again = start(store)
    assert [changes.counted for changes in again.apply_all(LOG[1:]).changes] == [0, 0, 1], "only the last one is new"
    assert in_full(again) == EXPECTED
    keep(store, worker.flush(everything=True))
    assert start(store).next_offset == 3, "a worker that leaves writes everything"
