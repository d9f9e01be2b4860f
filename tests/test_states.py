"""Every kind of state that release 0.2.0 has written is opened: later releases must migrate it.

`states/of-0.2.tar.xz` is not made again. That release's tests/helpers/states.py has written it. Forms that release 0.3
has changed have files of their own beside it.
"""

import json
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.door.keys import Chain, FormerState, KeyState, Link, OpenKey
from gateway.service import StateFile
from hearsay_device.terms import read_terms
from lab.seeded_keyrings import seeded_keyring
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from protocols.wire import decode_frame
from stream_app.counting.partials import Part, decode_partial
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.finals.final import Final
from stream_app.kafka.registry import FINGERPRINT_HEADER, published_in
from stream_app.merging.merger import Merger
from tests.clients.libraries import LIBRARIES, Clock, open_device
from tests.helpers.nursery import run
from tests.stream_app.worlds import KEY, SURVEYS

KEPT = Path(__file__).parent / "states" / "of-0.2.tar.xz"
BEGIN = 1767268800.0  # 2026-01-01, noon
OPEN = OpenKey(survey="tiny", fingerprint="f" * 32, period=3, key=bytes(range(32)), until=BEGIN + 86_400)
KEYS = FormerState(chain=Chain(hour=int(BEGIN // 3600), link=bytes(range(32, 64))), keys=(OPEN,))
OF_0_3 = Path(__file__).parent / "states" / "gateway-of-0.3.json"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    with tarfile.open(KEPT) as states:
        states.extractall(tmp_path, filter="data")
    return tmp_path


def test_a_data_directory_and_its_memo_store_go_on_where_they_were(kept: Path) -> None:
    """Failure would look like: a period more or less, devices that are new again, or memos that were made anew."""
    before = run("report", "tiny", "--data", str(kept / "data"), "--json")
    assert before.returncode == 0, before.stderr
    went_on = run("run", str(kept / "survey.yaml"), "--devices", "30", "--periods", "3", "--data", str(kept / "data"))
    assert went_on.returncode == 0, went_on.stderr
    after = json.loads(run("report", "tiny", "--data", str(kept / "data"), "--json").stdout)
    windows = {(each["first"], each["last"]): each for each in after["windows"]}
    for window in json.loads(before.stdout)["windows"]:
        found = windows[window["first"], window["last"]]
        for attribute in found["attributes"]:  # 0.2.0 did not keep the truth of its simulations
            attribute["values"]["truth"] = None
        assert (found["visitors"], found["attributes"]) == (window["visitors"], window["attributes"])
    assert max(last for _, last in windows) == 2


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_device_owes_what_it_owed_and_knows_what_it_has_spent(kept: Path, library: str) -> None:
    clock = Clock(BEGIN + 86_400)
    with open_device(library, kept / library / "device", clock) as device:
        (owed,) = device.owed("tiny")
        assert owed.period == 1 and device.settle("tiny", {"a": "x"}).report == owed.report
        assert device.explain()["year"]["answers"] == 2
        clock.seconds += 86_400
        assert json.loads(device.settle("tiny", {"a": "x"}).report)["gap"] == "0001"


def test_keys_of_a_gateway_are_those_that_were_written(kept: Path) -> None:
    assert StateFile(kept / "gateway.state").erase(BEGIN) == KEYS.migrated(BEGIN)


def test_links_of_a_gateway_are_those_that_were_written(tmp_path: Path) -> None:
    """In the form that release 0.3 has brought."""
    begin = int(BEGIN // 3600)
    links = (
        Link(hour=begin, link=bytes(range(64, 96)), source="chain"),
        Link(hour=begin + 1, link=bytes(range(96, 128))),
    )
    path = tmp_path / "gateway.state"
    path.write_bytes(OF_0_3.read_bytes())
    expected = KeyState(links=links, through=begin + 1, keeper=True, keys=(OPEN,))
    assert StateFile(path).erase(BEGIN) == expected


def test_terms_and_survey_records_have_the_fingerprint_that_they_had(kept: Path) -> None:
    terms, record = (kept / "terms.json").read_bytes(), json.loads((kept / "survey-record.json").read_text())
    scheme = Scheme(parse_survey((kept / "survey.yaml").read_text()))
    assert scheme.terms == terms and read_terms(terms).fingerprint == record["fingerprint"] == scheme.fingerprint
    headers = [(FINGERPRINT_HEADER, record["fingerprint"].encode())]
    value = record["value"].encode()
    published = published_in(
        SimpleNamespace(value=value, headers=headers, timestamp=record["timestamp"], offset=0, topic="surveys")
    )
    assert (published.survey, published.at) == (scheme.survey, BEGIN)


def test_topics_and_the_tables_of_workers_are_read(kept: Path) -> None:
    topics = json.loads((kept / "topics.json").read_text())
    records = {topic: [(key.encode(), bytes.fromhex(value)) for key, value in topics[topic]] for topic in topics}
    assert records.keys() == {"reports", "counting", "merging", "partials", "finals", "open"}
    frame = decode_frame(records["reports"][0][1], SURVEYS.get)
    assert len(frame) == 2  # type: ignore[arg-type]
    counter = PartitionCounter(0, 1, SURVEYS.get, KEY, records["counting"])
    assert (counter.next_offset, counter.closed_through("s"), list(counter.open_periods)) == (3, 0, [("s", 1)])
    merger = Merger(0, 1, SURVEYS.get, seeded_keyring(1), records["merging"])
    assert merger.next_offset == len(records["partials"])
    parts = [part for part in (decode_partial(value) for _, value in records["partials"]) if isinstance(part, Part)]
    assert {(part.period, part.counts["colour"].total) for part in parts} == {(0, 2), (1, 1)}
    (final,) = (Final.decode(value) for _, value in records["finals"])
    counts: Any = final.counts
    assert final.period == 0 and counts["colour"].total == 2
