"""Counting one partition, rule by rule; test_exactness tests all rules together."""

import numpy as np
import pytest

from protocols.errors import LogError
from protocols.wire import CLOCK, FRAME, REPORT, Clock, Frame, Reason, decode_frame, encode_clock, encode_frame
from stream_app.counting.judging import Record
from stream_app.counting.partials import Part, Progress
from stream_app.counting.partition_counter import Changes, PartitionCounter
from stream_app.counting.tables.token_table import TokenTable
from tests.helpers.crowd import scheme_of
from tests.helpers.frames import encode_report
from tests.protocols.test_wire_hostile import mutated
from tests.stream_app.crashes import keep, outputs, partials
from tests.stream_app.worlds import KEY, SCHEME, SURVEYS, Event, Garbage, Reports, Row, Tick, log_of, wire


def counter(**options: bool) -> PartitionCounter:
    return PartitionCounter(0, 1, SURVEYS.get, KEY, **options)


def counted(*events: Event) -> PartitionCounter:
    worker = counter()
    for record in log_of(events):
        worker.apply(record)
    return worker


def test_a_worker_that_does_not_check_tokens_counts_repeats() -> None:
    worker = counter(check_tokens=False)
    changes = [worker.apply(record).counted for record in log_of([Reports(0, (Row(5),)), Reports(0, (Row(5),))])]
    assert changes == [1, 1]


GOOD = Reports(0, (Row(1), Row(5)))


def test_good_frames_for_one_period_are_counted_together_up_to_the_next_clock() -> None:
    log = log_of([GOOD, Reports(1, (Row(5),)), GOOD, Tick(0), GOOD, Reports(1, (Row(6),))])
    assert counter().apply_all(log) == [
        Changes("s", 2, {Reason.REPEAT: 2}),
        Changes("s", 1),
        Changes("s", closed_through=0),
        Changes("s", refused={Reason.LATE: 2}),
        Changes("s", 1),
    ]


def test_a_missing_offset_is_an_error_that_says_what_the_topic_must_be() -> None:
    log = log_of([GOOD, GOOD, GOOD])
    del log[1]
    worker = counter()
    assert worker.apply_all(log) == [Changes("s", 2)], "a batch ends at the gap"
    with pytest.raises(LogError, match=r"from offset 0 to 2.*no compaction"):
        worker.apply_all(log)
    assert worker.next_offset == 1


@pytest.mark.parametrize("event", [GOOD, Tick(0)], ids=["a frame", "a clock record"])
def test_a_survey_is_unknown_only_where_that_is_certain(event: Event) -> None:
    log = [Record(offset, *wire(Garbage(b"?") if offset == 0 else event)) for offset in range(3)]
    worker = PartitionCounter(0, 1, lambda _: None, KEY)
    assert [set(one.refused) for one in worker.apply_all(log, certain=False)] == [{Reason.UNDECODABLE}]
    assert worker.next_offset == 1
    assert [set(one.refused) for one in worker.apply_all(log[1:])] == [{Reason.UNKNOWN_SURVEY}] * 2
    letters = outputs(worker.flush(), "deadletters")
    assert [letter.key for letter in letters[1:]] == [b"0/1/unknown-survey", b"0/2/unknown-survey"]


def test_every_clock_record_is_acknowledged_also_a_repeat_and_where_nothing_was_counted() -> None:
    worker = counted(Tick(3), Tick(3), Tick(1))
    assert partials(worker.flush(), Progress) == [Progress("s", 0, offset, 3, {}, {}) for offset in range(3)]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (Record(0, "text/plain", b"hello"), Reason.UNDECODABLE),
        (Record(0, None, b"hello"), Reason.UNDECODABLE),
        (Record(0, FRAME, None), Reason.UNDECODABLE),
        (Record(0, REPORT, b"[" * 50_000), Reason.UNDECODABLE),
        (Record(0, FRAME, bytes(5 << 20)), Reason.TOO_LARGE),
        (Record(0, CLOCK, encode_clock(Clock("other", 0), KEY)), Reason.UNKNOWN_SURVEY),
        (Record(0, CLOCK, encode_clock(Clock("s", (1 << 32) - 1), KEY)), Reason.UNDECODABLE),
        (Record(0, "x" * 100_000, b""), Reason.UNDECODABLE),
        (Record(0, CLOCK, encode_clock(Clock("s", 0), b"a sender's own key")), Reason.BAD_MAC),
    ],
)
def test_a_record_that_cannot_count_is_counted_by_reason_and_kept(record: Record, reason: Reason) -> None:
    worker = counter()
    assert worker.apply(record).refused == {reason: 1}
    assert list(worker.rejects.values()) == [{reason: 1}]
    assert worker.closed_through("s") == -1
    (letter,) = outputs(worker.flush(), "deadletters")
    assert dict(letter.headers)["reason"] == reason.value.encode()
    assert (record.value or b"").startswith(letter.value)
    assert sum(len(value) for _, value in letter.headers) < 1_000


def test_bad_rows_become_a_frame_of_their_own_for_each_reason() -> None:
    rows = (Row(1), Row(2, gap=9), Row(3, colour=5), Row(4, gap=0), Row(7, pages=1 << 12))
    letters = outputs(counted(Reports(0, rows)).flush(), "deadletters")
    refused = {}
    for letter in letters:
        frame = decode_frame(letter.value, SURVEYS.get)
        assert isinstance(frame, Frame)
        refused[dict(letter.headers)["reason"]] = frame.tokens.tolist()
    assert refused == {b"bad-gap": [2, 4], b"bad-value": [3, 7]}


