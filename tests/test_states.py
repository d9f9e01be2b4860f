"""Every kind of state that release 0.2.0 has written is opened: later releases must migrate it.

`states/of-0.2.tar.xz` is not made again. That release's tests/helpers/states.py has written it. Forms that release 0.3
has changed have files of their own beside it.
"""

import csv
import json
import tarfile
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from redis import Redis

from gateway.door.keys import Chain, FormerState, KeyState, Link, OpenKey
from gateway.service import StateFile
from hearsay.data_directory import DataDirectory
from hearsay_device.terms import read_terms
from lab.seeded_keyrings import seeded_keyring
from memo_store.drawer import Drawer
from memo_store.sealing import Sealer
from producers.events.choosing import event_type
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from protocols.wire import decode_frame
from servers.redis_server import local
from stream_app.counting.partials import Part, decode_partial
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.finals.final import Final
from stream_app.kafka.registry import FINGERPRINT_HEADER, published_in
from stream_app.local import LocalStore
from stream_app.merging.merger import Merger
from tests.clients.libraries import LIBRARIES, Clock, open_device
from tests.helpers.nursery import run
from tests.stream_app.worlds import KEY, SURVEYS
from views.reading import Results

KEPT = Path(__file__).parent / "states" / "of-0.2.tar.xz"
KEPT_EDGE = KEPT.with_name("edge-of-0.2.tar.xz")
"""An edge with forget_after, as release 0.2 has it: files that it removed are in `erased`, its events in `truth`."""
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


def opened(path: Path, sealer: Sealer) -> int:
    """How many events of a file of an edge open with a key that is for life."""
    content, at, found = path.read_bytes(), 0, 0
    while at < len(content) and any(content[at : at + 4]):
        piece = content[at + 4 : at + 4 + int.from_bytes(content[at : at + 4], "little")]
        found += len(sealer.unseal(f"{path.name} {at}", piece)) // event_type(1).itemsize
        at += 4 + len(piece)
    return found


def memos_in(redis: Path) -> dict[tuple[bytes, bytes], bytes]:
    """By table and pseudonym: the memos of a device."""
    with local(redis) as server, Redis.from_url(server.url) as client:
        tables = [name for name, about in client.hgetall("hearsay:tables").items() if b'"memos"' in about]
        names = {name.split()[0] for name in tables}
        keys = [key for key in client.scan_iter("hearsay:*") if key.rpartition(b":")[2] in names]
        return {(key, name): record for key in keys for name, record in client.hgetall(key).items()}


def rows_of(path: Path) -> list[tuple[str, datetime]]:
    with path.open() as file:
        return [(row["msisdn"], datetime.fromisoformat(row["at"])) for row in csv.DictReader(file)]


def test_an_edge_that_forgets_goes_on_with_what_is_open_and_has_a_drawer_then(tmp_path: Path) -> None:
    """It was stopped in the middle of period 3, with the keys of periods 1, 2 and 3 to come in its Redis.

    Failure would look like: a person more or less in period 3, other memos, or events that open when 3 is forgotten.
    """
    with tarfile.open(KEPT_EDGE) as states:
        states.extractall(tmp_path, filter="data")
    root = tmp_path / "edge-of-0.2"
    data, spool = root / "data", root / "data/edge/calls/open/3.events"
    scheme = Scheme(parse_survey((root / "calls.yaml").read_text()))
    fleet = Sealer(DataDirectory(data).fleet_keyring(), "events calls", scheme.fingerprint)
    truth = [row for path in sorted((root / "truth").iterdir()) for row in rows_of(path)]
    erased = sum(opened(root / "erased" / f"{period}.events", fleet) for period in range(3))
    assert erased + opened(spool, fleet) == len(truth), "the control: what was removed opens with the fleet's key"
    memos = memos_in(data / "redis")
    link = root / "3.events"
    link.hardlink_to(spool)
    later = [
        ("+33000000061", datetime(2026, 1, 1, 23, tzinfo=UTC)),
        ("+33000000061", datetime(2026, 1, 2, 4, tzinfo=UTC)),
    ]
    lines = [f"{person},{at.isoformat()},east\n" for person, at in later]
    (root / "dropped" / "f.csv").write_text("msisdn,at,cell\n" + "".join(lines))
    ended = run("edge", str(root / "edge.yaml"), "--end", "2026-01-04T00:00:00Z", "--json")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert json.loads(ended.stdout)["rows"] == len(truth) + len(later)
    people = {((at - datetime(2026, 1, 1, tzinfo=UTC)) // timedelta(hours=6), person) for person, at in truth + later}
    with closing(LocalStore.existing(data / "collector")) as store:
        counted = [(final.period, final.n) for final in Results(store).histograms("calls") if final.n]
    assert counted == sorted(Counter(period for period, _ in people).items())
    after = memos_in(data / "redis")
    assert memos and all(after[name].startswith(record) for name, record in memos.items())
    drawer = Drawer(data / "drawer" / "calls.keys")
    assert (drawer.first, drawer.periods) == (10, [])
    assert not any(link.read_bytes()), "what 0.2 has sealed for life is overwritten"
    with local(data / "redis") as server, Redis.from_url(server.url) as client:
        (state,) = [key for key in client.scan_iter("hearsay:*:state") if client.hexists(key, "first")]
        assert client.hget(state, "first") == b"drawer" and not client.hexists(state, "key")
