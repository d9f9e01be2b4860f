"""Before a replay: what is wrong with the files is found, with the option that helps, and nothing is sent."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from producers.files import FileFormat, expand
from producers.replay import ANY_ORDER, Inspection, Options, inspect
from producers.replay.quality import Fault
from protocols.errors import ReplayError
from tests.helpers.sinks import KeepingSink
from tests.producers.events import EVENTS, OPTIONS, START, Event, MakeReplay, computed, history, survey, write

PAST = history(10, 2)
SORTED_BY_PERSON = sorted(PAST, key=lambda event: (event.person, event.at))
SCHEME = survey()


def look(path: Path, options: Options = OPTIONS, most_rows: int | None = None) -> Inspection:
    return inspect(SCHEME.survey, [path], options, most_rows)


def with_times(path: Path, form: str) -> Path:
    return write(path, [[e.person, e.at.strftime(form), e.area, str(e.minutes)] for e in PAST])


def test_values_that_are_not_listed_are_shown_with_their_numbers_and_not_in_errors(tmp_path: Path) -> None:
    said = ["atlantis"] * 5 + ["North"] * 3 + [""] * 2 + ["north"] * 90
    path = write(tmp_path / EVENTS, [[f"p{i}", START.isoformat(), area, "1"] for i, area in enumerate(said)])
    found = look(path)
    assert found.unknown == {"cell": {"atlantis": 5, "North": 3, "": 2}}
    (advice,) = found.advice
    assert "10 cells of column cell" in advice and "2 are empty" in advice and "atlantis" not in advice


def test_nothing_is_wrong_with_a_good_file(tmp_path: Path) -> None:
    found = look(write(tmp_path / EVENTS, [event.row() for event in PAST]))
    assert found.advice == [] and found.worst[1] == 0 and found.complete
    assert found.rows == len(PAST)
    expected = {period: len({p for t, p in computed(PAST) if t == period}) for period in range(8)}
    assert found.people == expected


@pytest.mark.parametrize(
    ("form", "advice"),
    [
        ("%Y-%m-%d %H:%M:%S", "have no zone: give it, such as --zone Europe/Paris"),
        ("%d.%m.%Y %H:%M", '--time-format "%d.%m.%Y %H:%M", and their zone with --zone'),
        ("on a %A", "name their format with --time-format"),
    ],
)
def test_times_that_cannot_be_read_are_explained(tmp_path: Path, form: str, advice: str) -> None:
    found = look(with_times(tmp_path / EVENTS, form))
    assert found.worst == (Fault.BAD_TIME, 1.0)
    assert advice in found.advice[0] and "no event would be reported" in found.advice


def test_the_option_that_is_named_helps(tmp_path: Path) -> None:
    path = with_times(tmp_path / EVENTS, "%d.%m.%Y %H:%M:%S")
    options = replace(OPTIONS, time_formats=["%d.%m.%Y %H:%M:%S"], zone=ZoneInfo("UTC"))
    assert look(path, options).advice == []


def test_day_and_month_are_not_guessed(tmp_path: Path) -> None:
    early = [event for event in PAST if event.at.day <= 2]
    rows = [[e.person, e.at.strftime("%d/%m/%Y %H:%M"), e.area, str(e.minutes)] for e in early]
    (advice, *_) = look(write(tmp_path / EVENTS, rows)).advice
    assert "%d/%m/%Y %H:%M" in advice and " or " in advice and "%m/%d/%Y %H:%M" in advice


@pytest.mark.parametrize("unit", [1, 1000, 1_000_000])
def test_unix_times_are_read_in_any_unit(tmp_path: Path, unit: int) -> None:
    rows = [[e.person, str(round(e.at.timestamp() * unit)), e.area, str(e.minutes)] for e in PAST]
    assert look(write(tmp_path / EVENTS, rows)).advice == []


def test_a_file_sorted_by_person_is_recognised_and_can_be_read(replay: MakeReplay, tmp_path: Path) -> None:
    path = write(tmp_path / EVENTS, [event.row() for event in SORTED_BY_PERSON])
    found = look(path)
    assert found.worst[0] is Fault.LATE and found.worst[1] > 0.5
    assert "sorted by person: use --any-order" in found.advice[0]
    summary = replay(path, KeepingSink(), replace(OPTIONS, tolerance=ANY_ORDER)).run()
    assert summary.faults[Fault.LATE].count == 0 and summary.reports == len(computed(PAST))


def test_the_tolerance_that_is_named_is_enough(tmp_path: Path) -> None:
    strictly = replace(OPTIONS, tolerance=timedelta(0))
    late = [*PAST[40:], *PAST[:40]]
    path = write(tmp_path / EVENTS, [event.row() for event in sorted(late, key=lambda e: (e.at.hour % 2, e.at))])
    (advice,) = look(path, strictly).advice
    if "--tolerance" in advice:
        minutes = int(advice.split("--tolerance ")[1].split("m")[0])
        assert look(path, replace(OPTIONS, tolerance=timedelta(minutes=minutes))).advice == []
        assert look(path, replace(OPTIONS, tolerance=timedelta(minutes=minutes - 1))).advice != []
    else:
        pytest.fail(advice)


def test_values_that_the_survey_does_not_have_are_explained_without_being_shown(tmp_path: Path) -> None:
    rows = [event.row() for event in PAST]
    for i in range(10):
        rows[i][2] = rows[i][2].upper()
    rows[11][2], rows[12][2] = "", "+33612345678"
    (advice,) = look(write(tmp_path / EVENTS, rows)).advice
    assert "12 cells of column cell are none of the survey's values" in advice
    assert "1 are empty" in advice and "10 differ from a value only in upper or lower case" in advice
    assert "+336" not in advice


def test_periods_below_the_minimum_are_announced(tmp_path: Path) -> None:
    few = survey(extra="clock: source, minimum: 1000").survey
    path = write(tmp_path / EVENTS, [event.row() for event in PAST])
    found = inspect(few, [path], OPTIONS)
    assert found.suppressed == len(found.people) == 8
    assert "8 of 8 periods have fewer than 1000 people" in found.advice[0]


def test_another_delimiter_and_another_encoding_are_named(tmp_path: Path) -> None:
    rows = [event.row() for event in PAST]
    path = tmp_path / EVENTS
    path.write_text("\n".join([";".join(row) for row in (["msisdn", "at", "cell", "minutes"], *rows)]) + "\n")
    with pytest.raises(ReplayError, match="use --delimiter ;"):
        look(path)
    rows[3][2] = "größe"
    path.write_bytes("\n".join(",".join(row) for row in (["msisdn", "at", "cell", "minutes"], *rows)).encode("cp1252"))
    assert any("name its encoding, such as --encoding latin-1" in advice for advice in look(path).advice)
    path.write_text("msisdn,at,cell,minutes\n", encoding="utf-16")
    with pytest.raises(ReplayError, match="not in utf-8: name its encoding"):
        look(path)
    utf16 = replace(OPTIONS, form=FileFormat(encoding="utf-16"))
    assert look(path, utf16).rows == 0
    with pytest.raises(ReplayError, match="'morse' is not an encoding"):
        look(path, replace(OPTIONS, form=FileFormat(encoding="morse")))


def test_a_sample_is_the_beginning_of_each_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("producers.files.csv_events.BLOCK_BYTES", 1 << 10)
    paths = [write(tmp_path / f"{name}.csv", [event.row() for event in PAST]) for name in "ab"]
    found = inspect(SCHEME.survey, paths, OPTIONS, 50)
    assert 100 <= found.rows < 200 and not found.complete


def test_too_many_faults_stop_a_replay_before_its_first_report(replay: MakeReplay, tmp_path: Path) -> None:
    rows = [event.row() for event in PAST]
    for row in rows[::5]:
        row[1] = "yesterday"
    sink = KeepingSink()
    with pytest.raises(ReplayError, match=r"20\.\d% have one fault: bad time \(first at line 2\); nothing was sent"):
        replay(write(tmp_path / EVENTS, rows), sink, replace(OPTIONS, most_faults=0.05)).run()
    assert not sink.frames(SCHEME)


def test_faults_that_come_later_stop_before_more_is_reported(
    replay: MakeReplay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("producers.files.csv_events.BLOCK_BYTES", 1 << 10)
    rows = [event.row() for event in PAST]
    for row in rows[len(rows) // 2 :: 2]:
        row[1] = "yesterday"
    sink = KeepingSink()
    with pytest.raises(ReplayError, match=r"bad time .*reports were sent"):
        replay(write(tmp_path / EVENTS, rows), sink, replace(OPTIONS, most_faults=0.05)).run()
    periods = {frame.period for frame in sink.frames(SCHEME)}
    assert periods and max(periods) < 7


def test_strict_names_the_first_faulty_line_of_all(replay: MakeReplay, tmp_path: Path) -> None:
    """Failure would look like: the first line with the kind of fault that happens to be looked for first."""
    rows = [event.row() for event in PAST]
    rows[3][2], rows[8][1], rows[5] = "nowhere", "never", ["too", "few"]
    with pytest.raises(ReplayError, match=r"line 5: unknown value \(column cell\)"):
        replay(write(tmp_path / EVENTS, rows), KeepingSink(), replace(OPTIONS, strict=True)).run()


def test_many_files_are_one_stream(tmp_path: Path) -> None:
    third = len(PAST) // 3
    for i, name in enumerate(("a.csv", "b.csv", "c.csv")):
        write(tmp_path / name, [event.row() for event in PAST[i * third :][: third if i < 2 else None]])
    (tmp_path / "notes.txt").write_text("not events")
    paths = expand([tmp_path])
    assert [path.name for path in paths] == ["a.csv", "b.csv", "c.csv"]
    assert expand([tmp_path / "[ab].csv"]) == paths[:2]
    found = inspect(SCHEME.survey, paths, OPTIONS, None)
    assert found.rows == len(PAST) and found.advice == []
    turned = inspect(SCHEME.survey, paths[::-1], OPTIONS, None)
    assert turned.faults[Fault.LATE].places[0] == (paths[1], 2)
    with pytest.raises(ReplayError, match="is given twice"):
        expand([tmp_path, tmp_path / "b.csv"])
    with pytest.raises(ReplayError, match="no file is called"):
        expand([tmp_path / "d*.csv"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ReplayError, match="has no event files"):
        expand([tmp_path / "empty"])


def test_events_before_the_start_and_after_the_end_are_told_apart(tmp_path: Path) -> None:
    events = [
        Event("+33600000001", START - timedelta(hours=1), "north", 1),
        *PAST,
        Event("+33600000001", START + timedelta(days=40), "north", 1),
    ]
    advice = look(write(tmp_path / EVENTS, [event.row() for event in events])).advice
    assert advice[0].startswith("1 events are before the survey's start")
    assert advice[1].startswith("1 events are at or after 2026-01-31")
