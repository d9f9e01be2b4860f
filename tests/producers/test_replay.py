"""A replay reports what a careful person would compute from the file, whatever state the file is in."""

from __future__ import annotations

import csv
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import redis

from memo_store import SurveyMemos
from producers.replay import Columns, Fault, Options, Replay, Rule
from producers.replay.people import People
from protocols.errors import DeliveryError, ReplayError, Stopped, SurveyError
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.simulation import seeded_keyring
from protocols.survey_text import parse_survey
from tests.helpers.sinks import KeepingSink, rows_by_token
from tests.producers.populations import CLOCK_KEY, KEYRING

START = datetime(2026, 1, 1, tzinfo=UTC)
AREAS = ("north", "south", "east", "west")
DWELL = ("0-9", "10-19", "20-29")
RULES = {"area": Rule.MOST, "dwell": Rule.FIRST}
COLUMNS = Columns("msisdn", "at", {"area": "cell", "dwell": "minutes"})
OPTIONS = Options(COLUMNS, timedelta(hours=2), RULES, until=START + timedelta(days=30))
EVENTS = Path("events.csv")


def survey(solution: str = "spl", budgets: str = "eps_inf: 20", extra: str = "clock: source") -> Scheme:
    """The memo is sent: reports show which value was chosen."""
    return Scheme(
        parse_survey(
            f"{{id: cdr, start: {START.isoformat()}, period: 6h, horizon: 4, solution: {solution}, {budgets}, {extra}, "
            f"attributes: [{{name: area, values: [{', '.join(AREAS)}]}}, "
            "{name: dwell, range: {last: 29, step: 10}}]}"
        )
    )


@dataclass(frozen=True)
class Event:
    person: str
    at: datetime
    area: str
    minutes: int

    def row(self) -> list[str]:
        return [self.person, self.at.isoformat(), self.area, str(self.minutes)]


def history(people: int = 40, days: int = 3, seed: int = 1) -> list[Event]:
    """What really happened, in the order of time."""
    rng = random.Random(seed)
    moments = sorted(rng.randrange(days * 86_400) for _ in range(people * days * 8))
    return [
        Event(f"+33{rng.randrange(people):09d}", START + timedelta(seconds=s), rng.choice(AREAS), rng.randrange(30))
        for s in moments
    ]


def write(path: Path, rows: list[list[str]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["msisdn", "at", "cell", "minutes"], *rows])
    return path


def nearly_sorted(events: list[Event], tolerance: timedelta, seed: int = 2) -> list[Event]:
    """Shuffled, but no event stands more than the tolerance behind a later one."""
    rng = random.Random(seed)
    return sorted(events, key=lambda e: e.at + rng.random() * tolerance)


