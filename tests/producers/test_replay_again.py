"""A replay that was stopped, or died, goes on where it was; one that is over says the same again."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from producers.replay.quality import Fault
from protocols.errors import DeliveryError, ReplayError, Stopped
from tests.helpers.sinks import KeepingSink, rows_by_token
from tests.producers.events import (
    EVENTS,
    START,
    Event,
    MakeReplay,
    computed,
    history,
    nearly_sorted,
    reported,
    survey,
    write,
)


def test_replaying_again_sends_nothing_and_says_the_same(replay: MakeReplay, tmp_path: Path) -> None:
    path = write(tmp_path / EVENTS, [e.row() for e in history(10, 1)])
    sink, again = KeepingSink(), KeepingSink()
    first, second = replay(path, sink).run(), replay(path, again).run()
    assert again.frames(survey()) == []
    assert second == first


def test_a_stopped_replay_goes_on_where_it_was(replay: MakeReplay, tmp_path: Path) -> None:
    events = nearly_sorted(history(), timedelta(hours=2))
    path = write(tmp_path / EVENTS, [e.row() for e in [*events, *events[-3:]]])
    sink = KeepingSink()
    for enough in (2, 9, 23):
        with pytest.raises(Stopped, match="run the same command again"):
            replay(path, sink).run(stop=lambda enough=enough: len(sink.records) >= enough)
    summary = replay(path, sink).run()
    assert reported(sink, survey(), {e.person for e in events}) == computed(events)
    assert summary.reports == len(computed(events))
    assert summary.faults[Fault.DUPLICATE].count == 3


def test_a_crash_is_repaired_by_running_again_even_without_the_checkpoint(replay: MakeReplay, tmp_path: Path) -> None:
    events = history()
    path = write(tmp_path / EVENTS, [e.row() for e in events])
    sink = KeepingSink(fail_after=13)
    with pytest.raises(DeliveryError):
        replay(path, sink).run()
    for checkpoint in (tmp_path / "workspace").glob("*.json"):
        checkpoint.unlink()
    sink.fail_after = None
    replay(path, sink).run()
    rows = rows_by_token(sink.frames(survey()))
    assert len(rows) == len(computed(events))


def test_the_workspace_keeps_no_events(replay: MakeReplay, tmp_path: Path) -> None:
    path = write(tmp_path / EVENTS, [e.row() for e in history(10, 1)])
    replay(path, KeepingSink()).run()
    assert [entry.suffix for entry in (tmp_path / "workspace").rglob("*") if entry.is_file()] == [".json"]


def test_a_second_replay_of_the_same_file_at_the_same_time_is_refused(replay: MakeReplay, tmp_path: Path) -> None:
    """Failure would look like: reports made from what one of them has left of the other's events."""
    events = history(10, 1)
    path, sink = write(tmp_path / EVENTS, [e.row() for e in events]), KeepingSink()

    def start_another(*_: object) -> None:
        with pytest.raises(ReplayError, match=r"another process is replaying .*events\.csv"):
            replay(path, KeepingSink())

    replay(path, sink).run(start_another)
    assert reported(sink, survey(), {e.person for e in events}) == computed(events)
    replay(path, sink).run()


def test_people_of_another_file_whose_periods_are_closed_are_not_counted_as_reported(
    replay: MakeReplay, tmp_path: Path
) -> None:
    """The store closes a period when the next one begins: of the second file, only the last period is open."""
    here, there = (
        write(
            tmp_path / f"{person}.csv",
            [Event(person, START + timedelta(hours=6 * period), "north", 1).row() for period in range(4)],
        )
        for person in ("here", "there")
    )
    sink = KeepingSink()
    replay(here, sink).run()
    summary = replay(there, sink).run()
    assert (summary.reports, summary.repeats, summary.ineligible) == (1, 0, 3)
    assert set(reported(sink, survey(), {"here", "there"})) == {*((p, "here") for p in range(4)), (3, "there")}
