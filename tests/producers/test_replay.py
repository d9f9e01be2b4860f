"""A replay reports what a careful person would compute from the file, also if it was stopped, died, or is over."""

import json
import random
from collections import Counter
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from memo_store.sealing import Sealer
from producers.events.choosing import PICKED_BY, Chooser, Events, Rule, choose, event_type, without_duplicates
from producers.events.interpreting import Distinct
from producers.events.quality import Fault
from producers.events.sending import Totals
from producers.events.spool import Spool
from producers.files import ColumnMapping
from producers.files.csv_events import CsvEvents
from producers.files.text_files import TextFile, Utf8
from producers.files.times import BAD, moments
from producers.replay import Pace, read_checkpoint, write_checkpoint
from protocols.errors import ReplayError, Stopped
from protocols.survey_text import parse_survey
from tests.helpers.sinks import KeepingSink, rows_by_token
from tests.memo_store.surveys import empty
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
from tests.producers.populations import CLOCK_KEY, KEYRING


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
        empty(redis_url)
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


# The parts of a replay: pace, times, events on their way to the end of their period, and which of them are chosen.
SEALER = Sealer(KEYRING, "events cdr", "0")


def test_event_time_runs_as_many_times_faster_as_asked_until_a_wish_to_stop_ends_the_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    monkeypatch.setattr("time.sleep", lambda seconds: clock.append(clock.pop() + seconds))
    pace = Pace(1000)
    for moment in (5_000.0, 8_600.0, 5_000.0):  # the last is past: nobody waits for it
        pace.wait_for(moment, lambda: False)
    assert clock[0] == pytest.approx(103.6)
    pace.wait_for(1e9, lambda: clock[0] >= 104)
    assert clock[0] < 110


@pytest.mark.parametrize(
    "text",
    ["2026-13-01T00:00:00Z", "2026-02-29T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01", "2026-01-01T00:00", "x"],
)
def test_what_is_no_moment_is_bad_and_costs_only_itself(text: str) -> None:
    good = "2026-01-01T00:00:00Z"
    assert [m == BAD for m in moments(pa.array([good, text, good]), None)] == [False, True, False]


def test_typed_times_are_read_as_they_are_meant() -> None:
    seconds = 1_767_225_600
    for column in (
        pa.array([seconds], pa.timestamp("s", "Europe/Paris")),
        pa.array([seconds * 1000], pa.timestamp("ms", "UTC")),
        pa.array([seconds], pa.int64()),
    ):
        assert moments(column, None).tolist() == [seconds * 1_000_000]
    assert moments(pa.array([seconds], pa.timestamp("s")), None).tolist() == [BAD]
    assert moments(pa.array([seconds + 3600], pa.timestamp("s")), ZoneInfo("Europe/Paris")).tolist() == [
        seconds * 1_000_000
    ]


def test_the_unit_of_a_whole_number_follows_from_its_size() -> None:
    seconds = 1_767_225_600
    numbers = [seconds, seconds * 10**3, seconds * 10**6, seconds * 10**9]
    for column in (pa.array(numbers), pa.array(map(str, numbers))):
        assert moments(column, None).tolist() == [seconds * 10**6] * 4
    assert moments(pa.array([2**63 - 1, -(2**63)]), None).tolist() == [(2**63 - 1) // 1000, -(2**63) // 1000]
    assert moments(pa.array(["9" * 19]), None).tolist() == [BAD]  # more than 64 bits


def test_a_file_that_is_not_utf8_is_read_in_the_encoding_that_is_named(tmp_path: Path) -> None:
    path, columns = tmp_path / "events.csv", ColumnMapping("person", "time", {"area": "area"})
    lines = ["person,time,area,größe", "zoë,now,café,1", "a ragged row é", '"two\nlines",now,north,2', "ben,now,süd,3"]
    path.write_bytes("\n".join([*lines, ""]).encode("latin-1"))
    (as_latin,) = CsvEvents(path, encoding="latin-1").batches(columns)
    assert as_latin.columns["area"].to_pylist() == ["café", "north", "süd"]
    (as_utf8,) = CsvEvents(path).batches(columns)
    assert as_utf8.columns["area"].to_pylist() == ["caf\\xe9", "north", "s\\xfcd"]
    assert as_latin.rows.tolist() == as_utf8.rows.tolist() == [2, 4, 5] and as_utf8.malformed == [3]
    assert CsvEvents(path).lines((5, 2, 3, 4)) == {2: 2, 3: 3, 4: 4, 5: 6}  # row 4 has two lines


@pytest.mark.parametrize("size", [16, 1000, 1 << 16])
def test_pieces_of_a_file_are_whole_characters_and_no_larger_than_asked_for(tmp_path: Path, size: int) -> None:
    path = tmp_path / "events.csv"
    path.write_bytes("aé€😀".encode() * 10_000)
    with TextFile(path) as file:
        pieces = list(iter(partial(Utf8(file).read, size), b""))
    assert b"".join(pieces) == path.read_bytes() and max(map(len, pieces)) <= size
    assert all(piece.decode() for piece in pieces)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["", "with a byte order mark"])
