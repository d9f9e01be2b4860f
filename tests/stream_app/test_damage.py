"""A damaged log of `hearsay serve`: what an operator accepts, what is lost with it, and what is not."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hearsay.cli import app as hearsay
from hearsay.data_directory import DataDirectory
from protocols.errors import LogError, StateError
from protocols.wire import CLOCK, Clock, encode_clock
from stream_app.counting.judging import Record
from stream_app.local import EmbeddedApp, damage
from stream_app.local.damage import Damage, find_damage
from stream_app.local.log import LocalLog
from stream_app.local.records import FILE_HEAD_BYTES, FileHead
from tests.helpers.dying import Killed
from tests.stream_app.test_local_log import flip
from tests.stream_app.worlds import SCHEME, Reports, Row, wire
from views.local import collector
from views.reading import Results

CONFIRMED = 3
VALUES = [b"one", b"", b"three", bytes(40), b"five"]


def written(path: Path) -> tuple[list[Record], list[int]]:
    """A log of five records, of which the state contains three; and where its head and each of them end."""
    log = LocalLog(path, 0)
    ends, records = [FILE_HEAD_BYTES], []
    for value in VALUES:
        records.append(log.append("x", value))
        log.sync()
        ends.append(path.stat().st_size)
    log.close()
    return records, ends


def accepted(path: Path, found: Damage, checksum: int) -> list[Record]:
    """What is read on of a log, when its damage is accepted."""
    path.write_bytes(FileHead(found.marker, CONFIRMED, checksum).encode() + found.whole)
    log = LocalLog(path, CONFIRMED)
    log.close()
    assert log.confirmed_checksum == checksum
    return log.unread


def test_wherever_a_bit_changes_in_what_was_counted_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    records, ends = written(path)
    whole, checksum = path.read_bytes(), records[CONFIRMED - 1].epoch
    for at in range(ends[0], ends[CONFIRMED]):
        path.write_bytes(whole)
        flip(path, at)
        with pytest.raises(LogError, match="is damaged at offset"):
            LocalLog(path, CONFIRMED)
        found = find_damage(path, CONFIRMED, checksum)
        assert found is not None and (found.lost, found.lost_bytes) == ((), 0), at
        assert accepted(path, found, checksum) == records[CONFIRMED:], at


def test_wherever_a_log_ends_too_soon_nothing_that_was_counted_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    records, ends = written(path)
    whole, checksum = path.read_bytes(), records[CONFIRMED - 1].epoch
    for end in range(ends[0], ends[CONFIRMED]):
        path.write_bytes(whole[:end])
        found = find_damage(path, CONFIRMED, checksum)
        assert found is not None and found.lost == ()
        assert found.lost_bytes <= 29, "bytes that may be the head of any record"
        assert accepted(path, found, checksum) == []
    path.unlink()
    found = find_damage(path, CONFIRMED, checksum)
    assert found is not None and found.what == "it is missing"


def test_a_head_alone_that_is_damaged_at_the_end_is_known_by_the_checksum_in_the_state(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    records, ends = written(path)
    path.write_bytes(path.read_bytes()[: ends[CONFIRMED]])
    flip(path, ends[CONFIRMED - 1] + 1)
    found = find_damage(path, CONFIRMED, records[CONFIRMED - 1].epoch)
    assert found is not None and found.lost_bytes == 0


def test_a_log_without_damage_and_one_of_another_backup_are_none(tmp_path: Path) -> None:
    """Failure would look like: reports of another log are thrown away as if they had been counted."""
    path = tmp_path / "0.log"
    records, ends = written(path)
    assert find_damage(path, CONFIRMED, records[CONFIRMED - 1].epoch) is None
    flip(path, ends[CONFIRMED] + 5)  # behind what the state contains: it is cut off at the start
    assert find_damage(path, CONFIRMED, records[CONFIRMED - 1].epoch) is None
    assert find_damage(path, CONFIRMED, 4711) is None
    assert find_damage(tmp_path / "none", 0, -1) is None


class Served:
    """A data directory of `hearsay serve`: six reports that are in the state, and three that are in the log alone."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.data = DataDirectory(root)
        self.log = self.data.collector / "log" / "0.log"
        self.ends = [FILE_HEAD_BYTES]
        app = self.open()
        for tokens in ((1,), (2, 3), (4, 5, 6)):
            self._send(app, *tokens)
        app.publish()
        for tokens in ((7,), (8, 9)):
            self._send(app, *tokens)
        app.close()

    def _send(self, app: EmbeddedApp, *tokens: int) -> None:
        app.send(0, *wire(Reports(0, tuple(map(Row, tokens)))))
        app.sync()
        self.ends.append(self.log.stat().st_size)

    def open(self) -> EmbeddedApp:
        keys = self.data.clock_key(), self.data.presence_key()
        return collector(self.data.collector, [SCHEME.survey], *keys, pace_seconds=600)

    def counted(self) -> int:
        with self.open() as app:
            app.send(0, CLOCK, encode_clock(Clock("s", 0), app.clock_key))
            app.flush()
            (final,) = Results(app.store).histograms("s")
            return final.n

    def lost(self) -> list[tuple[int, int, int]]:
        with self.open() as app:
            live = Results(app.store).live("s")
            assert live is not None
            return [tuple(loss) for loss in live.lost]


