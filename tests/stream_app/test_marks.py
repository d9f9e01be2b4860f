"""What the state knows of its log, and how counting goes on from it, rule by rule. test_exactness has all rules."""

from collections import Counter

import numpy as np
import pytest

from protocols.errors import LogError, WireError
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from protocols.wire import MAX_RECORD_BYTES, MAX_ROWS, Frame, Reason, encode_frame
from stream_app.counting.judging import Record
from stream_app.counting.open_periods import Saving
from stream_app.counting.partials import Part, Progress
from stream_app.counting.partition_counter import Changes, PartitionCounter
from stream_app.log.flushes import state_key
from stream_app.log.marks import Acceptance, FaultKind, LogFault, LogView, Loss, Mark, Skipped, Why, compare
from tests.stream_app.crashes import keep, outputs, partials
from tests.stream_app.worlds import KEY, SURVEYS, Event, Reports, Row, Tick, log_of, wire

Store = dict[bytes, bytes]
WIDE = """{id: wide, start: 2026-01-01T00:00Z, period: 1d, eps: 1, clock: source,
           attributes: [{name: page, range: {last: 999}, mechanism: oue}]}"""


def start(store: Store, log_start: int = 0) -> PartitionCounter:
    return PartitionCounter(0, 1, SURVEYS.get, KEY, store.items(), log_start, surveys=SURVEYS)


def read(store: Store, *events: Event | Skipped, epoch: int = 4, log_start: int = 0) -> PartitionCounter:
    """Recover, read events from the next offset on, and flush."""
    counter = start(store, log_start)
    counter.adopt("first")
    for event in events:
        offset = counter.next_offset
        counter.apply(event if isinstance(event, Skipped) else Record(offset, *wire(event), epoch))
    flush = counter.flush()
    keep(store, flush)
    return counter


def test_the_state_knows_the_topic_and_the_leader_epoch_of_the_last_record_also_if_some_are_read_again() -> None:
    store: Store = {}
    read(store, Reports(0, (Row(1),)))
    older = dict(store)
    read(store, Reports(0, (Row(2),)), epoch=5)
    assert start(store).mark == Mark("first", 5)
    counter = start(older | {state_key("count", 0, "position"): store[state_key("count", 0, "position")]})
    assert counter.next_offset == 1
    counter.apply(Record(1, *wire(Reports(0, (Row(2),))), 5))
    assert counter.mark.epoch == 5


@pytest.mark.parametrize(
    ("view", "found"),
    [
        pytest.param(LogView("other", 7, 9), (FaultKind.ANOTHER, 7), id="made again"),
        pytest.param(LogView("other", 0, 500, epoch_end=500), (FaultKind.ANOTHER, 0), id="made again and longer"),
        pytest.param(LogView("first", 0, 60, epoch_end=60), (FaultKind.CUT, 60), id="shorter"),
        pytest.param(LogView("first", 0, 500, epoch_end=60), (FaultKind.CUT, 60), id="cut and grown again"),
        pytest.param(LogView("first", 0, 100, epoch_end=100), None, id="at its end"),
        pytest.param(LogView("first", 0, 120, epoch_end=100), None, id="a new leader"),
        pytest.param(LogView("first", 90, 120), None, id="an epoch that is not known"),
        pytest.param(LogView("first", 110, 120, epoch_end=110), None, id="expired"),
    ],
)
def test_a_log_that_is_another_or_lost_its_end_is_found(view: LogView, found: tuple[FaultKind, int] | None) -> None:
    fault = compare(Mark("first", 4), 100, view)
    assert found == (fault and (fault.kind, fault.read_on))


