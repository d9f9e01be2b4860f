"""One partition of an edge over a topic: the next owner holds what the last one held, and sends what it would send."""

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from memo_store.survey_memos import SurveyMemos
from producers.edge.partition import PartitionEdge, PartitionState, csv_line, decode, next_closed
from producers.files.json_events import json_object
from producers.stopping import never
from protocols.errors import ReplayError
from protocols.respondent import Respondent
from tests.helpers.sinks import KeepingSink
from tests.producers.events import COLUMNS, OPTIONS, START, Event, computed, history, nearly_sorted, reported, survey
from tests.producers.populations import KEYRING

END = START + timedelta(days=30)
read = partial(decode, read=json_object, encoding="utf-8", where="partition 0 of calls")


@dataclass(frozen=True)
class Came:
    offset: int
    key: bytes | None
    value: bytes | None


def records(events: list[Event], first: int = 0) -> list[Came]:
    names = ("msisdn", "at", "cell", "minutes")
    return [
        Came(first + i, event.person.encode(), json.dumps(dict(zip(names, event.row(), strict=True))).encode())
        for i, event in enumerate(events)
    ]


Owner = Callable[[PartitionState], PartitionEdge]


@pytest.fixture
def sink() -> KeepingSink:
    return KeepingSink()


@pytest.fixture
def owner(open_memos: Callable[[Respondent], SurveyMemos], sink: KeepingSink, tmp_path: Path) -> Owner:
    """A new process takes the partition over."""
    numbers = iter(range(100))

    def make(state: PartitionState) -> PartitionEdge:
        memos = open_memos(Respondent(survey(), KEYRING))
        return PartitionEdge(memos, sink, OPTIONS, tmp_path / str(next(numbers)), state)

    return make


def closed(edge: PartitionEdge) -> int:
    """What the owner of partition 0 would close, if there was no other partition."""
    return next_closed(edge.state.totals.through, {0: edge.state}, 1)


def test_whoever_takes_over_sends_the_same_and_counts_nothing_twice(owner: Owner, sink: KeepingSink) -> None:
    """Failure would look like: a report less or more, a row that counts twice, or another choice than of all events."""
    events, rng = nearly_sorted(history(20, 2), timedelta(hours=2)), random.Random(6)
    log, state = records(events), PartitionState()
    while state.position < len(log):
        with closing(owner(state)) as edge:
            for _ in range(rng.randrange(1, 5)):
                edge.take(log[edge.at : edge.at + rng.randrange(1, 60)], read)
                if edge.caught_up and (through := closed(edge)) > edge.state.totals.through:
                    edge.cut(through)
                    state = edge.state
                    if rng.random() < 0.5:  # it dies: the next one sends what was cut
                        break
                    edge.send(through, never)
            state = edge.state if rng.random() < 0.7 else state  # or what was told last
    with closing(owner(state)) as edge:
        edge.take(log[edge.at :], read)
        edge.end(END)
        while edge.state.open is not None:
            edge.send(closed(edge), never)
        assert (edge.state.rows, edge.state.totals.reports) == (len(log), len(computed(events)))
        assert (edge.state.restart, edge.state.open, edge.state.late) == (len(log), None, {})
    assert reported(sink, survey(), {event.person for event in events}) == computed(events)


def test_events_after_the_cut_are_late_also_when_they_are_read_again(owner: Owner, sink: KeepingSink) -> None:
    first, second = Event("a", START, "north", 1), Event("b", START + timedelta(hours=1), "south", 1)
    log = records([first, second, second])
    with closing(owner(PartitionState())) as edge:
        edge.take(log[:1], read)
        edge.cut(0)
        cut = edge.state  # published; then it dies
    with closing(owner(cut)) as edge:
        edge.take(log, read)
        edge.send(0, never)
        assert edge.state.late == {0: 2} and Counter(edge.state.faults) == Counter(LATE=2) and edge.state.cuts == {}
    assert reported(sink, survey(), {"a", "b"}) == computed([first])


@pytest.mark.parametrize("value", [b"{", b"[1]", b"\xff", None, b'{"msisdn": {"a": 1}}', b'{"msisdn": "a"'])
def test_what_is_no_event_is_counted_and_left_out(value: bytes | None, owner: Owner) -> None:
    with closing(owner(PartitionState())) as edge:
        edge.take([Came(0, b"a", value), *records([Event("a", START, "north", 1)], 1)], read)
        assert (edge.state.rows, Counter(edge.state.faults)) == (2, Counter(MALFORMED=1))


def test_records_are_lines_too_and_are_keyed_by_person() -> None:
    line = csv_line(["msisdn", "cell", "at", "minutes"], ";")
    lines: Sequence[Came] = [Came(7, b"a", b'a;"nor;th";2026-01-01;3'), Came(8, b"a", b"a;north;2026-01-01")]
    batch = read(lines, COLUMNS, read=line)
    assert (batch.columns["cell"].to_pylist(), batch.rows.tolist(), batch.malformed) == (["nor;th"], [7], [8])
    for key in (None, b"b"):
        with pytest.raises(ReplayError, match="offset 7: the key of the record is not its msisdn"):
            read([replace(lines[0], key=key)], COLUMNS, read=line)