@pytest.fixture
def served(tmp_path: Path) -> Served:
    return Served(tmp_path / "data")


def recover(served: Served, *options: str) -> tuple[int, Any]:
    result = CliRunner().invoke(hearsay, ["recover", "--data", str(served.root), *options, "--json"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, json.loads(result.stdout)


def test_damage_in_what_was_counted_is_accepted_and_nothing_is_lost(served: Served) -> None:
    """Failure would look like: a collection that stands still for a record that nobody needs any more."""
    flip(served.log, served.ends[2] - 1)
    damaged = served.log.read_bytes()
    with pytest.raises(LogError, match="is damaged at offset 1") as refused:
        served.open()
    assert "hearsay recover --data" in refused.value.hint
    code, shown = recover(served)
    assert (code, shown["accepted"], served.log.read_bytes()) == (1, False, damaged)
    assert [(one["what"], one["lost"]) for one in shown["damaged"]] == [("record 1 is damaged", 0)]
    code, shown = recover(served, "--lost", "0")
    assert (code, shown["accepted"]) == (0, True)
    assert Path(shown["damaged"][0]["kept"]).read_bytes() == damaged
    assert recover(served) == (0, {"damaged": [], "accepted": False, "lost": None})
    assert served.lost() == []
    assert served.counted() == 9


def test_what_is_lost_behind_it_is_counted_and_published_as_a_shortfall(served: Served) -> None:
    flip(served.log, served.ends[1] + 40)  # record 1, which the state has
    flip(served.log, served.ends[4] - 1)  # record 3, with one report, which it has not
    lost = 2 + (served.ends[4] - served.ends[3]) // 10  # those of record 4, and what record 3 may have had
    code, shown = recover(served)
    assert (code, shown["damaged"][0]["lost"]) == (1, lost)
    recover(served, "--lost", "5")
    assert served.lost() == [(0, 1, lost + 5)]
    assert served.counted() == 6


def test_a_crash_while_it_is_accepted_changes_nothing(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    served.log.unlink()
    write = damage.write_private

    def dying(path: Path, data: bytes) -> None:
        raise Killed

    monkeypatch.setattr(damage, "write_private", dying)
    with pytest.raises(Killed):
        damage.damaged_logs(served.data.collector, served.data.clock_key(), 7)
    assert not served.log.exists()
    monkeypatch.setattr(damage, "write_private", write)
    recover(served, "--lost", "3")
    assert served.lost() == [(0, 1, 3)]
    assert served.counted() == 6


def test_people_are_told_in_sentences(served: Served) -> None:
    flip(served.log, served.ends[2] - 1)
    told = CliRunner().invoke(hearsay, ["recover", "--data", str(served.root)]).stdout
    assert "nothing is lost" in " ".join(told.split())
    assert f"hearsay recover --data {served.root} --lost 0" in told
    told = CliRunner().invoke(hearsay, ["recover", "--data", str(served.root), "--lost", "0"]).stdout
    assert "hearsay serve goes on; nothing is lost" in told and "0.damaged-3" in told


def test_what_cannot_be_recovered_is_refused(served: Served, tmp_path: Path) -> None:
    with pytest.raises(StateError, match="has no state of a collection"):
        raise_of("recover", "--data", str(tmp_path / "nothing"))
    assert not (tmp_path / "nothing").exists()
    with served.open(), pytest.raises(StateError, match="in use by another process"):
        raise_of("recover", "--data", str(served.root))
    refused = CliRunner().invoke(hearsay, ["recover", "--data", str(served.root), "--survey", "s"])
    assert "leave out one or the other" in str(refused.exception)


def raise_of(*words: str) -> None:
    error = CliRunner().invoke(hearsay, list(words)).exception
    assert error is not None
    raise error