def test_offsets_of_the_state_go_on_in_another_log_and_nothing_is_counted_twice() -> None:
    store: Store = {}
    read(store, Reports(0, (Row(1), Row(2))), Reports(1, (Row(1),)))
    fault = compare(start(store).mark, 2, view := LogView("second", 0, 3))
    assert fault is not None
    store[state_key("count", 0, "accepted")] = Acceptance.of(start(store).mark, 2, fault, view, lost=7).encode()
    counter = start(store)
    assert (counter.next_offset, counter.mark.shift, counter.missing) == (2, 2, "")
    counter.apply(Record(2, *wire(Reports(0, (Row(2), Row(3)))), 0))
    assert counter.rejects["s"] == Counter({"repeat": 1})
    assert counter.lost == {"s": (Loss(0, 1, 7),)}
    keep(store, counter.flush())
    again = start(store)
    assert (again.next_offset, again.mark.topic) == (3, "second")
    assert again.lost == {"s": (Loss(0, 1, 7),)}, "an acceptance is applied once"


def test_a_late_write_from_before_an_acceptance_costs_what_lies_between_and_says_so() -> None:
    store: Store = {}
    read(store, Reports(0, (Row(1),)))
    older = dict(store)
    read(store, Reports(0, (Row(2),)))
    fault = compare(start(store).mark, 2, view := LogView("second", 0, 3))
    assert fault is not None
    store |= older | {
        state_key("count", 0, "accepted"): Acceptance.of(start(store).mark, 2, fault, view, lost=7).encode()
    }
    counter = start(store)
    assert counter.next_offset == 2
    assert "offsets 1 to 1 are no longer in the log" in counter.missing
    assert counter.lost["s"] == (Loss(0, 1, 7 + MAX_ROWS),)


def test_gaps_are_passed_only_as_far_as_an_operator_gave_them_up() -> None:
    store: Store = {}
    mark = read(store, Reports(0, (Row(1),))).mark
    gap, later = Skipped(1, 4, Why.ABSENT, 4), Skipped(10, 11, Why.ABSENT, 4)
    with pytest.raises(LogError, match="records are missing"):
        start(store).apply(gap)
    accepted = Mark(mark.topic, mark.epoch, gaps_before=10, acceptances=1)
    store[state_key("count", 0, "accepted")] = Acceptance(accepted, 3).encode()
    counter = start(store)
    assert counter.may_skip(gap) and not counter.may_skip(later)
    assert counter.apply(gap) == Changes()
    assert counter.next_offset == 5
    assert counter.lost == {"s": (Loss(0, 1, 3),)}


def test_offsets_that_are_skipped_stand_in_sequence_and_batches_that_cannot_be_used_are_refused() -> None:
    counter = start({})
    records = [
        Record(0, *wire(Reports(0, (Row(1),)))),
        Skipped(1, 1, Why.MARKER),
        Skipped(2, 5, Why.TOO_LARGE),
        Skipped(6, 6, Why.UNDECODABLE),
        Record(7, *wire(Reports(0, (Row(2),)))),
    ]
    assert sum(changes.counted for changes in counter.apply_all(records)) == 2
    assert counter.next_offset == 8
    assert counter.rejects[""] == Counter({Reason.TOO_LARGE.value: 4, Reason.UNDECODABLE.value: 1})
    letters = outputs(counter.flush(), "deadletters")
    assert [(letter.key, letter.value) for letter in letters] == [(b"0/2/too-large", b""), (b"0/6/undecodable", b"")]
    assert counter.apply_all(records) == [], "read again, they change nothing"


def test_what_expired_before_it_was_counted_is_lost_once_in_the_periods_that_were_open_until_the_next_clock() -> None:
    """A clock record may be among what is lost: so reports of later periods may be, too."""
    store: Store = {}
    read(store, Reports(1, (Row(1),)), Tick(0))
    counter = start(store, log_start=5)
    assert counter.missing.endswith("of these periods: s 1, s 2")
    assert counter.lost == {"s": (Loss(1, 2, 3 * MAX_ROWS),)}
    keep(store, flush := counter.flush())
    assert [one.lost for one in partials(flush, Progress)] == [(Loss(1, 2, 3 * MAX_ROWS),)]
    counter = start(store, log_start=5)
    assert (counter.missing, counter.next_offset) == ("", 5), "it is said once"
    counter.apply(Record(5, *wire(Tick(2))))
    assert counter.lost == {"s": (Loss(1, 4, 3 * MAX_ROWS),)}
    counter.apply(Record(6, *wire(Tick(6))))
    assert counter.lost == {"s": (Loss(1, 4, 3 * MAX_ROWS),)}, "windows reach so far"
    counter.apply(Record(7, *wire(Tick(7))))
    assert counter.lost == {"s": ()}


