"""What a reader of a log says about itself: where it may go on, and what it has to write."""

import pytest

from protocols.randomness import Keyring
from protocols.scheme import Scheme
from stream_app.counting.judging import Record, is_letter
from stream_app.counting.open_periods import Saving
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.log.flushes import Write, state_key
from stream_app.log.marks import Acceptance, Mark, Skipped, Why
from stream_app.merging.merger import Merger
from tests.stream_app.crashes import keep, outputs
from tests.stream_app.worlds import KEY, SURVEYS, Event, Garbage, Reports, Row, Tick, log_of, scheme, wire

Store = dict[bytes, bytes]
POSITION = state_key("count", 0, "position")
NOISED = {"s": scheme("presence_epsilon: 1,")}


def start(store: Store, saving: Saving | None = None) -> PartitionCounter:
    return PartitionCounter(0, 1, SURVEYS.get, KEY, store.items(), saving=saving or Saving())


def read(counter: PartitionCounter, *events: Event) -> PartitionCounter:
    counter.apply_all(log_of(events)[counter.next_offset :])
    return counter


@pytest.mark.parametrize(("last", "may"), [(8, True), (9, True), (10, False)])
def test_a_gap_that_goes_beyond_what_an_operator_gave_up_is_not_passed(last: int, may: bool) -> None:
    """The log had 10 offsets when the operator looked. Whatever is missing after them, nobody has seen."""
    accepted = Acceptance(Mark(gaps_before=10, acceptances=1), lost=0)
    counter = start({state_key("count", 0, "accepted"): accepted.encode()})
    assert counter.may_skip(Skipped(0, last, Why.ABSENT)) is may


def test_a_counter_is_pressing_until_what_others_wait_for_is_written() -> None:
    """Others wait for messages, and for rows that were refused. Counts can be read again from the log."""
    log = [Reports(0, (Row(1),)), Garbage(b"?"), Reports(0, (Row(2), Row(3, gap=9))), Tick(0)]
    counter = start({})
    pressing = []
    for read_until in range(1, len(log) + 1):
        read(counter, *log[:read_until])
        pressing.append(counter.is_pressing)
        counter.flush()
        assert not counter.is_pressing
    assert pressing == [False, True, True, True]


@pytest.mark.parametrize("surveys", [SURVEYS, NOISED], ids=["a survey", "a survey with noise on presence"])
def test_a_merge_is_pressing_until_what_it_merged_is_written(surveys: dict[str, Scheme]) -> None:
    counter = PartitionCounter(0, 1, surveys.get, KEY)
    merger = Merger(0, 1, surveys.get, Keyring(bytes(16)))
    assert not merger.is_pressing
    for event in (Reports(0, (Row(1),)), Tick(0)):
        counter.apply(Record(counter.next_offset, *wire(event, surveys["s"])))
        for partial in outputs(counter.flush(), "partials"):
            merger.apply(merger.next_offset, partial.value)
            assert merger.is_pressing
            merger.flush()
            assert not merger.is_pressing


def test_what_comes_after_a_position_that_was_refused_is_written_with_the_next_one() -> None:
    """Until a position says that a period is closed, recovery needs the records of the period."""
    store: Store = {}
    counter = start(store, Saving(repaid=1e9))
    read(counter, Reports(0, (Row(1),)))
    keep(store, counter.flush())
    held = set(store) - {POSITION}
    assert held, "the counter and its tokens are in the state"
    read(counter, Reports(0, (Row(1),)), Tick(0))
    refused = counter.flush()
    assert {item.key for item in refused.stages[-1]} == held
    counter.position_refused(refused)
    assert counter.is_pressing
    again = counter.flush()
    assert [item.key for item in again.stages[-2]] == [POSITION]
    assert again.stages[-1] == refused.stages[-1]
    assert all(isinstance(item, Write) and item.value is None for item in again.stages[-1])


def test_after_a_restart_nothing_is_written_that_is_in_the_state() -> None:
    store: Store = {}
    counter = read(start(store), Reports(0, (Row(1),)), Reports(1, (Row(2),)))
    keep(store, counter.flush(everything=True))
    written = [item for item in start(store).flush(everything=True) if isinstance(item, Write)]
    assert [item.key for item in written] in ([], [POSITION])
    assert all(store[item.key] == item.value for item in written)


def test_only_dead_letters_may_be_cut_where_a_broker_refuses_their_size() -> None:
    """What is cut of any other record would be lost."""
    counter = read(start({}), Reports(0, (Row(1),)), Garbage(b"?"), Tick(0))
    letters = {item.key: is_letter(item) for item in counter.flush(everything=True)}
    assert [key for key, found in letters.items() if found] == [b"0/1/undecodable"]
    assert {b"s", POSITION} <= {key for key, found in letters.items() if not found}
