"""A disk that cannot write: what was confirmed is there all the same, and nothing that was not written is confirmed."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from hearsay.serving.embedded_log import EmbeddedLog
from protocols.errors import DeliveryError
from stream_app.local import EmbeddedApp, embedded
from stream_app.local.log import LocalLog
from tests.helpers.lossy_disk import LossyDisk
from tests.stream_app.worlds import KEY, SCHEME, Reports, Row, Tick, wire
from views.local import collector
from views.reading import Results


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[LossyDisk]:
    with closing(LossyDisk(monkeypatch)) as lossy:
        yield lossy


def opened(directory: Path) -> EmbeddedApp:
    """A collector that publishes nothing by itself, as between two publications of `hearsay serve`."""
    return collector(directory, [SCHEME.survey], KEY, KEY, pace_seconds=600)


def send(app: EmbeddedApp, *tokens: int) -> None:
    app.send(0, *wire(Reports(0, tuple(map(Row, tokens)))))


def counted(directory: Path) -> int:
    with opened(directory) as app:
        app.send(0, *wire(Tick(0)))
        app.flush()
        (final,) = Results(app.store).histograms("s")
        return final.n


def test_what_a_sync_could_not_write_is_written_to_a_new_file(tmp_path: Path, disk: LossyDisk) -> None:
    """Failure would look like: a second sync of the same file succeeds, and what it confirmed is gone."""
    file = tmp_path / "log" / "0.log"
    app = opened(tmp_path)
    send(app, 1)
    app.sync()
    before = file.stat().st_ino
    send(app, 2, 3)
    disk.failures = 1
    with capture_logs() as said:
        app.sync()
    assert [entry["log_level"] for entry in said if "a sync failed" in entry["event"]] == ["error"]
    assert file.stat().st_ino != before
    send(app, 4)
    app.sync()
    app.close()
    disk.lose_power(file)
    assert counted(tmp_path) == 4


def test_a_process_that_could_write_nothing_confirms_nothing_and_the_next_one_writes_anew(
    tmp_path: Path, disk: LossyDisk
) -> None:
    """Failure would look like: a start that fails, because the state has records that the log never had on disk."""
    file = tmp_path / "log" / "0.log"
    app = opened(tmp_path)
    send(app, 1)
    app.sync()
    send(app, 2, 3)
    disk.failures = 2  # also the new file
    with pytest.raises(DeliveryError, match="Input/output error"):
        app.sync()
    assert [path.name for path in file.parent.iterdir()] == ["0.log"]
    opened(tmp_path).__exit__(None, None, None)  # reads what the kernel still shows, and counts it
    disk.lose_power(file)
    assert counted(tmp_path) == 3


def test_what_the_disk_has_lost_of_confirmed_records_ends_the_process(tmp_path: Path, disk: LossyDisk) -> None:
    """Failure would look like: a new log that lacks what was confirmed, without a word."""
    log = LocalLog(tmp_path / "0.log", 0)
    log.append("x", b"confirmed")
    log.sync()
    written = (tmp_path / "0.log").read_bytes()
    log.append("x", b"and more")
    (tmp_path / "0.log").write_bytes(written[:-1] + b"?")
    disk.failures = 1
    with pytest.raises(OSError, match="Input/output error"):
        log.sync()
    log.close()


def test_a_report_is_confirmed_by_serve_after_a_failed_sync(tmp_path: Path, disk: LossyDisk) -> None:
    log = EmbeddedLog(opened(tmp_path), [SCHEME.survey], now=lambda: 0.0)
    _, frame = wire(Reports(0, (Row(1), Row(2))))
    disk.failures = 1
    asyncio.run(log.write([(0, frame)]))
    disk.lose_power(tmp_path / "log" / "0.log")  # and the process with it: nothing is flushed any more
    log._app.close()
    log._thread.shutdown()
    assert counted(tmp_path) == 2


def test_what_waits_for_a_sync_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is kept in memory, in case that sync fails."""
    monkeypatch.setattr(embedded, "UNSYNCED_BYTES", 1000)
    app = opened(tmp_path)
    most = 0
    for token in range(1, 60):
        send(app, token)
        most = max(most, app._logs[0].unsynced_bytes)
    assert most <= 1000
    app.close()


def test_the_store_is_written_anew_when_it_is_opened(tmp_path: Path) -> None:
    """What a failed sync has left in SQLite's log is readable, and may not be on disk: the database must have it."""
    app = opened(tmp_path)
    send(app, 1)
    app.publish()
    kept = {name: (tmp_path / name).read_bytes() for name in ("results.sqlite", "results.sqlite-wal")}
    app.close()
    for name, content in kept.items():  # as a process leaves them that is killed
        (tmp_path / name).write_bytes(content)
    assert kept["results.sqlite-wal"]
    again = opened(tmp_path)
    rows = "SELECT COUNT(*) FROM state"
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "only.sqlite").write_bytes((tmp_path / "results.sqlite").read_bytes())
    with closing(sqlite3.connect(tmp_path / "copy" / "only.sqlite")) as alone:
        alone.execute("PRAGMA journal_mode = DELETE")
        (found,) = alone.execute(rows).fetchone()
    assert found > 0
    again.close()
