"""The whole app in one process."""

import os
import resource
import shutil
import sqlite3
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from subprocess import run

import pytest
import structlog
from structlog.testing import capture_logs

from protocols.errors import DeliveryError, FingerprintChanged, LogError, ResultsError, StateError
from stream_app.finals import Final
from stream_app.local import LocalStore
from stream_app.local import log as local_log
from stream_app.local.log import LocalLog
from tests.helpers.another_release import never_choose
from tests.helpers.dying import Killed, Steps
from tests.helpers.surveys import of_size, scheme_with
from tests.stream_app.worlds import (
    CALENDAR,
    KEY,
    SCHEME,
    Event,
    Garbage,
    Recount,
    Reports,
    Row,
    Tick,
    by_calendar,
    counts_of,
    deal,
    wire,
)
from views.local import collector
from views.reading import Results

EVENTS: list[Event] = [
    Reports(0, tuple(Row(token, gap=3, colour=token % 3, pages=token % 1024) for token in range(1, 60))),
    Reports(1, tuple(Row(token, gap=1, colour=1, pages=3) for token in range(1, 30))),
    Reports(0, tuple(Row(token, gap=2, colour=0, pages=1) for token in range(50, 70))),
    Garbage(b"not a frame"),
    Tick(0),
    Reports(0, (Row(99),)),
    Reports(9, (Row(99),)),
    Reports(2, (Row(5, gap=9), Row(6, colour=7), Row(7))),
    Tick(3),
]


def finals(directory: Path, partitions: int) -> list[bytes]:
    flagged = by_calendar([event for event in EVENTS if not isinstance(event, Garbage)])
    with collector(directory, [SCHEME.survey, CALENDAR.survey], KEY, KEY, partitions=partitions) as app:
        for scheme, log in ((SCHEME, EVENTS), (CALENDAR, flagged)):
            for partition, events in enumerate(deal(log, partitions)):
                for event in events:
                    app.send(partition, *wire(event, scheme))
        app.flush()
        recount = Recount.of(deal(EVENTS, partitions))
        assert {
            final.period: counts_of(final) for final in map(Final.decode, Results(app.store).finals("s").values())
        } == recount.finals
        rejects = Counter[str]()
        for counter in app._counters:
            for survey, reasons in counter.rejects.items():
                rejects.update(reasons if survey != "c" else {})
        assert rejects == recount.rejects
        return [message.value for message in app.store.messages("histograms")]


def test_one_three_and_eight_partitions_give_the_same_final_bytes(tmp_path: Path) -> None:
    one = finals(tmp_path / "1", 1)
    assert len(one) == 2 * 4
    assert finals(tmp_path / "3", 3) == one
    assert finals(tmp_path / "8", 8) == one


def events_of_a_week() -> list[Event]:
    week: list[Event] = []
    for period in range(7):
        for start in range(1, 2_000, 250):
            rows = tuple(Row(t, 1 + t % 3, (t + period) % 3, t % 1024) for t in range(start, start + 250))
            week.append(Reports(period, rows))
        week.append(Tick(period))
    return week


def report_a_week(directory: Path) -> None:
    """Report a week from the beginning, as a fleet does that was interrupted."""
    with collector(directory, [SCHEME.survey], KEY, KEY, partitions=2) as app:
        dealt = deal(events_of_a_week(), 2)
        for pair in zip(*dealt, strict=True):
            for partition, event in enumerate(pair):
                app.send(partition, *wire(event))
            app.flush()


def closing(directory: Path, period: int) -> list[int]:
    """How many reports each final has, after one more process has closed a period."""
    with collector(directory, [SCHEME.survey], KEY, KEY) as app:
        app.send(0, *wire(Tick(period)))
        app.flush()
        return [final.n for final in Results(app.store).histograms("s")]


def test_with_a_pace_only_what_closes_a_period_is_written_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    rows = tuple(Row(token, gap=3, colour=token % 3) for token in range(1, 60))
    app = collector(tmp_path, [SCHEME.survey], KEY, KEY, pace_seconds=600)
    try:
        for period in (0, 1):
            before = dict(app.store.records(""))
            app.send(0, *wire(Reports(period, rows)))
            app.flush()
            assert dict(app.store.records("")) == before
            if period == 0:
                app.send(0, *wire(Tick(0)))
                app.flush()
    finally:
        app.close()  # as if it had been killed: the reports of period 1 are in the log alone
    with collector(tmp_path, [SCHEME.survey], KEY, KEY, pace_seconds=600) as again:
        again.send(0, *wire(Reports(1, rows)))
    assert closing(tmp_path, 1) == [len(rows)] * 2


