"""The log in a file."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from protocols.errors import LogError
from stream_app.counting.judging import Record
from stream_app.local import log as local_log
from stream_app.local.log import Cut, LocalLog


class Crash(Exception):
    """The process ends here."""


RECORDS = [Record(0, "text/plain", b"one"), Record(1, "", b""), Record(2, "x", bytes(300))]


def write(path: Path, records: list[Record]) -> None:
    log = LocalLog(path, confirmed=0)
    for record in records:
        log.append(record.content_type or "", record.value or b"")
    log.sync()
    log.close()


def read(path: Path, first: int = 0, confirmed: int = 0) -> list[Record]:
    log = LocalLog(path, confirmed)
    try:
        return list(log.read(first))
    finally:
        log.close()


def test_what_was_appended_is_read_again_from_any_offset(tmp_path: Path) -> None:
    write(tmp_path / "log", RECORDS)
    assert read(tmp_path / "log") == RECORDS
    assert read(tmp_path / "log", 2) == RECORDS[2:]


def test_wherever_the_last_record_breaks_off_the_others_remain_and_appending_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write(path, RECORDS[:2])
    whole = path.stat().st_size
    write(path, RECORDS[2:])
    data = path.read_bytes()
    for end in range(whole, len(data)):
        path.write_bytes(data[:end])
        write(path, RECORDS[2:])
        assert read(path) == RECORDS, f"cut at byte {end}"


@pytest.mark.parametrize("damage", ["zeros", "a flipped bit"])
def test_whatever_a_lost_power_leaves_after_the_confirmed_records_is_cut_off(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "log"
    write(path, RECORDS[:1])
    confirmed = path.stat().st_size
    write(path, RECORDS[1:])
    data = bytearray(path.read_bytes())
    if damage == "zeros":
        data[confirmed:] = bytes(len(data) - confirmed)
    else:
        data[confirmed + 8] ^= 1  # in the first of two records
    path.write_bytes(data)
    assert read(path, confirmed=1) == RECORDS[:1]
    write(path, RECORDS[1:])
    assert read(path, confirmed=1) == RECORDS


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def sizes(path: Path) -> list[int]:
    """Where the head of the file and each of the records end, after all were written to it."""
    found = []
    for count in range(len(RECORDS) + 1):
        path.unlink(missing_ok=True)
        write(path, RECORDS[:count])
        found.append(path.stat().st_size)
    return found


def test_damage_in_what_was_confirmed_is_an_error_and_not_a_shorter_log(tmp_path: Path) -> None:
    path = tmp_path / "log"
    ends = sizes(path)
    whole = path.read_bytes()
    flip(path, ends[1] - 1)
    with pytest.raises(LogError, match="record 0 is damaged"):
        read(path, confirmed=3)
    path.write_bytes(whole)
    flip(path, ends[1] + 5)
    damaged = path.read_bytes()
    with pytest.raises(LogError, match="is damaged at offset 1, but the state has offsets up to 2"):
        read(path, confirmed=3)
    assert path.read_bytes() == damaged, "whoever repairs it needs all of it"


@pytest.mark.parametrize(("record", "at"), [(0, 5), (0, -1), (1, 9), (1, 17), (2, 20), (2, -1)])
def test_whole_records_behind_a_damaged_one_are_kept_and_told_before_they_are_cut_off(
    tmp_path: Path, record: int, at: int
) -> None:
    """They may have been confirmed. So may the last one, if it has all of its bytes."""
    path, told = tmp_path / "0.log", list[tuple[Cut, int]]()
    ends = sizes(path)
    flip(path, (ends[record] if at >= 0 else ends[record + 1]) + at)
    damaged = path.read_bytes()
    for _ in range(2):  # a crash while it is told does not change what is told
        with pytest.raises(Crash):
            LocalLog(path, 0, _crash)
        assert path.read_bytes() == damaged
    log = LocalLog(path, 0, lambda cut: told.append((cut, path.stat().st_size)))
    assert list(log.read()) == RECORDS[:record]
    for appended in RECORDS[record:]:
        log.append(appended.content_type or "", appended.value or b"")
    log.close()
    assert read(path) == RECORDS, "it is told once"
    ((cut, size),) = told
    assert size == ends[-1]
    assert (cut.offset, list(cut.records)) == (record, RECORDS[record + 1 :])
    assert cut.damaged_bytes == ends[record + 1] - ends[record]
    assert cut.file.read_bytes() == damaged[ends[record] :]


def _crash(*_: Any) -> None:
    raise Crash("a crash")


def test_no_sender_can_put_a_record_into_a_value(tmp_path: Path) -> None:
    """The search behind damaged bytes would otherwise find what a device wrote, as a record of its own."""
    write(tmp_path / "other", RECORDS)
    log, told = LocalLog(tmp_path / "log", 0), list[Cut]()
    log.append("", (tmp_path / "other").read_bytes())
    log.close()
    flip(tmp_path / "log", (tmp_path / "log").stat().st_size - 1)
    LocalLog(tmp_path / "log", 0, told.append).close()
    assert [cut.records for cut in told] == [()]


def test_a_log_of_another_release_and_one_without_its_head_are_refused(tmp_path: Path) -> None:
    for content, what in ((b"\x04\0\0\0" * 9, "not a log of this release"), (b"hearsay1", "the head of .* is damaged")):
        (tmp_path / "log").write_bytes(content)
        with pytest.raises(LogError, match=what):
            LocalLog(tmp_path / "log", 0)
        assert (tmp_path / "log").read_bytes() == content
    with pytest.raises(LogError, match="is missing, but the state has offsets up to 2"):
        LocalLog(tmp_path / "none", 3)


def test_a_shortened_log_goes_on_with_its_offsets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_log, "DROPPED_BYTES", 1)
    path = tmp_path / "log"
    log = LocalLog(path, 0)
    written = [log.append("x", bytes([number])) for number in range(20)]
    log.shorten(3)
    assert log.first == 0, "the rest is larger: it would be copied again and again"
    for first in (15, 19, 20):
        log.shorten(first)
        assert (log.first, log.next_offset, list(log.read())) == (first, 20, written[first:])
        again = LocalLog(path, 20)
        assert (again.first, again.next_offset, again.confirmed_checksum) == (first, 20, written[-1].epoch)
        again.close()
        with pytest.raises(LogError, match=f"begins with offset {first}, but the state goes on at {first - 1}"):
            LocalLog(path, first - 1)
    written.append(log.append("x", b"more"))
    log.sync()
    log.close()
    assert read(path, confirmed=20) == written[20:]


def _points(count: int) -> list[Any]:
    return [pytest.param(number, id=f"step {number}") for number in range(count)]


@pytest.mark.parametrize("step", _points(6))
def test_a_crash_at_any_step_of_shortening_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    monkeypatch.setattr(local_log, "DROPPED_BYTES", 1)
    path, steps = tmp_path / "log", list[str]()
    log = LocalLog(path, 0)
    written = [log.append("x", bytes([number])) for number in range(20)]
    log.sync()

    def crashing(name: str, do: Callable[..., Any]) -> Callable[..., Any]:
        def tried(*arguments: Any) -> Any:
            steps.append(name)
            if len(steps) == step + 1:
                raise Crash(name)
            return do(*arguments)

        return tried

    with monkeypatch.context() as crash:
        crash.setattr(local_log, "open_private", crashing("open", local_log.open_private))
        crash.setattr(local_log.shutil, "copyfileobj", crashing("copy", local_log.shutil.copyfileobj))
        crash.setattr(os, "fsync", crashing("fsync", os.fsync))
        crash.setattr(Path, "replace", crashing("replace", Path.replace))
        crash.setattr(local_log, "sync_directory", crashing("sync", lambda directory: None))
        with pytest.raises(Crash):
            log.shorten(15)
    log.close()
    assert steps == ["open", "copy", "fsync", "replace", "sync", "open"][: step + 1], (
        "a draft is on disk before it counts"
    )
    again = LocalLog(path, 20)
    first = 15 if "sync" in steps else 0
    assert (again.first, again.next_offset, list(again.read())) == (first, 20, written[first:])
    again.append("x", b"more")
    again.shorten(19)
    assert (again.first, again.next_offset) == (19, 21)
    again.close()
    assert [file.name for file in tmp_path.iterdir()] == ["log"]


def test_a_log_that_finds_no_room_to_be_shortened_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure would be a process that can never start again, although its records have room."""
    monkeypatch.setattr(local_log, "DROPPED_BYTES", 1)
    tried = list[int]()

    def full(*_: Any) -> None:
        tried.append(log.next_offset)
        raise OSError(errno.ENOSPC, "no space left on device")

    log = LocalLog(tmp_path / "log", 0)
    with monkeypatch.context() as disk:
        disk.setattr(local_log.shutil, "copyfileobj", full)
        for number in range(20):
            log.append("x", bytes([number]))
            log.shorten(log.next_offset)
    assert tried == [1, 2, 4, 8, 16], "not again and again"
    assert [file.name for file in tmp_path.iterdir()] == ["log"]
    assert log.first == 0 and len(list(log.read())) == 20
    for number in range(12):
        log.append("x", bytes([number]))
    log.shorten(32)
    assert (log.first, log.next_offset) == (32, 32)
    log.close()