def computed(events: list[Event]) -> dict[tuple[int, str], dict[str, int]]:
    """(period, person) -> what must be reported, the slow way: one person, one period at a time."""
    groups: dict[tuple[int, str], list[Event]] = defaultdict(list)
    for event in set(events):
        groups[(event.at - START) // timedelta(hours=6), event.person].append(event)
    out = {}
    for key, group in groups.items():
        counts = Counter(AREAS.index(e.area) for e in group)
        most = min(counts, key=lambda area: (-counts[area], area))
        first = min((e.at, e.minutes // 10) for e in group)[1]
        out[key] = {"area": most, "dwell": first}
    return _memos(out)


def _memos(chosen: dict[tuple[int, str], dict[str, int]]) -> dict[tuple[int, str], dict[str, int]]:
    """With this budget nearly always the value itself."""
    respondent = Respondent(survey(), KEYRING)
    devices = People(KEYRING).devices(pa.array([person for _, person in chosen]))
    columns = {
        q.name: respondent.memoise(q, devices, np.array([values[q.name] for values in chosen.values()])).tolist()
        for q in respondent.scheme.questions
    }
    return {key: {name: column[i] for name, column in columns.items()} for i, key in enumerate(chosen)}


def reported(sink: KeepingSink, scheme: Scheme, people: set[str]) -> dict[tuple[int, str], dict[str, int]]:
    """(period, person) -> what was reported; each must have been reported once."""
    respondent = Respondent(scheme, KEYRING)
    names = sorted(people)
    devices = People(KEYRING).devices(pa.array(names))
    out = {}
    for frame in sink.frames(scheme):
        owner = dict(zip(respondent.tokens(devices, frame.period).tolist(), names, strict=True))
        for i, token in enumerate(frame.tokens.tolist()):
            key = (frame.period, owner[token])
            assert key not in out, "one person, one period, two reports"
            out[key] = {name: int(column[i]) for name, column in frame.answers.items()}
    return out


MakeReplay = Callable[..., Replay]


@pytest.fixture
def replay(open_memos: Callable[[Respondent], SurveyMemos], tmp_path: Path) -> MakeReplay:
    """Make replays that share a memo store and a workspace, each as a new process would."""

    def make(
        path: Path, sink: KeepingSink, options: Options = OPTIONS, scheme: Scheme | None = None, **more: Any
    ) -> Replay:
        scheme = scheme or survey()
        memos = open_memos(Respondent(scheme, KEYRING))
        more = {"clock_key": CLOCK_KEY, **more}
        return Replay(scheme, KEYRING, memos, sink, path, options, tmp_path / "workspace", **more)

    return make


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
    assert reported(sink, survey(), {e.person for e in events}) == computed(events)
    counts = {fault: found.count for fault, found in summary.faults.items()}
    assert counts == {
        Fault.MALFORMED: 3,
        Fault.BAD_TIME: 5,
        Fault.UNKNOWN_VALUE: 2,
        Fault.DUPLICATE: 30,
        Fault.LATE: 0,
    }
    assert summary.rows == len(rows)
    assert summary.people == len({e.person for e in events} | {nobody})
    assert (summary.reports, summary.incomplete) == (len(computed(events)), 1)


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
    lines = {fault: list(found.first_lines) for fault, found in faults.items()}
    assert lines == {
        Fault.BAD_TIME: [4],
        Fault.MALFORMED: [5, 8],
        Fault.DUPLICATE: [6],
        Fault.UNKNOWN_VALUE: [7],
        Fault.LATE: [],
    }


def test_an_event_beyond_the_tolerance_is_counted_and_left_out(replay: MakeReplay, tmp_path: Path) -> None:
    """Its period ends at 6:00; what was read up to 7:59 does not end it, 8:00 does."""
    on_time = [Event("a", START, "north", 1), Event("b", START + timedelta(hours=7, minutes=59), "east", 1)]
    in_time = Event("c", START + timedelta(hours=5), "south", 1)
    closing = Event("b", START + timedelta(hours=8), "east", 1)
    late = Event("d", START + timedelta(hours=5, minutes=59), "west", 1)
    events = [*on_time, in_time, closing, late]
    sink = KeepingSink()
    summary = replay(write(tmp_path / EVENTS, [e.row() for e in events]), sink).run()
    assert list(summary.faults[Fault.LATE].first_lines) == [6]
    assert reported(sink, survey(), set("abcd")) == computed([*on_time, in_time, closing])


@pytest.mark.parametrize("rule", list(Rule))
def test_each_rule_chooses_as_it_says(replay: MakeReplay, tmp_path: Path, rule: Rule) -> None:
    said = ["west", "south", "south", "east", "east", "north"]
    events = [Event("a", START + timedelta(minutes=i), area, 1) for i, area in enumerate(said)]
    expected = {Rule.FIRST: "west", Rule.LAST: "north", Rule.MOST: "south"}[rule]  # south is listed before east
    sink = KeepingSink()
    options = replace(OPTIONS, rules={"area": rule})
    replay(write(tmp_path / EVENTS, [e.row() for e in reversed(events)]), sink, options).run()
    assert reported(sink, survey(), {"a"})[0, "a"]["area"] == AREAS.index(expected)


def test_parquet_and_compressed_csv_give_the_same_reports_as_csv(
    replay: MakeReplay, redis_url: str, tmp_path: Path
) -> None:
    events = nearly_sorted(history(10, 2), timedelta(hours=2))
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
    with pa.CompressedOutputStream(str(tmp_path / "events.csv.gz"), "gzip") as out:
        out.write(plain.read_bytes())
    rows = []
    for name in ("events.csv", "events.parquet", "events.csv.gz"):
        sink = KeepingSink()
        replay(tmp_path / name, sink).run()
        rows.append(rows_by_token(sink.frames(survey())))
        with redis.Redis.from_url(redis_url) as client:
            client.flushall()
    assert rows[0] == rows[1] == rows[2]
    assert len(rows[0]) == len(computed(events))


def test_under_smp_each_person_reports_the_sampled_attribute_alone(replay: MakeReplay, tmp_path: Path) -> None:
    """Who has no known value of it is incomplete; what else they lack does not matter."""
    events = history(60, 1)
    rows = [[e.person, e.at.isoformat(), e.area if i % 2 else "?", str(e.minutes)] for i, e in enumerate(events)]
    scheme, sink = survey("smp"), KeepingSink()
    summary = replay(write(tmp_path / EVENTS, rows), sink, scheme=scheme).run()
    everyone = len(computed(events))
    assert summary.reports + summary.incomplete == everyone
    assert 0 < summary.incomplete < everyone / 2
    seen = reported(sink, scheme, {e.person for e in events})
    assert len(seen) == summary.reports
    assert all(len(answers) == 1 for answers in seen.values())


def test_a_period_larger_than_memory_is_reported_in_portions(replay: MakeReplay, tmp_path: Path) -> None:
    events = history(200, 1)
    sink = KeepingSink()
    summary = replay(write(tmp_path / EVENTS, [e.row() for e in events]), sink, at_once=50).run()
    assert reported(sink, survey(), {e.person for e in events}) == computed(events)
    assert summary.faults[Fault.DUPLICATE].count == len(events) - len(set(events))


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


def test_a_crash_is_repaired_by_running_again_even_without_the_journal(replay: MakeReplay, tmp_path: Path) -> None:
    events = history()
    path = write(tmp_path / EVENTS, [e.row() for e in events])
    sink = KeepingSink(fail_after=13)
    with pytest.raises(DeliveryError):
        replay(path, sink).run()
    for journal in (tmp_path / "workspace").glob("*.json"):
        journal.unlink()
    sink.fail_after = None
    replay(path, sink).run()
    rows = rows_by_token(sink.frames(survey()))
    assert len(rows) == len(computed(events))


def test_the_workspace_keeps_no_events(replay: MakeReplay, tmp_path: Path) -> None:
    path = write(tmp_path / EVENTS, [e.row() for e in history(10, 1)])
    replay(path, KeepingSink()).run()
    assert [entry.suffix for entry in (tmp_path / "workspace").iterdir()] == [".json"]


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (["p-4711", "never", "north", "1"], r"line 3: bad time \(column at\)"),
        (["p-4711", START.isoformat(), "limbo", "1"], r"line 3: unknown value \(column cell\)"),
        (["p-4711", START.isoformat()], "line 3: row that cannot be read"),
        (["p-4710", START.isoformat(), "north", "1"], "line 3: duplicate"),
    ],
)
def test_strict_stops_at_the_first_fault_and_names_nobody(
    replay: MakeReplay, tmp_path: Path, row: list[str], complaint: str
) -> None:
    rows = [["p-4710", START.isoformat(), "north", "1"], row]
    with pytest.raises(ReplayError, match=complaint) as caught:
        replay(write(tmp_path / EVENTS, rows), KeepingSink(), replace(OPTIONS, strict=True)).run()
    assert "p-47" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_an_unclosed_quote_is_reported_without_quoting_anybody(replay: MakeReplay, tmp_path: Path) -> None:
    path = tmp_path / EVENTS
    path.write_text('msisdn,at,cell,minutes\np-4711,"' + "p-4712,x\n" * 1_000_000)
    with pytest.raises(ReplayError, match="cannot be read as CSV from about line 2 on") as caught:
        replay(path, KeepingSink()).run()
    assert "p-47" not in str(caught.value)


def test_nobody_is_named_in_anything_that_is_written(
    replay: MakeReplay, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    events = history(20, 1)
    rows = [e.row() for e in events] + [["+33000000001", "when?", "north", "1"]]
    sink = KeepingSink()
    summary = replay(write(tmp_path / EVENTS, rows), sink, at_once=50).run()
    written = [value for *_, value in sink.records]
    written += [path.read_bytes() for path in (tmp_path / "workspace").iterdir()]
    written += [repr(summary).encode(), "".join(capfd.readouterr()).encode(), caplog.text.encode()]
    indices = [str(d).encode() for d in People(KEYRING).devices(pa.array(sorted({e.person for e in events})))]
    assert not any(b"+33" in text or any(index in text for index in indices) for text in written)


def test_the_same_person_is_the_same_device_under_one_key_only() -> None:
    persons = pa.array(["7", "8", "7"])
    devices = People(KEYRING).devices(persons)
    assert devices[0] == devices[2] != devices[1]
    assert devices[0] != People(seeded_keyring(9)).devices(persons)[0]


def test_people_are_counted_in_constant_memory() -> None:
    people = People(KEYRING)
    for start in range(0, 200_000, 20_000):
        people.devices(pa.array([str(i) for i in range(start, start + 25_000)]))
    assert not people.exact
    assert abs(people.count() / 205_000 - 1) < 0.02


def test_a_column_that_is_not_there_is_named_with_those_that_are(replay: MakeReplay, tmp_path: Path) -> None:
    path = write(tmp_path / EVENTS, [])
    with pytest.raises(ReplayError, match=r"no column 'subscriber' \(it has msisdn, at, cell, minutes\)"):
        replay(path, KeepingSink(), replace(OPTIONS, columns=replace(COLUMNS, person="subscriber"))).run()
    with pytest.raises(SurveyError, match="no attribute 'colour'"):
        replay(path, KeepingSink(), replace(OPTIONS, columns=Columns("msisdn", "at", {"colour": "cell"})))


def test_a_survey_on_the_wall_clock_is_refused(replay: MakeReplay, tmp_path: Path) -> None:
    with pytest.raises(SurveyError, match=r"clock: wall.*cdr-sim.*clock: source"):
        replay(write(tmp_path / EVENTS, []), KeepingSink(), scheme=survey(extra="clock: wall"))


def test_an_empty_file_is_an_empty_summary(replay: MakeReplay, tmp_path: Path) -> None:
    sink = KeepingSink()
    summary = replay(write(tmp_path / EVENTS, []), sink).run()
    assert (summary.rows, summary.people, summary.periods, summary.reports, sink.records) == (0, 0, 0, 0, [])
