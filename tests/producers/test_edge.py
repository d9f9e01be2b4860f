"""The edge over a directory: each event counts once, whatever dies when; what is open is sealed, and then erased."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lab.seeded_keyrings import seeded_keyring
from memo_store.survey_memos import SurveyMemos
from producers.edge import DirectoryEdge, EdgeState, parse_edge
from producers.events import Options, Rule
from producers.events.interpreting import People
from producers.events.spool import Spool
from producers.files import csv_events
from protocols.errors import HearsayError, ReplayError
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from tests.helpers.dying import EVERY, Killed, Steps
from tests.helpers.sinks import KeepingSink, rows_by_token
from tests.helpers.surveys import of_size, scheme_with
from tests.producers.events import OPTIONS, START, Event, computed, history, nearly_sorted, reported, survey, write
from tests.producers.populations import CLOCK_KEY, KEYRING

END = START + timedelta(days=30)


class World:
    """A directory of events, and edges over it, each as a new process would be."""

    def __init__(self, root: Path, open_memos: Callable[[Respondent], SurveyMemos], keyring: Keyring = KEYRING) -> None:
        self.dropped, self.workspace = root / "dropped", root / "edge"
        self._open, self._keyring = open_memos, keyring
        self.dropped.mkdir(parents=True)
        self.sink = KeepingSink()

    def drop(self, name: str, events: list[Event]) -> Path:
        return write(self.dropped / name, [event.row() for event in events])

    def edge(self, options: Options = OPTIONS, keyring: Keyring | None = None) -> DirectoryEdge:
        memos = self._open(Respondent(survey(), keyring or self._keyring))
        return DirectoryEdge(memos, self.sink, CLOCK_KEY, options, self.dropped, self.workspace)

    def once(self, end: bool = True) -> EdgeState:
        with closing(self.edge()) as edge:
            edge.take()
            if end:
                edge.end(END)
            return edge.state


@pytest.fixture
def world(open_memos: Callable[[Respondent], SurveyMemos], tmp_path: Path) -> World:
    return World(tmp_path, open_memos)


def test_files_that_come_one_after_the_other_become_what_one_file_becomes(world: World) -> None:
    events = nearly_sorted(history(), timedelta(hours=2))
    with closing(world.edge()) as edge:
        for i in range(4):
            world.drop(f"{i}.csv", events[i * 240 : (i + 1) * 240])
            assert edge.take() == 1
        assert edge.take() == 0 and edge.state.held, "what has not ended is open"
        edge.end(END)
        assert edge.state.held == {} and edge.state.totals.reports == len(computed(events))
    assert reported(world.sink, survey(), {event.person for event in events}) == computed(events)


@pytest.mark.parametrize("every", EVERY)
def test_a_kill_at_any_moment_loses_no_event_and_doubles_none(
    open_memos: Callable[[Respondent], SurveyMemos], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    """Failure would look like: a report less, another report of the same person and period, or an event that counts
    twice for `most`."""
    monkeypatch.setattr(csv_events, "BLOCK_BYTES", 1 << 10)  # several batches in a file
    events = nearly_sorted(history(6, 1, seed=5), timedelta(hours=2))
    written = ((Spool, "_append"), (Spool, "sync"), (Spool, "drop"), (EdgeState, "write"), (KeepingSink, "flush"))
    steps = Steps(monkeypatch, *written)
    expected = sorted(period for period, _ in computed(events))
    last, died = 0, True
    while died:
        last, died = last + every, False
        world = World(tmp_path / str(last), open_memos, seeded_keyring(100 + last))  # nobody has reported yet
        world.drop("a.csv", events[:30])
        world.drop("b.csv", events[30:])
        steps.begin(last)
        try:
            world.once()
        except Killed:
            died = True
        steps.begin(0)
        state = world.once()
        assert (state.rows, state.totals.duplicates) == (len(events), 0), f"died before step {last}"
        rows = rows_by_token(world.sink.frames(survey()))
        assert sorted(period for period, _ in rows) == expected, f"died before step {last}"
    assert last > 25


def test_what_is_open_is_sealed_and_erased_when_it_is_sent(world: World) -> None:
    events = history(20, 2)
    world.drop("a.csv", events)
    state = world.once(end=False)
    assert state.held
    devices = People(KEYRING).devices(pa.array([event.person for event in events]))
    files = [path for path in world.workspace.rglob("*") if path.is_file()]
    content = b"".join(path.read_bytes() for path in files)
    for event, device in zip(events, devices, strict=True):
        moment = (int(event.at.timestamp()) * 1_000_000).to_bytes(8, "little")
        assert not any(mark in content for mark in (device.tobytes(), event.person.encode(), moment))
    assert all(path.stat().st_mode & 0o077 == 0 for path in files)
    world.once()
    assert not list((world.workspace / "open").iterdir())


def test_late_events_are_counted_by_period_and_left_out(world: World) -> None:
    in_time = [Event("a", START, "north", 1), Event("b", START + timedelta(hours=8), "east", 1)]
    late = [Event("c", START + timedelta(hours=5), "south", 1)]
    world.drop("a.csv", in_time)
    world.once(end=False)
    world.drop("b.csv", late)
    state = world.once()
    assert state.late == {0: 1} and state.faults["LATE"] == 1
    assert reported(world.sink, survey(), {"a", "b", "c"}) == computed(in_time)
    world.drop("c.csv", [Event("d", START + timedelta(days=2), "south", 1)])
    assert world.once().late == {0: 1, 8: 1}, "after the end that was declared"


def removed(world: World) -> None:
    with closing(world.edge()) as edge:
        edge._commit(reading="gone.csv", batches=1)


OTHER_RULES, ANOTHER_KEY = {"options": replace(OPTIONS, rules={"area": Rule.LAST})}, {"keyring": seeded_keyring(99)}


@pytest.mark.parametrize(
    ("happened", "changes", "complaint"),
    [
        (lambda world: world.drop("a.csv", history(3, 1)), {}, "has changed since it was read"),
        (removed, {}, "was read in part, and is gone"),
        (lambda _: None, OTHER_RULES, "not those with which the open periods were begun"),
        (lambda _: None, ANOTHER_KEY, "written under another key"),
    ],
)
def test_what_would_make_other_reports_is_refused(
    world: World, happened: Callable[[World], object], changes: dict[str, Any], complaint: str
) -> None:
    world.drop("a.csv", history(5, 1))
    world.once(end=False)
    happened(world)
    with pytest.raises(ReplayError, match=complaint), closing(world.edge(**changes)) as edge:
        edge.take()


def test_a_second_process_is_refused(world: World) -> None:
    with closing(world.edge()), pytest.raises(ReplayError, match="another process is the edge"):
        world.edge()


FILES = "{survey: s, events: {directory: in}, columns: {person: a, time: b}, lateness: 2h, data: d}"
TOPIC = "{survey: s, events: {topic: calls}, columns: {person: a, time: b}, lateness: 2h, idle: 1h, data: d}"


@pytest.mark.parametrize(
    ("good", "right", "wrong", "complaint"),
    [
        (FILES, FILES, "[", "not YAML"),
        (FILES, FILES, "{}", "survey: missing"),
        (FILES, "directory", "topik", r"events\.topik: unknown key; did you mean topic"),
        (FILES, ", time: b", "", "columns: time is missing"),
        (FILES, "2h", "soon", "lateness = soon: not a duration"),
        (FILES, "data: d", "data: d, zone: Mars", "zone = Mars: there is no such time zone"),
        (FILES, "data: d", "data: d, choose: {area: best}", "choose.area = best: should be 'first', 'last'"),
        (FILES, "time: b", "time: b, town: c", "no attribute 'town'"),
        (FILES, "data: d", "data: d, choose: {area: transition}", "is not chosen as a transition"),
        (TOPIC, ", idle: 1h", "", "idle is needed with a topic"),
        (TOPIC, "topic: calls", "directory: in", "idle is needed with a topic, and only there"),
        (TOPIC, "topic: calls", "topic: calls, directory: in", "write a directory or a topic"),
        (TOPIC, "topic: calls", "topic: calls, format: csv", "fields names the columns of lines"),
        (TOPIC, "data: d", "data: d, repeated: order", "a topic has no order of rows"),
        (TOPIC, "time: b", "time: b, home: [lat, lon]", "positions are read from a directory"),
    ],
)
def test_what_is_wrong_in_edge_yaml_is_named(good: str, right: str, wrong: str, complaint: str) -> None:
    assert parse_edge(good, "edge.yaml").data
    with pytest.raises(HearsayError, match=complaint):
        parse_edge(good.replace(right, wrong), "edge.yaml").options(survey().survey)


def test_a_zone_of_its_own_serves_where_the_surveys_zone_is_not_known() -> None:
    newer = {"name": "Europe/Kyiw", "offsets": [[1767135600, 3600]], "until": 1900000000}
    asked = scheme_with(of_size(2), eps=1, start="2026-01-01T00:00:00+01:00", time_zone=newer).survey
    assert parse_edge(FILES.replace("data: d", "data: d, zone: Europe/Paris"), "edge.yaml").options(asked).columns
