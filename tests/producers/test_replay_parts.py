"""The parts of a replay: pace, times, events on their way to the end of their period, and which of them are chosen."""

from collections import Counter
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from memo_store.sealing import Sealer
from producers.events.choosing import PICKED_BY, Chooser, Events, Rule, choose, event_type, without_duplicates
from producers.events.people import Distinct
from producers.events.sending import Totals
from producers.events.spool import Held, Spool
from producers.files import ColumnMapping
from producers.files.csv_events import CsvEvents
from producers.files.text_stream import CHUNK, Utf8Stream
from producers.files.times import BAD, moments
from producers.replay import Checkpoint, Pace
from protocols.errors import ReplayError
from protocols.survey_text import parse_survey
from tests.producers.populations import KEYRING

SEALER = Sealer(KEYRING, "events cdr", "0")


def test_event_time_runs_as_many_times_faster_as_asked() -> None:
    clock = [100.0]

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    pace = Pace(1000, now=lambda: clock[0], sleep=sleep)
    for moment in (5_000.0, 8_600.0, 5_000.0):  # the last is past: nobody waits for it
        pace.wait_for(moment, lambda: False)
    assert clock[0] == pytest.approx(103.6)


def test_a_wish_to_stop_ends_the_wait() -> None:
    naps: list[float] = []
    pace = Pace(1, now=lambda: 0.0, sleep=naps.append)
    pace.wait_for(0, lambda: False)
    pace.wait_for(1e9, lambda: len(naps) >= 3)
    assert len(naps) == 3


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


@pytest.mark.parametrize("before", [CHUNK - 1, CHUNK - 2, CHUNK, 3 * CHUNK - 1])
def test_a_character_may_lie_across_two_pieces_of_a_file(tmp_path: Path, before: int) -> None:
    path = tmp_path / "events.csv"
    path.write_bytes(b"a" * before + "é€".encode() + b"b" * CHUNK + "ü".encode())
    for size in (1000, CHUNK, 10 * CHUNK):
        with Utf8Stream(path) as stream:
            assert b"".join(iter(partial(stream.read, size), b"")) == path.read_bytes()
    path.write_bytes(b"a" * before + "é".encode()[:1] + b"b" * CHUNK)
    with Utf8Stream(path) as stream:
        assert stream.read() == b"a" * before + b"\\xc3" + b"b" * CHUNK


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["", "with a byte order mark"])
def test_lines_may_end_in_any_way_and_a_row_is_found_in_its_own(tmp_path: Path, end: str, mark: bytes) -> None:
    path, lines = tmp_path / "events.csv", ['"person","time"', '"ann","now"', f'"b{end}en","now"', '"cem","then"', ""]
    path.write_bytes(mark + end.join(lines).encode())
    (batch,) = CsvEvents(path).batches(ColumnMapping("person", "time"))
    assert batch.columns["person"].to_pylist() == ["ann", f"b{end}en", "cem"] and batch.rows.tolist() == [2, 3, 4]
    assert CsvEvents(path).lines((2, 3, 4)) == {2: 2, 3: 3, 4: 5}


@pytest.mark.parametrize("kind", [pa.timestamp("s", "UTC"), pa.timestamp("ms"), pa.timestamp("us", "UTC")])
@pytest.mark.parametrize("number", [-(2**63), -(2**62), 2**62, 2**63 - 1])
def test_numbers_that_are_too_large_for_a_time_are_bad(kind: pa.DataType, number: int) -> None:
    """Failure would look like: what is left of the number after an overflow, taken for a time."""
    assert moments(pa.array([number], kind), ZoneInfo("Europe/Paris")).tolist() == [BAD]


def test_portions_of_a_spool_are_bounded_and_never_part_a_device(tmp_path: Path) -> None:
    events = np.zeros(5000, dtype=event_type(1))
    events["device"] = np.random.default_rng(1).integers(0, 500, 5000)
    events["row"] = np.arange(5000)
    spool = Spool(tmp_path / "spool", 1, SEALER, at_once=400)
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


def test_a_spool_goes_on_with_what_was_noted_and_refuses_what_is_damaged(tmp_path: Path) -> None:
    """Failure would look like: an event that is read again is there twice, or other bytes are taken for events."""
    events, zeros = some_events("sorted", seed=4), np.zeros(600, dtype=np.int64)

    def opened(held: Held) -> Spool:
        return Spool(tmp_path / "spool", 2, SEALER, held=held)

    spool = opened({})
    spool.add(events, zeros)
    held = dict(spool.sync())
    spool.add(events, zeros + np.arange(600) % 2)  # what a crash leaves behind
    spool.close()
    spool = opened(held)
    (again,) = spool.read(0, lambda devices: devices)
    assert (again == events).all() and spool.periods == [0]
    spool.close()
    file = tmp_path / "spool" / "0.events"
    content = file.read_bytes()
    assert not any(one.tobytes()[:16] in content for one in events), "events are sealed"
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    spool = opened(held)
    with pytest.raises(ReplayError, match=r"0\.events is missing or damaged"):
        list(spool.read(0, lambda devices: devices))
    spool.close()
    file.unlink()
    with pytest.raises(ReplayError, match=r"0\.events is missing or damaged"):
        opened(held)


def test_a_checkpoint_is_read_as_it_was_written_and_damage_is_named(tmp_path: Path) -> None:
    path = tmp_path / "replay.json"
    checkpoint, totals = Checkpoint(path), Totals(through=3, reports=7)
    assert checkpoint.read() == Totals()
    checkpoint.write(totals)
    assert (checkpoint.read().through, checkpoint.read().reports) == (3, 7)
    path.write_text("half a fi")
    with pytest.raises(ReplayError, match="is damaged"):
        checkpoint.read()


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


@pytest.mark.parametrize("order", ["sorted", "unsorted", "shuffled"])
def test_duplicates_are_found_and_the_first_of_each_stays(order: str) -> None:
    events = some_events(order, seed=1)
    kept, again = without_duplicates(events)
    first: dict[object, int] = {}
    for device, time, row, values in sorted(listed(events), key=lambda event: event[2]):
        first.setdefault((device, time, values), row)
    assert set(kept["row"].tolist()) == set(first.values())
    assert sorted([*kept["row"].tolist(), *again.tolist()]) == sorted(events["row"].tolist())
    assert listed(kept) == sorted(listed(kept), key=lambda event: (event[0], event[1], event[3], event[2]))


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
    chosen = chooser.choose(np.random.default_rng(1).permutation(np.array(events, dtype=event_type(1))))
    assert chosen.values["way"].tolist() == [0, 1, 2, -1, -1, 1], "who stays in the south is not listed"
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
