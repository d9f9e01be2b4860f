"""What a device erased is nowhere on the disk, and a copy of its file reads nothing that it answers later."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hearsay_device import Device
from hearsay_device.storage import Storage
from tests.clients.cases import entropy_of
from tests.clients.libraries import open_device, stored
from tests.clients.test_device import ANYTHING, ONCE, TWICE, Days, refused
from tests.helpers.surveys import of_size, scheme_with

ASKED = scheme_with(of_size(24, mechanism="oue"), eps=1)  # with few bits, two values may say the same
LONG = scheme_with(of_size(5000, mechanism="grr"), eps=1)  # the document has more pages than the cache
LATER_DAYS = range(1, 5)


def read_by_a_thief(library: str, folder: Path, entropy: str | None) -> tuple[int, int]:
    """Of later reports, whose value and whose token can be computed from a copy of the file of day 0.

    The thief settles each day with each value, and compares. `entropy` names what devices draw: a
    thief who knows it must read everything, or the attack is none.
    """
    clock = Days()
    values = tokens = 0
    with open_device(library, folder / "device", clock, ANYTHING, entropy) as device:
        device.join(ASKED.terms, trust_first_use=True)
        device.settle("test", {"a": 0})
        device.confirm("test", 0)
        copied = Path(shutil.copy(folder / "device", folder / "copied"))
        for clock.day in LATER_DAYS:
            truth = 3 * int(clock.day) % 8
            report = json.loads(device.settle("test", {"a": truth}).report)
            device.confirm("test", int(clock.day))
            made = [_made(library, copied, clock, entropy, value) for value in range(8)]
            same = [value for value in range(8) if made[value]["answers"] == report["answers"]]
            values += same == [truth]
            tokens += report["token"] in [each["token"] for each in made]
    return values, tokens


def _made(library: str, copied: Path, clock: Days, entropy: str | None, value: int) -> Any:
    trial = Path(shutil.copy(copied, copied.with_name("trial")))
    with open_device(library, trial, clock, ANYTHING, entropy) as device:
        return json.loads(device.settle("test", {"a": value}).report)


def test_a_copy_of_the_file_reads_no_later_answer_and_no_token(tmp_path: Path, library: str) -> None:
    for name in ("known", "unknown"):
        (tmp_path / name).mkdir()
    days = len(LATER_DAYS)
    assert read_by_a_thief(library, tmp_path / "known", "known") == (days, days)
    values, tokens = read_by_a_thief(library, tmp_path / "unknown", None)
    assert tokens == 0
    assert values == 0


@pytest.mark.parametrize("scheme", [ONCE, TWICE], ids=["one-shot", "round 2"])
def test_no_key_of_a_report_is_ever_on_the_disk(tmp_path: Path, library: str, scheme: Any) -> None:
    """Nor is the token of one that was delivered."""
    clock = Days()
    with open_device(library, tmp_path / "device", clock, ANYTHING, "erased") as device:
        device.join(scheme.terms, trust_first_use=True)
        for clock.day in range(3):
            key = entropy_of("erased")(f"period test {int(clock.day)}")
            token = json.loads(device.settle("test", {"a": 2}).report)["token"].encode()
            assert token in _all_bytes(tmp_path)
            device.confirm("test", int(clock.day))
            raw = _all_bytes(tmp_path)
            assert token not in raw
            assert key not in raw and key.hex().encode() not in raw
    assert set(stored(library, tmp_path / "device")["surveys"]["test"]) & {"key", "key_period"} == set()


def _all_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


class Linked:
    """A connection that gives the journal a second name after each statement, as a disk keeps unlinked blocks."""

    def __init__(self, base: sqlite3.Connection, executed: Callable[[str], None]) -> None:
        self._base = base
        self._executed = executed

    def execute(self, statement: str, *given: Any) -> Any:
        found = self._base.execute(statement, *given)
        self._executed(statement)
        return found

    @property
    def in_transaction(self) -> bool:
        return self._base.in_transaction

    def close(self) -> None:
        self._base.close()


class Disk:
    """What a disk keeps of a device's journal. `links` are second names; `copies`, states after a loss of power."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.path = folder / "device"
        self.path.parent.mkdir()
        self.links: list[Path] = []
        self.copies: list[Path] = []
        self.copying = False
        connect = sqlite3.connect

        def connected(*given: Any, **more: Any) -> Linked:
            base = connect(*given, **more)
            base.execute("pragma cache_size = 1")  # pages are written before the commit: the journal is needed then
            return Linked(base, self._executed)

        monkeypatch.setattr(sqlite3, "connect", connected)

    def _executed(self, statement: str) -> None:
        journal = self.path.with_name("device-journal")
        if journal.exists():
            link = self.folder.with_name(f"{self.folder.name} link {len(self.links)}")
            os.link(journal, link)
            self.links.append(link)
        if self.copying and statement.startswith(("update", "commit")):
            copy = self.folder.with_name(f"{self.folder.name} {len(self.copies)} {statement[:6]}")
            self.copies.append(Path(shutil.copytree(self.folder, copy)))


def confirmed(disk: Disk) -> bytes:
    """The token of a report that a device has settled and delivered; the disk is watched from the delivery on."""
    with Device(disk.path, limits=ANYTHING, now=Days()) as device:
        device.join(LONG.terms, trust_first_use=True)
        token: str = json.loads(device.settle("test", {"a": 2}).report)["token"]
        disk.copying = True
        device.confirm("test", 0)
        disk.copying = False
    return token.encode()


def test_what_was_erased_is_not_in_the_journal_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(tmp_path / "one", monkeypatch)
    token = confirmed(disk)
    assert len(disk.links) > 3
    assert not [link for link in disk.links if token in link.read_bytes()]
    assert token not in disk.path.read_bytes()
    monkeypatch.setattr(Storage, "_blank_journal", lambda storage: None)
    control = Disk(tmp_path / "control", monkeypatch)
    token = confirmed(control)
    assert [link for link in control.links if token in link.read_bytes()], "this test sees nothing"


def test_what_a_crash_left_in_the_journal_is_erased_when_the_file_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Power fails before the change is committed, or after it and before the journal is overwritten."""
    disk = Disk(tmp_path / "one", monkeypatch)
    token = confirmed(disk)
    monkeypatch.undo()
    assert {copy.name.split()[-1] for copy in disk.copies} == {"update", "commit"}
    for copy in disk.copies:
        journal = copy / "device-journal"
        os.link(journal, copy / "caught")
        assert token in journal.read_bytes()
        with Device(copy / "device", limits=ANYTHING, now=Days()) as device:
            owed = [json.loads(each.report)["token"].encode() for each in device.owed("test")]
        assert not any((copy / "caught").read_bytes())
        assert owed == ([] if copy.name.endswith("commit") else [token])


def test_a_file_in_wal_mode_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "device"
    Device(path, now=Days()).close()
    base = sqlite3.connect(path)
    assert base.execute("pragma journal_mode = wal").fetchone() == ("wal",)
    base.close()
    with refused("state") as caught:
        Device(path, now=Days())
    assert "WAL mode" in str(caught.value)
    base = sqlite3.connect(path)
    base.execute("pragma journal_mode = delete")
    base.close()
    Device(path, now=Days()).close()
