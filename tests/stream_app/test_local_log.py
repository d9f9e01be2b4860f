"""The log in a file."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from protocols.errors import LogError
from stream_app.counting.judging import Record
from stream_app.local import log as local_log
from stream_app.local.log import Cut, LocalLog
from tests.helpers.dying import Killed

RECORDS = [Record(0, "text/plain", b"one"), Record(1, "", b""), Record(2, "x", bytes(300))]


def write(path: Path, records: list[Record]) -> None:
    log = LocalLog(path, confirmed=0)
    for record in records:
        log.append(record.content_type or "", record.value or b"")
    log.sync()
    log.close()


def read(path: Path, confirmed: int = 0) -> list[Record]:
    log = LocalLog(path, confirmed)
    log.close()
    return log.unread


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
    assert read(path, confirmed=2) == RECORDS[2:]


@pytest.mark.parametrize("damage", ["zeros", "a flipped bit"])
def test_whatever_a_lost_power_leaves_after_the_confirmed_records_is_cut_off(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "log"
    write(path, RECORDS[:1])
    confirmed = path.stat().st_size
    write(path, RECORDS[1:])
    if damage == "zeros":
        data = path.read_bytes()
        path.write_bytes(data[:confirmed] + bytes(len(data) - confirmed))
    else:
        flip(path, confirmed + 8)  # in the first of two records
    assert read(path, confirmed=1) == []
    write(path, RECORDS[1:])
    assert read(path) == RECORDS


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


@pytest.mark.parametrize("at", [-1, 5], ids=["in a body", "in a head"])
def test_damage_in_what_was_confirmed_is_an_error_and_not_a_shorter_log(tmp_path: Path, at: int) -> None:
    path = tmp_path / "log"
    ends = sizes(path)
    flip(path, ends[1] + at)
    damaged = path.read_bytes()
    with pytest.raises(LogError, match=r"is damaged at offset [01], but the state has offsets up to 2"):
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
        with pytest.raises(Killed):
            LocalLog(path, 0, Mock(side_effect=Killed))
        assert path.read_bytes() == damaged
    log = LocalLog(path, 0, lambda cut: told.append((cut, path.stat().st_size)))
    assert log.unread == RECORDS[:record]
    for appended in RECORDS[record:]:
        log.append(appended.content_type or "", appended.value or b"")
    log.close()
    assert read(path) == RECORDS, "it is told once"
    ((cut, size),) = told
    assert size == ends[-1]
    assert (cut.offset, list(cut.records)) == (record, RECORDS[record + 1 :])
    assert cut.damaged_bytes == ends[record + 1] - ends[record]
    assert cut.file.read_bytes() == damaged[ends[record] :]


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


def test_a_log_that_begins_anew_goes_on_with_its_offsets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    log = LocalLog(path, 0)
    written = [log.append("x", bytes([number])) for number in range(20)]
    log.forget()
    log.sync()
    assert read(path) == written, "it is not large"
    monkeypatch.setattr(local_log, "LARGE_BYTES", 100)
    log.forget()
    again = LocalLog(path, 20)
    again.close()
    assert (again.unread, again.next_offset, again.confirmed_checksum) == ([], 20, written[-1].epoch)
    with pytest.raises(LogError, match="begins with offset 20, but the state goes on at 19"):
        LocalLog(path, 19)
    later = log.append("x", b"more")
    log.forget()
    log.sync()
    log.close()
    assert read(path, confirmed=20) == [later]
    assert [file.name for file in tmp_path.iterdir()] == ["log"]
