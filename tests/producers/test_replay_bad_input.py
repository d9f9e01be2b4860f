"""What is wrong with files is found before a replay, with the option that helps; what cannot be replayed is refused."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from producers.events import ANY_ORDER, Inspection, Options, Rule, inspect
from producers.events.quality import Fault
from producers.files import ColumnMapping, FileFormat, expand
from producers.files.json_events import LINE_SIZE
from protocols.errors import HearsayError, ReplayError
from tests.helpers.sinks import KeepingSink
from tests.producers.events import COLUMNS, EVENTS, OPTIONS, START, Event, MakeReplay, computed, history, survey, write

A_DAY = history(10, 1)
ROWS = [event.row() for event in A_DAY]
PAST = history(10, 2)
SORTED_BY_PERSON = sorted(PAST, key=lambda event: (event.person, event.at))
SCHEME = survey()
NAMES = ["msisdn", "at", "cell", "minutes"]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"columns": replace(COLUMNS, person="subscriber")}, r"no column 'subscriber' \(it has msisdn, at, cell, min"),
        ({"columns": ColumnMapping("msisdn", "at", {"colour": "cell"})}, "no attribute 'colour'"),
        ({"rules": {"aera": Rule.MOST}}, r"no attribute 'aera' \(it has area, dwell\)"),
        *(({"form": FileFormat(wrong)}, "is not a valid delimiter") for wrong in ("", ";;", "é", "\n", '"')),
    ],
)
def test_options_that_do_not_fit_the_file_or_the_survey_are_refused(
    replay: MakeReplay, tmp_path: Path, changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(HearsayError, match=complaint):
        replay(write(tmp_path / EVENTS, ROWS), KeepingSink(), replace(OPTIONS, **changes)).run()


@pytest.mark.parametrize("name", ["events.csv", "events.parquet"])
def test_two_columns_of_one_name_are_refused(replay: MakeReplay, tmp_path: Path, name: str) -> None:
    columns = [pa.array([cell]) for cell in ("p-4711", START.isoformat(), "north", "south", "1")]
    table, path = pa.Table.from_arrays(columns, names=["msisdn", "at", "cell", "cell", "minutes"]), tmp_path / name
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path)
    with pytest.raises(ReplayError, match="has 2 columns 'cell'"):
        replay(path, KeepingSink()).run()


def test_lines_of_json_that_are_no_events_are_counted(replay: MakeReplay, tmp_path: Path) -> None:
    good = [json.dumps(dict(zip(NAMES, row, strict=True))) for row in ROWS]
    bad = ["{", "[1]", '{"msisdn": {"p-4711": 1}}', '{"msisdn": "' + "p" * LINE_SIZE + '"}', "[" * 100_000]
    bad.append('{"msisdn": "p-\\ud800"}')  # half a character
    path = tmp_path / "events.jsonl"
    path.write_text("\n".join([*bad, *good]))
    summary = replay(path, KeepingSink()).run()
    assert summary.faults[Fault.MALFORMED].count == len(bad) and summary.reports == len(computed(A_DAY))
    assert [line for _, line in summary.faults[Fault.MALFORMED].places] == [1, 2, 3, 4, 5]
    path.write_text('{"person": "p-4711"}')
    with pytest.raises(ReplayError, match="has none of the columns msisdn"):
        replay(path, KeepingSink()).run()


def parquet(path: Path, **columns: Any) -> Path:
    """The day as typed columns, some of them others than usual."""
    usual = dict(zip(NAMES, map(list, zip(*ROWS, strict=True)), strict=True))
    pyarrow.parquet.write_table(pa.table(usual | columns), path)
    return path


def test_a_parquet_file_that_is_damaged_inside_is_named(replay: MakeReplay, tmp_path: Path) -> None:
    path = parquet(tmp_path / "events.parquet")
    content = bytearray(path.read_bytes())
    content[4:400] = bytes(396)
    path.write_bytes(content)
    with pytest.raises(ReplayError, match="cannot be read as Parquet from about row 1 on"):
        replay(path, KeepingSink()).run()


def test_a_file_without_a_line_of_names_does_not_have_its_first_row_quoted(replay: MakeReplay, tmp_path: Path) -> None:
    path = tmp_path / EVENTS
    path.write_text(f"p-4711,{START.isoformat()},north,1\n" * 3)
    with pytest.raises(
        ReplayError, match=r"none of the columns msisdn, at, cell, minutes .*first line must name"
    ) as caught:
        replay(path, KeepingSink()).run()
    assert "p-47" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "advice"),
    [
        ("events.csv", b"", "it is empty"),
        ("events.csv", b"msisdn,at,cell,minutes", "its first line has no end"),
        ("events.csv.gz", b"msisdn,at,cell,minutes\n", "compressed as its suffix says"),
    ],
)
def test_a_file_that_is_no_csv_is_refused_with_what_may_help(
    replay: MakeReplay, tmp_path: Path, name: str, content: bytes, advice: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ReplayError, match=f"cannot be read as CSV.*{advice}"):
        replay(tmp_path / name, KeepingSink()).run()


@pytest.mark.parametrize("cell", [{"p": "p-4711"}, ["p-4711"]])
def test_a_column_that_is_neither_text_nor_numbers_is_named(replay: MakeReplay, tmp_path: Path, cell: Any) -> None:
    path = parquet(tmp_path / "events.parquet", msisdn=[cell] * len(ROWS))
    with pytest.raises(ReplayError, match=r"column 'msisdn' of .* holds .*, not text or numbers") as caught:
        replay(path, KeepingSink()).run()
    assert "p-47" not in str(caught.value)


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view()])
def test_text_is_text_however_it_is_laid_out(replay: MakeReplay, tmp_path: Path, kind: pa.DataType) -> None:
    cells = {n: pa.array([f" {row[i]}" for row in ROWS]).cast(kind) for i, n in enumerate(NAMES)}
    assert replay(parquet(tmp_path / "events.parquet", **cells), KeepingSink()).run().reports == len(computed(A_DAY))


def test_a_year_of_five_digits_is_a_bad_time(replay: MakeReplay, tmp_path: Path) -> None:
    path = parquet(tmp_path / "events.parquet", at=pa.array([1 << 39] * len(ROWS), pa.timestamp("s", "UTC")))
    summary = replay(path, KeepingSink(), replace(OPTIONS, until=None)).run()
    assert (summary.faults[Fault.BAD_TIME].count, summary.reports) == (len(ROWS), 0)


def test_a_line_with_two_unknown_values_is_named_once(replay: MakeReplay, tmp_path: Path) -> None:
    path = write(tmp_path / EVENTS, [["a", START.isoformat(), "atlantis", "long"]])
    found = replay(path, KeepingSink()).run().faults[Fault.UNKNOWN_VALUE]
    assert (found.count, [line for _, line in found.places]) == (2, [2])


def look(path: Path, options: Options = OPTIONS, most_rows: int | None = None) -> Inspection:
    return inspect(SCHEME.survey, [path], options, most_rows)


def with_times(path: Path, form: str) -> Path:
    return write(path, [[e.person, e.at.strftime(form), e.area, str(e.minutes)] for e in PAST])


def test_nothing_is_wrong_with_a_good_file(tmp_path: Path) -> None:
    found = look(write(tmp_path / EVENTS, [event.row() for event in PAST]))
    assert found.advice == [] and found.worst[1] == 0 and found.complete
    assert found.rows == len(PAST)
    expected = {period: len({p for t, p in computed(PAST) if t == period}) for period in range(8)}
    assert found.people == expected


@pytest.mark.parametrize(
    ("form", "advice"),
    [
        ("%Y-%m-%d %H:%M:%S", "without a zone in column at: give it, such as --zone Europe/Paris"),
        ("%d.%m.%Y %H:%M", '--time-format "%d.%m.%Y %H:%M", and their zone with --zone'),
        ("on a %A", "name the format with --time-format"),
    ],
)
def test_times_that_cannot_be_read_are_explained(tmp_path: Path, form: str, advice: str) -> None:
    found = look(with_times(tmp_path / EVENTS, form))
    assert found.worst == (Fault.BAD_TIME, 1.0)
    assert advice in found.advice[0] and "no event would be reported" in found.advice


def test_day_and_month_are_not_guessed_and_an_option_that_is_named_helps(tmp_path: Path) -> None:
    path, form = with_times(tmp_path / EVENTS, "%d/%m/%Y %H:%M"), "%d/%m/%Y %H:%M"
    (advice, *_) = look(path).advice
    assert form in advice and " or " in advice and "%m/%d/%Y %H:%M" in advice
    assert look(path, replace(OPTIONS, time_formats=[form], zone=ZoneInfo("UTC"))).advice == []


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
    minutes = int(advice.split("--tolerance ")[1].split("m")[0])
    assert look(path, replace(OPTIONS, tolerance=timedelta(minutes=minutes))).advice == []
    assert look(path, replace(OPTIONS, tolerance=timedelta(minutes=minutes - 1))).advice != []


def test_values_that_the_survey_does_not_have_are_explained_without_being_shown(tmp_path: Path) -> None:
    rows = [event.row() for event in PAST]
    for i in range(10):
        rows[i][2] = rows[i][2].upper()
    rows[11][2], rows[12][2] = "", "+33612345678"
    found = look(write(tmp_path / EVENTS, rows))
    (advice,) = found.advice
    assert sum(found.unknown["cell"].values()) == 12 and found.unknown["cell"][""] == 1
    assert "12 cells of column cell without a value of the survey" in advice
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
    path.write_text("\n".join([";".join(row) for row in (NAMES, *rows)]) + "\n")
    with pytest.raises(ReplayError, match="right of: --delimiter ';'"):
        look(path)
    rows[3][2] = "größe"
    path.write_bytes("\n".join(",".join(row) for row in (NAMES, *rows)).encode("cp1252"))
    assert any("try --encoding latin-1" in advice for advice in look(path).advice)
    path.write_text("msisdn,at,town,minutes\n")
    with pytest.raises(ReplayError, match="right of: --map COLUMN=area"):
        look(path)
    path.write_text("msisdn,at,cell,minutes\n", encoding="utf-16")
    with pytest.raises(ReplayError, match="right of: --encoding utf-16"):
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


@pytest.mark.parametrize(
    ("bad", "sent", "complaint"),
    [
        (slice(0, None, 5), False, r"20\.\d% have one fault: bad time \(first at line 2\); nothing was sent"),
        (slice(len(PAST) // 2, None, 2), True, r"bad time .*reports were sent"),
    ],
    ids=["at once", "later"],
)
def test_too_many_faults_stop_before_more_is_reported(
    replay: MakeReplay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: slice, sent: bool, complaint: str
) -> None:
    if sent:
        monkeypatch.setattr("producers.files.csv_events.BLOCK_BYTES", 1 << 10)
    rows, sink = [event.row() for event in PAST], KeepingSink()
    for row in rows[bad]:
        row[1] = "yesterday"
    with pytest.raises(ReplayError, match=complaint):
        replay(write(tmp_path / EVENTS, rows), sink, replace(OPTIONS, most_faults=0.05)).run()
    periods = {frame.period for frame in sink.frames(SCHEME)}
    assert bool(periods) == sent and max(periods, default=0) < 7


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
    assert advice[0].startswith("1 event before the survey's start")
    assert advice[1].startswith("1 event at or after 2026-01-31")