def test_of_what_was_counted_before_it_expired_exactly_the_rows_are_lost_that_the_state_lacks() -> None:
    """260 reports, each in a record of its own, are no 260 frames of the largest size in each of three periods."""
    store: Store = {}
    read(store, Reports(0, tuple(map(Row, range(1, 41)))))
    kept = store[state_key("count", 0, "counter", "s", 0)]
    read(store, *(Reports(0, (Row(token),)) for token in range(41, 301)), Reports(0, (Row(300),)))
    store[state_key("count", 0, "counter", "s", 0)] = kept  # as if it had not been written since: a counter may wait
    counter = start(store, log_start=262)
    assert counter.missing.endswith("of these periods: s 0")
    assert counter.lost == {"s": (Loss(0, 0, 260),)}
    keep(store, counter.flush(everything=True))
    assert start(store, log_start=262).lost == {"s": (Loss(0, 0, 260),)}, "it is said once"


def test_a_record_that_nobody_has_read_has_at_most_as_many_reports_as_fit_in_a_frame_of_its_survey() -> None:
    wide = Scheme(parse_survey(WIDE))
    counter = PartitionCounter(0, 1, {"wide": wide}.get, KEY, log_start=2, surveys=["wide"])
    (loss,) = counter.lost["wide"]
    assert loss.reports == 2 * (MAX_RECORD_BYTES // (8 + 2 + 1000 // 8))
    rows = loss.reports // 2 + 1
    tokens, gaps = np.arange(1, rows + 1, dtype=np.uint64), np.ones(rows, dtype=np.uint16)
    frame = Frame("wide", wide.fingerprint, 0, tokens, gaps, {"page": np.zeros((rows, 125), dtype=np.uint8)})
    with pytest.raises(WireError, match="send fewer rows"):
        encode_frame(frame, wide)


EVENTS: list[Event] = [
    Reports(0, (Row(1), Row(2))),
    Reports(1, (Row(1),)),
    Reports(0, (Row(3), Row(2))),
    Reports(1, (Row(1), Row(4))),
]
LOG = log_of(EVENTS)
COUNTER, TOKENS = state_key("count", 0, "counter", "s", 0), state_key("count", 0, "tokens", "s", 0, 0)


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
    store = state_after(3, 4, log=log_of([*EVENTS[:3], Tick(0)]))
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
    assert {part.period: part.counts["colour"].total for part in partials(sent, Part)} == EXPECTED[0]
    assert [one.rejects for one in partials(sent, Progress)] == [EXPECTED[1]]


def test_a_counter_that_waited_in_memory_is_counted_again_from_its_record_and_that_is_no_news() -> None:
    store: Store = {}
    worker = PartitionCounter(0, 1, SURVEYS.get, KEY, saving=Saving(repaid=0))
    for record in LOG[:3]:
        worker.apply(record)
        keep(store, worker.flush(provisional=False))
    assert (worker.next_offset, start(store).next_offset) == (3, 1)
    again = start(store)
    assert [changes.counted for changes in again.apply_all(LOG[1:])] == [0, 0, 1], "only the last one is new"
    assert in_full(again) == EXPECTED
    keep(store, worker.flush(everything=True))
    assert start(store).next_offset == 3, "a worker that leaves writes everything"


def test_a_gap_that_is_accepted_is_given_up_to_the_end_of_the_log_in_offsets_of_the_state() -> None:
    mark = Mark("first", epoch=4, shift=20, floor=20, gaps_before=0, acceptances=1)
    gap = LogFault(FaultKind.GAP, "records from offset 30 to 39 are missing", 40)
    accepted = Acceptance.of(mark, 50, gap, LogView("first", 0, 100), lost=3)
    assert accepted.lost == 3
    assert accepted.mark == Mark("first", epoch=4, shift=20, floor=20, gaps_before=120, acceptances=2)
