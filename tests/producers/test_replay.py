"""A replay reports what a careful person would compute from the file, also if it was stopped, died, or is over."""

import json
import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import redis

from producers.events.quality import Fault
from protocols.errors import ReplayError, Stopped
from tests.helpers.sinks import KeepingSink, rows_by_token
from tests.producers.events import (
    AREAS,
    EVENTS,
    OPTIONS,
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
from tests.producers.populations import CLOCK_KEY


def test_a_shuffled_dirty_file_gives_what_a_careful_computation_gives(replay: MakeReplay, tmp_path: Path) -> None:
    events = history()
    rng = random.Random(3)
    rows = [event.row() for event in nearly_sorted(events, timedelta(hours=2))]
    for row in rng.sample(rows, 30):  # the same event twice, near its first
        rows.insert(rows.index(row) + 1, row)
    nobody = "+33999999999"
    dirt = [
        *[[nobody, at, "north", "5"] for at in ("", "yesterday", "2026-02-30T00:00:00Z", "2025-12-31T23:59:59Z")],
        [nobody, "2999-01-01T00:00:00Z", "north", "5"],
        [nobody, (START + timedelta(hours=30)).isoformat(), "atlantis", "500"],
        ["", START.isoformat(), "north", "5"],
        [nobody, START.isoformat(), "north"],
        [],
    ]
    for row in dirt:
        rows.insert(rng.randrange(len(rows)), row)
    sink = KeepingSink()
    # nobody's only event with a time must not be late, or it would be counted as such
    summary = replay(write(tmp_path / EVENTS, rows), sink, replace(OPTIONS, tolerance=timedelta(days=9))).run()
    found = reported(sink, survey(), {nobody, *(e.person for e in events)})
    assert found.pop((5, nobody)) and found == computed(events), "who has no listed value reports, too"
    counts = {fault: found.count for fault, found in summary.faults.items() if found.count}
    assert counts == {
        Fault.MALFORMED: 1,
        Fault.NOBODY: 2,
        Fault.BAD_TIME: 4,
        Fault.OUTSIDE: 1,
        Fault.UNKNOWN_VALUE: 1,  # 500 minutes are the most that there are
        Fault.DUPLICATE: 30,
    }
    assert summary.rows == len(rows)
    assert summary.people == len({e.person for e in events} | {nobody})
    assert (summary.reports, summary.unlisted) == (len(computed(events)) + 1, 1)


def test_the_first_lines_of_each_fault_are_named(replay: MakeReplay, tmp_path: Path) -> None:
    good = [Event("a", START + timedelta(minutes=i), "north", 1).row() for i in range(4)]
    rows = [
        good[0],
        good[1],
        ["b", "never", "north", "1"],
        [],
        good[1],
        ["c", *good[2][1:2], "limbo", "1"],
        ["d"],
        good[3],
    ]
    faults = replay(write(tmp_path / EVENTS, rows), KeepingSink()).run().faults
    lines = {line: fault for fault, found in faults.items() for _, line in found.places}
    assert lines == {4: Fault.BAD_TIME, 5: Fault.NOBODY, 6: Fault.DUPLICATE, 7: Fault.UNKNOWN_VALUE, 8: Fault.MALFORMED}


def test_an_event_beyond_the_tolerance_is_counted_and_left_out(replay: MakeReplay, tmp_path: Path) -> None:
    """Its period ends at 6:00; what was read up to 7:59 does not end it, 8:00 does."""
    on_time = [Event("a", START, "north", 1), Event("b", START + timedelta(hours=7, minutes=59), "east", 1)]
    in_time = Event("c", START + timedelta(hours=5), "south", 1)
    closing = Event("b", START + timedelta(hours=8), "east", 1)
    late = Event("d", START + timedelta(hours=5, minutes=59), "west", 1)
    events = [*on_time, in_time, closing, late]
    sink = KeepingSink()
    summary = replay(write(tmp_path / EVENTS, [e.row() for e in events]), sink).run()
    assert [line for _, line in summary.faults[Fault.LATE].places] == [6]
    assert reported(sink, survey(), set("abcd")) == computed([*on_time, in_time, closing])


def test_files_of_all_formats_give_the_same_reports_as_csv(replay: MakeReplay, redis_url: str, tmp_path: Path) -> None:
    events = nearly_sorted(history(10, 1), timedelta(hours=2))
    plain = write(tmp_path / EVENTS, [e.row() for e in events])
    table = pa.table(
        {
            "minutes": pa.array([e.minutes for e in events], pa.int8()),
            "cell": pa.array([e.area for e in events]).dictionary_encode(),
            "at": pa.array([e.at for e in events], pa.timestamp("ms", "Europe/Paris")),
            "msisdn": [e.person for e in events],
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "events.parquet", row_group_size=50)
    with pa.ipc.new_file(str(tmp_path / "events.arrow"), table.schema) as out:
        out.write_table(table, max_chunksize=50)
    lines = "".join(json.dumps({**row, "at": row["at"].isoformat()}) + "\n\n" for row in table.to_pylist()).encode()
    for name, content in (("events.csv.gz", plain.read_bytes()), ("events.jsonl.gz", lines)):
        with pa.CompressedOutputStream(str(tmp_path / name), "gzip") as out:
            out.write(content)
    rows = []
    for name in ("events.csv", "events.parquet", "events.arrow", "events.csv.gz", "events.jsonl.gz"):
        sink = KeepingSink()
        replay(tmp_path / name, sink).run()
        rows.append(rows_by_token(sink.frames(survey())))
        with redis.Redis.from_url(redis_url) as client:
            client.flushall()
    assert all(others == rows[0] for others in rows)
    assert len(rows[0]) == len(computed(events))


@pytest.mark.parametrize("other", [None, "south"])
def test_who_has_no_listed_value_reports_like_everybody_else(
    replay: MakeReplay, tmp_path: Path, other: str | None
) -> None:
    """Failure would look like: whoever counts reports knows who has none of the values.

    The memo is sent. `other` stands for such a value, and without it one drawn for life: evenly over people, and
    the same on all days and for all values that are not listed.
    """
    scheme = survey(other=other)
    rows = [
        [f"p{person}", (START + timedelta(days=day)).isoformat(), said, "1"]
        for day, said in enumerate(("atlantis", "", "lemuria"))
        for person in range(200)
    ]
    sink = KeepingSink()
    summary = replay(write(tmp_path / EVENTS, rows), sink, scheme=scheme).run()
    assert (summary.reports, summary.unlisted) == (600, 600)
    seen = reported(sink, scheme, {f"p{person}" for person in range(200)})
    by_person = [{seen[4 * day, f"p{person}"]["area"] for day in range(3)} for person in range(200)]
    assert all(len(values) == 1 for values in by_person)
    counts = Counter(value for values in by_person for value in values)
    if other is None:
        assert len(counts) == len(AREAS) and min(counts.values()) > 25
    else:
        assert set(counts) == {AREAS.index(other)}


def test_periods_are_closed_in_order_and_all_at_the_end(replay: MakeReplay, tmp_path: Path) -> None:
    """Nothing happens in periods 1 to 5: they are closed with the first report that follows."""
    events = [Event("a", START, "north", 1), Event("a", START + timedelta(hours=36), "east", 1)]
    scheme = survey(extra="clock: source, grace: 6h")
    sink = KeepingSink(partitions=1)
    replay(write(tmp_path / EVENTS, [e.row() for e in events]), sink, scheme=scheme).run()
    story: list[str] = []
    for record in sink.records:
        one = KeepingSink(1, records=[record])
        story += [f"report {frame.period}" for frame in one.frames(scheme)]
        story += [f"close {clock.through}" for _, clock in one.clocks(CLOCK_KEY)]
    assert story == ["report 0", "close 4", "report 6", "close 5", "close 6"]


def test_an_empty_file_is_an_empty_summary(replay: MakeReplay, tmp_path: Path) -> None:
    sink = KeepingSink()
    summary = replay(write(tmp_path / EVENTS, []), sink).run()
    assert (summary.rows, summary.people, summary.periods, summary.reports, sink.records) == (0, 0, 0, 0, [])


def test_replaying_again_sends_nothing_and_says_the_same(replay: MakeReplay, tmp_path: Path) -> None:
    path = write(tmp_path / EVENTS, [e.row() for e in history(10, 1)])
    sink, again = KeepingSink(), KeepingSink()
    first, second = replay(path, sink).run(), replay(path, again).run()
    assert again.frames(survey()) == []
    assert second == first
    kept = [entry.suffix for entry in (tmp_path / "workspace").rglob("*") if entry.is_file()]
    assert kept == [".json"], "the workspace keeps no events"


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