def test_killed_between_two_steps_it_loses_nothing_and_counts_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure would be a final that differs from the recount's, or one that changed between two kills."""
    monkeypatch.setattr(local_log, "LARGE_BYTES", 1)  # so that kills come while logs begin anew, too
    steps = Steps(monkeypatch, (LocalLog, "sync"), (LocalLog, "forget"), (LocalStore, "write"))
    published: dict[bytes, bytes] = {}
    for fatal in (3, 17, 32, 49, 67, 0):
        steps.begin(fatal)
        with suppress(Killed):
            report_a_week(tmp_path)
        store = LocalStore.existing(tmp_path)
        finals = {message.key: message.value for message in store.messages("histograms")}
        results = {final.period: counts_of(final) for final in map(Final.decode, Results(store).finals("s").values())}
        store.close()
        assert finals | published == finals, "a final changed or was lost"
        published = finals
    assert results == Recount.of(deal(events_of_a_week(), 2)).finals


READ = """
import sys
from pathlib import Path
from stream_app.local import LocalStore
from views.reading import Results
store = LocalStore.existing(Path(sys.argv[1]))
print([final.period for final in Results(store).histograms("s")])
"""


def test_results_can_be_read_from_a_read_only_directory(tmp_path: Path) -> None:
    report_a_week(tmp_path)
    unprivileged = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    if unprivileged and shutil.which("setpriv") is None:
        pytest.skip("root may write to a read-only directory, and setpriv, which could prevent that, is missing")
    tmp_path.chmod(0o555)
    try:
        seen = run(
            [*unprivileged, sys.executable, "-c", READ, str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
    finally:
        tmp_path.chmod(0o755)
    assert seen.stderr == ""
    assert seen.stdout == f"{list(range(len(Recount.of(deal(events_of_a_week(), 2)).finals)))}\n"


def test_a_file_that_is_not_a_store_is_named(tmp_path: Path) -> None:
    (tmp_path / "results.sqlite").write_text("not a database, and longer than its header" * 10)
    with pytest.raises(ResultsError, match=r"results\.sqlite cannot be read"):
        LocalStore.existing(tmp_path)


def test_a_directory_serves_one_process_also_after_files_in_it_were_deleted(tmp_path: Path) -> None:
    """A failure would be two processes that append to one log."""
    with collector(tmp_path, [SCHEME.survey], KEY, KEY):
        for file in tmp_path.iterdir():
            if file.is_file() and not file.name.startswith("results.sqlite"):
                file.unlink()
        with pytest.raises(StateError, match="in use by another process"):
            collector(tmp_path, [SCHEME.survey], KEY, KEY)


def test_a_release_that_resolves_a_survey_to_other_terms_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = scheme_with(of_size(3), eps_inf=2, eps_1=1)
    collector(tmp_path, [before.survey], KEY, KEY).close()
    with pytest.raises(FingerprintChanged, match="'test' was counted"):
        collector(tmp_path, [scheme_with(of_size(3), eps_inf=2, eps_1=1, minimum=5).survey], KEY, KEY)
    never_choose(monkeypatch, before.questions[0].label)
    with pytest.raises(FingerprintChanged, match="'test' was counted"):
        collector(tmp_path, [before.survey], KEY, KEY)


def test_a_survey_that_is_only_kept_and_resolves_to_other_terms_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failure would look like: `serve` ends because of a survey that nobody asks any more."""
    before = scheme_with(of_size(3), eps_inf=2, eps_1=1)
    collector(tmp_path, [before.survey], KEY, KEY).close()
    never_choose(monkeypatch, before.questions[0].label)
    with collector(tmp_path, [], KEY, KEY) as app:
        assert list(app.refused) == ["test"]
        assert "'test' was counted" in app.refused["test"]
        assert app.store.surveys() == []


def test_a_directory_keeps_its_partitions(tmp_path: Path) -> None:
    for given in (3, 1):
        with collector(tmp_path, [SCHEME.survey], KEY, KEY, partitions=given) as app:
            assert app.partitions == 3
            for partition, events in enumerate(deal(EVENTS, 3)):
                for event in events:
                    app.send(partition, *wire(event))
    assert (tmp_path / "log" / "2.log").exists()


@pytest.mark.parametrize(("replaced", "what"), [("shorter", "ends before offset"), ("another", "is another")])
def test_logs_that_are_not_those_that_were_counted_are_refused(tmp_path: Path, replaced: str, what: str) -> None:
    for name, tokens in (("first", (1, 2, 3)), ("shorter", (1,)), ("another", (1, 2, 4, 5))):
        with collector(tmp_path / name, [SCHEME.survey], KEY, KEY) as app:
            for token in tokens:
                app.send(0, *wire(Reports(0, (Row(token),))))
    shutil.copy(tmp_path / replaced / "log" / "0.log", tmp_path / "first" / "log" / "0.log")
    with pytest.raises(LogError, match=what):
        collector(tmp_path / "first", [SCHEME.survey], KEY, KEY)


def test_a_failed_write_is_an_error_and_reopening_resumes(tmp_path: Path) -> None:
    """A failure would be an app that goes on with counts that its store does not have."""
    app = collector(tmp_path, [SCHEME.survey], KEY, KEY)
    app.send(0, *wire(Reports(0, (Row(1), Row(2)))))
    blocker = sqlite3.connect(tmp_path / "results.sqlite")
    blocker.execute("CREATE TRIGGER full BEFORE INSERT ON state BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    with pytest.raises(DeliveryError, match="disk full"):
        app.flush()
    blocker.execute("DROP TRIGGER full")
    blocker.close()
    assert closing(tmp_path, 0) == [2]


def test_a_disk_that_is_full_at_the_start_is_an_error_that_says_so(tmp_path: Path) -> None:
    app = collector(tmp_path, [SCHEME.survey], KEY, KEY)
    app.send(0, *wire(Reports(0, tuple(map(Row, range(1, 5001))))))
    app.sync()
    app.close()  # as if it had been killed: opening it again has something to write
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for space, error in ((0, StateError), (40_000, DeliveryError)):  # none, or what SQLite takes to be opened
        resource.setrlimit(resource.RLIMIT_FSIZE, (space, before[1]))
        try:
            with pytest.raises(error, match="disk") as caught:
                collector(tmp_path, [SCHEME.survey], KEY, KEY)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert "make sure the disk has space" in caught.value.hint
    assert closing(tmp_path, 0) == [5000]


def test_what_is_cut_off_a_damaged_log_is_in_the_shortfall_of_the_open_periods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log" / "0.log"
    app = collector(tmp_path, [SCHEME.survey], KEY, KEY, pace_seconds=600)
    ends = [path.stat().st_size]
    for tokens in ((1,), (2, 3), (4,), (5, 6, 7)):
        app.send(0, *wire(Reports(0, tuple(map(Row, tokens)))))
        app.sync()
        ends.append(path.stat().st_size)
    app.close()
    data = bytearray(path.read_bytes())
    data[ends[2] - 1] ^= 1
    path.write_bytes(data)
    lost = 1 + 3 + (ends[2] - ends[1]) // 10
    with monkeypatch.context() as crash:  # when it is noted, but not yet cut off
        crash.setattr(structlog, "get_logger", lambda name: None)
        with pytest.raises(AttributeError):
            collector(tmp_path, [SCHEME.survey], KEY, KEY)
    assert path.read_bytes() == data
    with capture_logs() as said:
        for _ in range(2):  # noted once
            with collector(tmp_path, [SCHEME.survey], KEY, KEY) as again:
                live = Results(again.store).live("s")
                assert live is not None and live.lost == ((0, 1, lost),)
    assert [(entry["log_level"], entry["records"]) for entry in said if "is damaged" in entry["event"]] == [
        ("error", 2)
    ]
    assert (tmp_path / "log" / "0.cut-1").read_bytes() == data[ends[1] :]
    assert closing(tmp_path, 0) == [1]


@pytest.mark.parametrize(
    ("table", "column", "error"),
    [
        ("state", "value", StateError),
        ("state", "key", StateError),
        ("settings", "value", StateError),
        ("messages", "value", ResultsError),
    ],
)
def test_a_bit_that_changes_in_the_store_is_noticed(
    tmp_path: Path, table: str, column: str, error: type[Exception]
) -> None:
    """A failure would be counts that nobody sent, in a final."""
    with collector(tmp_path, [SCHEME.survey], KEY, KEY) as app:
        app.send(0, *wire(Reports(0, (Row(1), Row(2)))))
        app.send(0, *wire(Tick(0)))
        app.send(0, *wire(Reports(1, (Row(1), Row(2)))))
    database = sqlite3.connect(tmp_path / "results.sqlite")
    name = "name" if table == "settings" else "key"
    for (key,) in database.execute(f"SELECT {name} FROM {table}").fetchall():
        database.execute("BEGIN")
        (value,) = database.execute(f"SELECT {column} FROM {table} WHERE {name} = ?", (key,)).fetchone()
        flipped = value[:-1] + (bytes([value[-1] ^ 1]) if isinstance(value, bytes) else chr(ord(value[-1]) ^ 1))
        database.execute(f"UPDATE {table} SET {column} = ? WHERE {name} = ?", (flipped, key))
        database.commit()
        with (
            pytest.raises(error, match="is damaged: its checksum"),
            collector(tmp_path, [SCHEME.survey], KEY, KEY) as app,
        ):
            app.store.after(0)
        database.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (value, flipped))
        database.commit()
    database.close()
