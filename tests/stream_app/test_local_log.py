"""The log in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocols.errors import LogError
from stream_app.counting.judging import Record
from stream_app.local.log import LocalLog

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


def test_damage_in_what_was_confirmed_is_an_error_and_not_a_shorter_log(tmp_path: Path) -> None:
    write(tmp_path / "log", RECORDS)
    data = bytearray((tmp_path / "log").read_bytes())
    data[10] ^= 1
    (tmp_path / "log").write_bytes(data)
    with pytest.raises(LogError, match="record 0 is damaged"):
        read(tmp_path / "log", confirmed=3)