def test_more_bad_rows_than_surely_fit_in_a_record_become_several_frames() -> None:
    scheme = scheme_of("{name: a, range: {last: 3999}, mechanism: l-osue}")
    tokens = np.arange(1, 8_001, dtype=np.uint64)
    gaps, bits = np.full(len(tokens), 9, dtype=np.uint16), np.zeros((len(tokens), 500), dtype=np.uint8)
    value = encode_frame(Frame("s", scheme.fingerprint, 0, tokens, gaps, {"a": bits}), scheme)
    worker = PartitionCounter(0, 1, {"s": scheme}.get, KEY)
    assert worker.apply(Record(0, FRAME, value)).refused == {Reason.BAD_GAP: 8_000}
    letters = outputs(worker.flush(), "deadletters")
    frames = [decode_frame(letter.value, {"s": scheme}.get) for letter in letters]
    assert len({letter.key for letter in letters}) == len(letters) > 1
    assert [token for frame in frames if isinstance(frame, Frame) for token in frame.tokens] == tokens.tolist()


def test_single_reports_among_frames_are_counted_in_their_order() -> None:
    """Of equal tokens the first counts, whatever it came in."""
    rows = [Row(5, 2, 1, 6), Row(6, 1, 0, 1), Row(5, 1, 0, 1), Row(7, 2, 0, 6), Row(7, 1, 1, 6)]
    log = [Record(place, FRAME, wire(Reports(0, (row,)))[1]) for place, row in enumerate(rows)]
    for place in (0, 1, 4):
        frame = decode_frame(log[place].value or b"", SURVEYS.get)
        assert isinstance(frame, Frame)
        log[place] = Record(place, REPORT, encode_report(frame, SCHEME))
    together, one_by_one = counter(), counter()
    assert together.apply_all(log) == [Changes("s", 3, {Reason.REPEAT: 2})]
    for record in log:
        one_by_one.apply(record)
    assert together.flush() == one_by_one.flush()


def test_where_a_report_answers_one_attribute_each_attribute_has_its_own_n() -> None:
    scheme = scheme_of("{name: a, values: [x, y]}, {name: b, values: [x, y]}")
    log = []
    for offset, (name, tokens) in enumerate([("a", [1, 2]), ("a", [3]), ("b", [4]), ("a", [4, 5])]):
        column = np.zeros(len(tokens), dtype=np.uint8)
        gaps = np.ones(len(tokens), dtype=np.uint16)
        frame = Frame("s", scheme.fingerprint, 0, np.array(tokens, dtype=np.uint64), gaps, {name: column})
        log.append(Record(offset, FRAME, encode_frame(frame, scheme)))
    worker = PartitionCounter(0, 1, {"s": scheme}.get, KEY)
    assert [changes.counted for changes in worker.apply_all(log)] == [3, 1, 1], "of equal tokens the first counts"
    (part,) = partials(worker.flush(), Part)
    assert {name: statistics.total for name, statistics in part.counts.items()} == {"a": 4, "b": 1}


def test_memory_and_state_stay_flat_over_60_periods() -> None:
    worker, store, offset = counter(), dict[bytes, bytes](), 0
    sizes = []
    for period in range(60):
        rows = tuple(Row(token, gap=1 + token % 3) for token in range(1, 50))
        for event in (Reports(period, rows), Reports(period + 1, (Row(9, gap=2),)), Tick(period)):
            worker.apply(Record(offset, *wire(event)))
            offset += 1
        keep(store, worker.flush())
        sizes.append(sum(map(len, store.values())))
    assert len(worker.open_periods) == 1
    assert max(sizes) <= max(sizes[:3]) + 64, "the state of closed periods must go"


def test_hostile_bytes_are_all_counted_and_kept() -> None:
    rng = np.random.default_rng(11)
    kinds = [FRAME, REPORT, CLOCK, "", None]
    good = [wire(Reports(0, (Row(3), Row(4)))), wire(Tick(-1)), wire(Garbage(b"{}"))]
    worker, letters = counter(), 0
    for offset in range(3_000):
        content_type, value = good[offset % len(good)]
        if offset % 5 == 0:
            content_type = kinds[rng.integers(len(kinds))]
        changes = worker.apply(Record(offset, content_type, *mutated(value, 1, seed=offset)))
        letters += len(changes.refused.keys() - {Reason.REPEAT})
        assert changes.counted or changes.refused or changes.survey, "neither counted nor refused"
    assert len(outputs(worker.flush(), "deadletters")) == letters > 2_000


@pytest.mark.parametrize("shift", [0, 3, 20, 40])
def test_chosen_tokens_do_not_pile_up(shift: int) -> None:
    """Consecutive tokens, or tokens with equal low bits, would fill one long run of slots if they were not hashed."""
    held = TokenTable()
    held.insert(np.arange(1, 50_001, dtype=np.uint64) << np.uint64(shift))
    empty = np.flatnonzero(held._slots == 0)
    assert np.diff(empty).max() < 2_500  # up to 650 by chance in 160 tries, 50,000 if they did
