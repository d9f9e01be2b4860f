"""State that another release has written is read, or refused with a sentence; never taken for something else."""

import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from protocols.errors import StateError
from protocols.randomness import Keyring
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.log import codec
from stream_app.log.codec import pack, unpack
from stream_app.log.flushes import state_key
from stream_app.merging.merger import Merger
from tests.helpers.nursery import run
from tests.stream_app.worlds import KEY, SURVEYS

STATES = Path(__file__).parents[1] / "states"


def test_a_newer_version_is_refused_with_both_numbers_and_an_older_one_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    older = pack({"offset": 7})
    newer = pack({"offset": 8}, version=codec.VERSION + 1)
    assert unpack(older)[0] == {"offset": 7}
    with pytest.raises(StateError, match="the state has version 5, and this release reads versions up to 4"):
        unpack(newer)
    monkeypatch.setattr(codec, "OLDEST", codec.OLDEST + 1)
    with pytest.raises(StateError, match="version 3, and this release reads versions from 4 on"):
        unpack(older)


@pytest.mark.parametrize("data", [b"", b"h", b"hx", b"H1....", b"\x00" * 20, pack({})[:-1]])
def test_what_is_no_state_record_is_refused(data: bytes) -> None:
    with pytest.raises(StateError, match="cannot be read"):
        unpack(data)


@pytest.mark.parametrize("head", [{}, {"offset": 1}, {"offset": 1, "mark": {"unheard-of": 1}}, []])
def test_a_state_of_another_shape_is_refused_when_it_is_recovered(head: dict[str, object]) -> None:
    """Failure would look like: a KeyError from somewhere inside, at every start."""
    with pytest.raises(StateError, match="the state of partition 0 of the reports is not of the shape"):
        PartitionCounter(0, 1, SURVEYS.get, KEY, [(state_key("count", 0, "position"), pack(head))])
    with pytest.raises(StateError, match="the merge state of partition 0 of the partials is not of the shape"):
        Merger(0, 1, SURVEYS.get, Keyring(bytes(32)), [(state_key("merge", 0, "position"), pack(head))])


def test_a_data_directory_of_version_0_1_is_refused_with_a_sentence_and_stays_as_it_is(tmp_path: Path) -> None:
    """Failure would look like: counts of other terms, a traceback, or a directory that no release can read any more."""
    with tarfile.open(STATES / "data-of-0.1.tar.xz") as kept:
        kept.extractall(tmp_path, filter="data")
    files = {path: path.read_bytes() for path in (tmp_path / "collector").rglob("*") if path.is_file()}
    refused = run("report", "tiny", "--data", str(tmp_path))
    assert refused.returncode == 1 and "has the tables of another release" in refused.stderr
    assert "hint: go on with the release that wrote it" in refused.stderr and "Traceback" not in refused.stderr
    assert {path: path.read_bytes() for path in files} == files
    with closing(sqlite3.connect(tmp_path / "collector" / "results.sqlite")) as results:
        records = [value for (value,) in results.execute("SELECT value FROM state")]
    for record in records:  # the same bytes are in the changelogs of a cluster
        with pytest.raises(StateError, match="the state has version 1, and this release reads versions from 3 on"):
            unpack(record)
    assert len(records) == 5
