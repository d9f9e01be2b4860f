"""Persons become devices at once, and nothing that a replay says or writes names one."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from lab.seeded_keyrings import seeded_keyring
from producers.events.people import People
from protocols.errors import ReplayError
from tests.helpers.sinks import KeepingSink
from tests.producers.events import EVENTS, OPTIONS, START, MakeReplay, history, write
from tests.producers.populations import KEYRING


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (["p-4711", "never", "north", "1"], r"line 3: bad time \(column at\)"),
        (["p-4711", START.isoformat(), "limbo", "1"], r"line 3: unknown value \(column cell\)"),
        (["p-4711", START.isoformat()], "line 3: row that cannot be read"),
        (["p-4710", START.isoformat(), "north", "1"], "line 3: duplicate"),
    ],
)
def test_strict_stops_at_the_first_faulty_line_of_all_and_names_nobody(
    replay: MakeReplay, tmp_path: Path, row: list[str], complaint: str
) -> None:
    later = [["p-4712", "never", "north", "1"], ["too", "few"], ["", START.isoformat(), "north", "1"]]
    rows = [["p-4710", START.isoformat(), "north", "1"], row]
    rows += [] if "duplicate" in complaint else later  # duplicates are found when a period has ended
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
    written += [path.read_bytes() for path in (tmp_path / "workspace").rglob("*") if path.is_file()]
    written += [repr(summary).encode(), "".join(capfd.readouterr()).encode(), caplog.text.encode()]
    indices = [str(d).encode() for d in People(KEYRING).devices(pa.array(sorted({e.person for e in events})))]
    assert not any(b"+33" in text or any(index in text for index in indices) for text in written)


def test_the_same_person_is_the_same_device_under_one_key_only() -> None:
    persons = pa.array(["7", "8", "7"])
    devices = People(KEYRING).devices(persons)
    assert devices[0] == devices[2] != devices[1]
    assert devices[0] != People(seeded_keyring(9)).devices(persons)[0]