def test_lines_may_end_in_any_way_and_a_row_is_found_in_its_own(tmp_path: Path, end: str, mark: bytes) -> None:
    path, lines = tmp_path / "events.csv", ['"person","time"', '"ann","now"', f'"b{end}en","now"', '"cem","then"', ""]
    path.write_bytes(mark + end.join(lines).encode())
    (batch,) = CsvEvents(path).batches(ColumnMapping("person", "time"))
    assert batch.columns["person"].to_pylist() == ["ann", f"b{end}en", "cem"] and batch.rows.tolist() == [2, 3, 4]
    assert CsvEvents(path).lines((2, 3, 4)) == {2: 2, 3: 3, 4: 5}


def test_a_cell_of_several_lines_may_lie_across_two_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("producers.files.csv_events.BLOCK_BYTES", 1 << 8)
    path = tmp_path / "events.csv"
    path.write_text("person,time\n" + '"an\nn",now\n\n' * 100)
    batches = list(CsvEvents(path).batches(ColumnMapping("person", "time")))
    assert len(batches) > 9 and sum(len(batch.rows) for batch in batches) == 200
    assert not any(batch.malformed for batch in batches)


@pytest.mark.parametrize("kind", [pa.timestamp("s", "UTC"), pa.timestamp("ms"), pa.timestamp("us", "UTC")])
@pytest.mark.parametrize("number", [-(2**63), -(2**62), 2**62, 2**63 - 1])
def test_numbers_that_are_too_large_for_a_time_are_bad(kind: pa.DataType, number: int) -> None:
    """Failure would look like: what is left of the number after an overflow, taken for a time."""
    assert moments(pa.array([number], kind), ZoneInfo("Europe/Paris")).tolist() == [BAD]


def test_portions_of_a_spool_are_bounded_and_never_part_a_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("producers.events.spool.AT_ONCE", 400)
    events = np.zeros(5000, dtype=event_type(1))
    events["device"] = np.random.default_rng(1).integers(0, 500, 5000)
    events["row"] = np.arange(5000)
    spool = Spool(tmp_path / "spool", 1, SEALER)
    spool.add(events, np.zeros(5000, dtype=np.int64))
    mix = np.uint64(0x9E3779B97F4A7C15)
    portions = list(spool.read(0, lambda devices: (devices * mix) >> np.uint64(32)))
    assert sorted(np.concatenate([p["row"] for p in portions]).tolist()) == list(range(5000))
    seen = [set(p["device"].tolist()) for p in portions]
    assert sum(map(len, seen)) == len(set.union(*seen))
    assert max(map(len, portions)) < 2 * 400
    assert [path.name for path in (tmp_path / "spool").iterdir()] == ["0.events"]
    spool.drop(0)
    assert list((tmp_path / "spool").iterdir()) == []


def test_a_spool_that_is_damaged_or_missing_is_refused(tmp_path: Path) -> None:
    """Failure would look like: other bytes are taken for events."""
    spool = Spool(tmp_path / "spool", 2, SEALER)
    spool.add(some_events("sorted", seed=4), np.zeros(600, dtype=np.int64))
    held = dict(spool.sync())
    spool.close()
    file = tmp_path / "spool" / "0.events"
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with (
        closing(Spool(tmp_path / "spool", 2, SEALER, held=held)) as spool,
        pytest.raises(ReplayError, match=r"0\.events is missing or damaged"),
    ):
        list(spool.read(0, lambda devices: devices))
    file.unlink()
    with pytest.raises(ReplayError, match=r"0\.events is missing or damaged"):
        Spool(tmp_path / "spool", 2, SEALER, held=held)


