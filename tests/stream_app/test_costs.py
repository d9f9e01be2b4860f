"""What counting writes, counted without a clock: bytes and records for each report, and flushes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from protocols.randomness import Keyring
from protocols.wire import CLOCK, FRAME, Clock, Frame, encode_clock, encode_frame
from stream_app.counting.judging import Record
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.log.flushes import PARTIALS, Flush, Output, state_key
from stream_app.merging.merger import Merger
from tests.helpers.surveys import of_size, scheme_with
from tests.stream_app.worlds import KEY

VALUES, HORIZON = 2_000, 12
SCHEME = scheme_with(of_size(VALUES, mechanism="l-grr"), id="wide", eps_inf=4, eps_1=2, horizon=HORIZON, clock="source")
OTHERS = {name: scheme_with(of_size(9), id=name, eps_inf=4, eps_1=2, clock="source") for name in ("x", "y")}
SURVEYS = {"wide": SCHEME, **OTHERS}
COUNTER_BYTES = HORIZON * (10 + 8 * VALUES)


@dataclass
class Costs:
    """One partition and its merge, which flush every second, with provisional results every third time."""

    records: Counter[str] = field(default_factory=Counter)
    sizes: Counter[str] = field(default_factory=Counter)
    came_in: int = 0

    def __post_init__(self) -> None:
        self.counter = PartitionCounter(0, 1, SURVEYS.get, KEY)
        self.merger = Merger(0, 1, SURVEYS.get, Keyring(bytes(16)))
        self._flushes = 0

    def read(self, content_type: str, value: bytes) -> None:
        self.came_in += len(value)
        self.counter.apply(Record(self.counter.next_offset, content_type, value))

    def flush(self) -> None:
        self._flushes += 1
        provisional = self._flushes % 3 == 0
        for item in self._tally(self.counter.flush(provisional)):
            if item.topic == PARTIALS:
                self.merger.apply(self.merger.next_offset, item.value)
        list(self._tally(self.merger.flush(provisional)))

    def _tally(self, flush: Flush) -> Iterator[Output]:
        for item in flush:
            kind = item.topic if isinstance(item, Output) else "/".join(item.key.decode().split("/")[0:3:2])
            self.records[kind] += 1
            self.sizes[kind] += len(item.value or b"")
            if isinstance(item, Output):
                yield item


def frame(survey: str, period: int, first: int, rows: int) -> bytes:
    scheme = SURVEYS[survey]
    tokens = np.arange(first, first + rows, dtype=np.uint64)
    gaps = (tokens % scheme.survey.horizon + 1).astype(np.uint16)
    answers = {"a": (tokens % scheme.questions[0].k).astype(scheme.questions[0].mechanism.encoding.answer.dtype)}
    return encode_frame(Frame(survey, scheme.fingerprint, period, tokens, gaps, answers), scheme)


def test_little_that_comes_in_for_a_large_counter_is_not_written_a_thousandfold() -> None:
    """Sixty reports a second for a counter of 192 kB: it would be written every second, and its counts every third."""
    costs, seconds = Costs(), 300
    for second in range(seconds):
        costs.read(FRAME, frame("wide", 0, 1 + 60 * second, 60))
        costs.flush()
    every_second = seconds * COUNTER_BYTES
    written = sum(costs.sizes.values())
    assert every_second > 90 * costs.came_in, "else this shows nothing"
    constant = 2 + 2 * np.log2(60 * seconds)  # the first record, and counts that have doubled, with their merge
    assert written < 20 * costs.came_in + constant * COUNTER_BYTES
    assert costs.sizes["count/counter"] < 5 * costs.came_in + COUNTER_BYTES
    assert costs.records["count/position"] == seconds, "the position is written every second"


def test_a_clock_record_writes_only_what_its_own_survey_changed() -> None:
    counter = PartitionCounter(0, 1, SURVEYS.get, KEY)
    values = [(FRAME, frame(survey, 0, 1, 60)) for survey in SURVEYS]
    later = [(FRAME, frame("wide", 0, 100, 3)), (FRAME, frame("x", 0, 100, 3))]
    for content_type, value in values:
        counter.apply(Record(counter.next_offset, content_type, value))
    counter.flush()
    for content_type, value in [*later, (CLOCK, encode_clock(Clock("x", 0), KEY))]:
        counter.apply(Record(counter.next_offset, content_type, value))
    flush = counter.flush(provisional=False)
    assert [item.key for item in flush if not isinstance(item, Output) and item.value] == [
        state_key("count", 0, "position")
    ]
    assert [item.key for item in flush if isinstance(item, Output)] == [b"x", b"x"], "its part and its progress"
    assert counter.open_periods["wide", 0].unsaved


def test_the_records_written_grow_with_flushes_and_not_with_reports() -> None:
    seconds = 30
    for rows in (10, 1000):
        costs = Costs()
        for second in range(seconds):
            costs.read(FRAME, frame("x", 0, 1 + rows * second, rows))
            costs.flush()
        assert costs.records["count/counter"] <= seconds and costs.records["count/tokens"] <= seconds
        assert costs.records["partials"] == costs.records["merge/survey"] <= seconds // 3
        assert costs.records["open"] == 2 * costs.records["partials"], "a status, and counts of the open period"


def test_a_position_is_as_large_after_a_week_of_hours_as_after_one() -> None:
    """Failure would look like: every flush writes something of every period that was closed within the last week."""
    scheme = scheme_with(of_size(9), id="hourly", eps_inf=4, eps_1=2, period="1h", horizon=1)
    counter = PartitionCounter(0, 1, {"hourly": scheme}.get, KEY)
    sizes = []
    for hour in range(100, 270):
        counter.apply(Record(counter.next_offset, CLOCK, encode_clock(Clock("hourly", hour), KEY)))
        (position,) = [item for item in counter.flush() if item.key == state_key("count", 0, "position")]
        sizes.append(len(position.value or b""))
    assert sizes[-1] <= sizes[0] + 2 * len("169"), "offsets have more digits then"