def test_a_checkpoint_is_read_as_it_was_written_and_damage_is_named(tmp_path: Path) -> None:
    path, totals = tmp_path / "replay.json", Totals(through=3, reports=7)
    assert read_checkpoint(path) == Totals()
    write_checkpoint(path, totals)
    assert read_checkpoint(path) == totals
    path.write_text("half a fi")
    with pytest.raises(ReplayError, match="is damaged"):
        read_checkpoint(path)


def some_events(order: str, seed: int) -> Events:
    """Many events of few devices, in few moments: with ties, unknown values and duplicates."""
    draw, count = np.random.default_rng(seed), 600
    events = np.empty(count, dtype=event_type(2))
    events["row"] = np.arange(count) * 3
    events["device"] = draw.integers(0, 40, count)
    events["time"] = draw.integers(0, 12, count)
    events["values"] = draw.integers(-1, 3, (count, 2))
    if order == "sorted":
        events["time"].sort()
    return events if order != "shuffled" else draw.permutation(events)


Listed = tuple[int, int, int, tuple[int, ...]]


def listed(events: Events) -> list[Listed]:
    rows = zip(*(events[name].tolist() for name in ("device", "time", "row", "values")), strict=True)
    return [(device, time, row, tuple(values)) for device, time, row, values in rows]


@pytest.mark.parametrize("rule", PICKED_BY)
@pytest.mark.parametrize("order", ["sorted", "unsorted", "shuffled"])
def test_the_value_of_a_period_is_the_one_that_the_rule_names(rule: Rule, order: str) -> None:
    events, _ = without_duplicates(some_events(order, seed=2))
    devices, chosen = choose(events, {"a": rule, "b": rule})
    assert devices.tolist() == sorted(set(events["device"].tolist()))
    for i, name in enumerate(("a", "b")):
        for device, place in zip(devices.tolist(), chosen[name].tolist(), strict=True):
            known = [(time, values[i]) for owner, time, _, values in listed(events) if owner == device]
            known = [(time, value) for time, value in known if value >= 0]
            assert place == (by_definition(rule, known) if known else -1)


def test_a_transition_is_from_the_first_place_to_the_last_one() -> None:
    (attribute,) = parse_survey(
        "{id: od, start: 2026-01-01T00:00:00Z, period: 1d, eps: 1, attributes: [{name: way, role: transition, "
        "values: [north>south, south>north, north>north]}]}"
    ).attributes
    chooser = Chooser([attribute], {"way": Rule.TRANSITION}, {})
    moves = [(1, [0, 1]), (2, [1, 0, 0]), (3, [0]), (4, [1]), (5, [-1]), (6, [-1, 1, -1, 0])]  # places by device
    events = [(0, device, time, [place]) for device, places in moves for time, place in enumerate(places)]
    _, values, _ = chooser.choose(np.random.default_rng(1).permutation(np.array(events, dtype=event_type(1))))
    assert values["way"].tolist() == [0, 1, 2, -1, -1, 1], "who stays in the south is not listed"
    with pytest.raises(ReplayError, match="its role is plain"):
        Chooser([attribute.model_copy(update={"role": "plain"})], {"way": Rule.TRANSITION}, {})


def by_definition(rule: Rule, known: list[tuple[int, int]]) -> int:
    """Of moments and values."""
    if rule is Rule.LONGEST:
        stays: list[list[int]] = []  # value, begin, end
        for time, value in sorted(known):
            if stays:
                stays[-1][2] = time
            if not stays or stays[-1][0] != value:
                stays.append([value, time, time])
        return min(stays, key=lambda stay: (stay[1] - stay[2], stay[0]))[0]
    if rule is not Rule.MOST:
        return (min if rule is Rule.FIRST else max)(known)[1]
    counts = Counter(value for _, value in known)
    return min(counts, key=lambda value: (-counts[value], value))


def test_people_are_counted_exactly_below_the_size_and_about_right_above_it() -> None:
    draw, few = np.random.default_rng(3), Distinct(1000)
    numbers = draw.integers(0, 2**64, 20_000, dtype=np.uint64)
    few.add(np.repeat(numbers[:700], 2))
    assert (few.count(), few.exact) == (700, True)
    for part in np.array_split(numbers, 9):
        few.add(part)
    assert not few.exact and abs(few.count() / 20_000 - 1) < 0.15
