"""What is left of periods that an edge has forgotten: copies of all that it ever wrote do not open with what it has."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import redis

from lab.seeded_keyrings import seeded_keyring
from memo_store import drawer as drawers
from memo_store.connection.link import Link
from memo_store.drawer import HEADER, SLOT, Drawer
from memo_store.period_keys import Forgetting
from memo_store.sealing import Sealer
from memo_store.store import MemoStore
from memo_store.survey_memos import SurveyMemos
from producers.edge import DirectoryEdge, EdgeState
from producers.events.choosing import event_type
from producers.events.interpreting import People
from producers.events.spool import LENGTH, Spool
from producers.files import csv_events
from protocols.arrays import Devices
from protocols.errors import StoreError
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from servers.private_files import private_directory
from servers.redis_server import RedisServer
from tests.helpers.dying import EVERY, Killed, Steps
from tests.helpers.sinks import KeepingSink, rows_by_token
from tests.producers.events import START, Event, computed, history, nearly_sorted, survey
from tests.producers.populations import CLOCK_KEY, KEYRING
from tests.producers.test_edge import World
from tests.producers.test_replay_places_and_sets import METRES, STEADY

SCHEME = survey(budgets="eps: 0.2")
"""Without memos: what is committed are values."""
AFTER = timedelta(hours=7)
ATTRIBUTES = 2
Opened = set[tuple[int, int]]
"""Devices and times of events."""


class Kept:
    """Everything that an edge and its Redis have ever written, kept when it was."""

    def __init__(self, root: Path, server: RedisServer) -> None:
        self._root, self._server = root, server
        root.mkdir()
        self.logs: set[bytes] = set()

    def keep(self, path: Path) -> None:
        """A hard link, and what is in it now: it may be overwritten before it is removed."""
        kept = self._root / str(len(list(self._root.iterdir())))
        kept.mkdir()
        os.link(path, kept / path.name)
        (kept / "now").mkdir()
        shutil.copy(path, kept / "now" / path.name)

    def copy(self, client: redis.Redis) -> None:
        """The log of Redis, then a dump; the log is written anew after that."""
        client.save()
        self.logs |= {path.read_bytes() for path in self._server.directory.rglob("*.aof")}
        self.logs |= {path.read_bytes() for path in self._server.directory.rglob("*.rdb")}

    def events(self, keys: list[Keyring]) -> Opened:
        """The events that open with some keys."""
        sealers = [Sealer(key, f"events {SCHEME.survey.id}", SCHEME.fingerprint) for key in keys]
        found: Opened = set()
        written = {found for path in self._root.rglob("*.*") for found in pieces(path)}
        for place, piece in written:
            for sealer in sealers:
                try:
                    events = np.frombuffer(sealer.unseal(place, piece), event_type(ATTRIBUTES))
                except StoreError:
                    continue
                found |= set(zip(events["device"].tolist(), events["time"].tolist(), strict=True))
        return found

    def commits(self, keys: list[Keyring], devices: Devices) -> int:
        """How many values, of people in a period, open with some keys."""
        named = {name.tobytes()[:8][::-1]: device for name, device in zip(names(devices), devices, strict=True)}
        sealers = [Sealer(key, SCHEME.survey.id, SCHEME.fingerprint) for key in keys]
        opened = set()
        for period, name, sealed in {commit for log in self.logs for commit in appended(log)}:
            device = np.array([named[name]], dtype=np.uint64)
            for question in SCHEME.questions:
                pads = [int(sealer.commit_pads(question.name, device, period)[0]) for sealer in sealers]
                if any(sealed ^ pad < question.k for pad in pads):
                    opened.add((period, name, question.name))
        return len(opened)


def names(devices: Devices) -> np.ndarray:  # type: ignore[type-arg]
    return Sealer(KEYRING, SCHEME.survey.id, SCHEME.fingerprint).pseudonyms(devices)


def pieces(path: Path) -> Iterator[tuple[str, bytes]]:
    content, at = path.read_bytes(), 0
    while at < len(content):  # a file that was overwritten has empty pieces
        length = int.from_bytes(content[at : at + LENGTH], "little")
        yield f"{path.name} {at}", content[at + LENGTH : at + LENGTH + length]
        at += LENGTH + length


def appended(log: bytes) -> Iterator[tuple[int, bytes, int]]:
    """The period, the device's name and the sealed word of each commit in a log of commands."""
    marker = b"\r\nAPPEND\r\n$"
    for part in log.split(marker)[1:]:
        size, _, rest = part.partition(b"\r\n")
        key, text = rest[: int(size)], rest[int(size) :]
        length, _, text = text.removeprefix(b"\r\n$").partition(b"\r\n")
        commits = np.frombuffer(text[: int(length)], dtype="<u8").reshape(-1, 2)
        for name, sealed in commits.tolist():
            yield int(key.rpartition(b"@")[2]), name.to_bytes(8, "little"), sealed


def keys_in(drawer: bytes) -> list[Keyring]:
    """All keys in a drawer, also in slots that are marked as free."""
    slots = [SLOT.unpack_from(drawer, at) for at in range(HEADER.size, len(drawer), SLOT.size)]
    return [Keyring(key) for _, key in slots if any(key)]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path / "redis").start()
    try:
        yield server
    finally:
        server.stop()


class Observed:
    """An edge over 240 events of ten people, and everything that it has ever written."""

    def __init__(
        self, root: Path, server: RedisServer, after: timedelta | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.drawer = root / "drawer" / "cdr.keys"
        self.kept = Kept(root / "links", server)
        self.events = history(10, 3)
        self.devices = np.unique(self._devices(self.events))
        append = Spool._append

        def appending(spool: Spool, path: Path, *arguments: object) -> int:
            size = append(spool, path, *arguments)  # type: ignore[arg-type]
            self.kept.keep(path)
            return size

        monkeypatch.setattr(Spool, "_append", appending)
        monkeypatch.setattr("producers.events.spool.AT_ONCE", 10)  # a period is read in several portions
        forgetting = None if after is None else Forgetting(after, self.drawer)
        self.early = b""
        with redis.Redis.from_url(server.url) as client:
            store = MemoStore(client)
            store.confirm_history()

            def open_memos(respondent: Respondent) -> SurveyMemos:
                return store.survey(Respondent(SCHEME, respondent.keyring), forgetting=forgetting)

            world = World(root / "world", open_memos)
            for part in range(4):
                world.drop(f"{part}.csv", self.events[part * 60 : part * 60 + 60])
                world.once(end=part == 3)
                self.kept.copy(client)
                if part == 0 and after is not None:
                    self.early = self.drawer.read_bytes()
        self.reports = world.sink.frames(SCHEME)

    def _devices(self, events: list[Event]) -> Devices:
        return People(KEYRING).devices(pa.array([event.person for event in events]))

    def truth(self, periods: set[int]) -> Opened:
        some = [event for event in self.events if (event.at - START) // timedelta(hours=6) in periods]
        times = [round(event.at.timestamp()) * 1_000_000 for event in some]
        return set(zip(self._devices(some).tolist(), times, strict=True))


def test_nothing_opens_with_all_that_is_left_when_its_period_is_forgotten(
    tmp_path: Path, server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Observed(tmp_path, server, AFTER, monkeypatch)
    left = [KEYRING, *keys_in(seen.drawer.read_bytes())]
    assert seen.kept.events(left) == set()
    assert seen.kept.commits(left, seen.devices) == 0
    early = Drawer(tmp_path / "copy")
    early.path.write_bytes(seen.early)
    opened = seen.kept.events([KEYRING, *keys_in(seen.early)])
    assert opened == seen.truth(set(early.periods)) != set(), "periods that were open when the drawer was copied"
    assert not any(key._secret in log for key in keys_in(seen.early) for log in seen.kept.logs)


def test_as_release_0_2_seals_everything_opens_with_the_fleets_key(
    tmp_path: Path, server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: the search finds all events and values where there is something to find."""
    seen = Observed(tmp_path, server, None, monkeypatch)
    assert seen.kept.events([KEYRING]) == seen.truth(set(range(12)))
    assert len(seen.truth(set(range(12)))) == 240
    assert seen.kept.commits([KEYRING], seen.devices) >= sum(map(len, seen.reports))


@pytest.mark.parametrize("every", EVERY)
def test_a_kill_at_any_moment_loses_no_event_and_doubles_none(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    """Between drawing, syncing, sealing, sending and forgetting."""
    monkeypatch.setattr(csv_events, "BLOCK_BYTES", 1 << 10)
    events = nearly_sorted(history(6, 1, seed=5), timedelta(hours=2))
    written = ((Spool, "_append"), (Spool, "sync"), (Spool, "drop"), (EdgeState, "write"))
    steps = Steps(monkeypatch, *written, (drawers._File, "_write"), (Link, "_retrying"))
    expected = sorted(period for period, _ in computed(events))
    last, died = 0, True
    with MemoStore(redis_url) as store:
        store.confirm_history()
        while died:
            last, died = last + (every if every == 1 else 5 * every), False
            root = tmp_path / str(last)
            forgetting = Forgetting(AFTER, root / "drawer" / "cdr.keys")
            world = World(root, partial(store.survey, forgetting=forgetting), seeded_keyring(100 + last))
            world.drop("a.csv", events[:30])
            world.drop("b.csv", events[30:])
            steps.begin(last)
            try:
                world.once()
            except Killed:
                died = True
            steps.begin(0)
            state = world.once()
            assert (state.rows, state.totals.duplicates) == (len(events), 0), f"died before step {last}"
            rows = rows_by_token(world.sink.frames(survey()))
            assert sorted(period for period, _ in rows) == expected, f"died before step {last}"
            assert keys_in(forgetting.drawer.read_bytes()) == [], f"died before step {last}"
    assert last > 100


def test_a_drawer_overwrites_what_a_process_that_died_has_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each write in turn. A key that is in the drawer afterwards was complete, and is asked for again."""
    steps, last, died = Steps(monkeypatch, (drawers._File, "_write")), 0, True
    while died:
        last, died = last + 1, False
        drawer = Drawer.create(tmp_path / str(last), 1)
        steps.begin(last)
        known: dict[int, bytes] = {}
        try:
            for period in range(4):  # it grows
                known[period] = key_of(drawer, period)
            drawer.forget(1)
        except Killed:
            died = True
        steps.begin(0)
        drawer.forget(1)
        assert drawer.key(1) is None
        assert all(key_of(drawer, period) == known[period] for period in known if period > 1)
        left = {key._secret for key in keys_in(drawer.path.read_bytes())}
        assert left == {key_of(drawer, period) for period in drawer.periods}, f"died before write {last}"
    assert last > 10


def key_of(drawer: Drawer, period: int) -> bytes:
    found = drawer.key(period)
    assert found is not None
    return found.key


DRAWING = """
import hashlib, sys
from pathlib import Path
from memo_store.drawer import Drawer
drawer = Drawer(Path(sys.argv[1]))
keys = b"".join(drawer.key(period).key for period in range(40))
print(hashlib.sha256(keys).hexdigest())
"""


def test_two_processes_of_a_machine_share_a_drawer(tmp_path: Path) -> None:
    drawer = Drawer.create(tmp_path / "drawer" / "cdr.keys", 4)
    command = [sys.executable, "-c", DRAWING, str(drawer.path)]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = Counter(child.communicate(timeout=120)[0].strip() for child in children)
    own = b"".join(key_of(drawer, period) for period in range(40))
    assert said == {hashlib.sha256(own).hexdigest(): 2}
    assert drawer.path.stat().st_mode & 0o077 == 0


def test_events_that_release_0_2_has_sealed_for_life_are_read_and_overwritten(tmp_path: Path) -> None:
    """Its file goes on with pieces under the period's key. A process that died has left another period, and cells."""
    lasting, own = Sealer(KEYRING, "events cdr", "0"), Sealer(seeded_keyring(7), "events cdr", "0")
    some = np.zeros(20, dtype=event_type(1))
    some["row"] = np.arange(20)
    before = Spool(tmp_path / "open", 1, lasting)
    before.add(some[:10], np.zeros(10, dtype=np.int64))
    held = dict(before.sync())
    before.add(some[10:], np.arange(10) // 5)  # is read again
    before.keep_cells(0, b"cells")
    before.close()
    links = [tmp_path / path.name for path in (tmp_path / "open").iterdir()]
    for link in links:
        os.link(tmp_path / "open" / link.name, link)
    with closing(Spool(tmp_path / "open", 1, lasting, held, lambda period: own)) as spool:
        spool.add(some[10:], np.zeros(10, dtype=np.int64))
        (events,) = spool.read(0, lambda devices: devices)
        assert events["row"].tolist() == list(range(20))
        assert spool.cells(0) == b"cells"
        spool.drop(0)
        spool.drop_cells()
    assert sorted(link.name for link in links) == ["0.cells", "0.events", "1.events"]
    assert not any(any(link.read_bytes()) for link in links)


class Places:
    """An edge that reads positions, and forgets periods of a day after 30 hours."""

    def __init__(self, root: Path, store: MemoStore) -> None:
        self._root, self._store = root, store
        self._dropped = private_directory(root / "dropped")
        self.drawer = root / "drawer" / "places.keys"
        self.sink = KeepingSink()

    def edge(self) -> DirectoryEdge:
        forgetting = Forgetting(timedelta(hours=30), self.drawer)
        memos = self._store.survey(Respondent(STEADY, KEYRING), forgetting=forgetting)
        return DirectoryEdge(memos, self.sink, CLOCK_KEY, METRES, self._dropped, self._root / "edge")

    def drop(self, name: str, row: str) -> None:
        (self._dropped / name).write_text(f"person,time,east,north\n{row}\n")


@pytest.mark.parametrize("again", [False, True], ids=["goes on", "is started again"])
def test_last_cells_are_forgotten_with_their_period(redis_url: str, tmp_path: Path, again: bool) -> None:
    """Failure would look like: an edge that cannot go on after --end, or reports that depend on whether it was started
    again."""
    with MemoStore(redis_url) as store:
        store.confirm_history()
        places = Places(tmp_path, store)
        edge = places.edge()
        places.drop("a.csv", "p,2026-01-01T10:00:00Z,20,20")
        edge.take()
        edge.end(STEADY.survey.start + timedelta(days=5))
        assert Drawer(places.drawer).first == 3
        if again:
            edge.close()
            edge = places.edge()
        places.drop("b.csv", "p,2026-01-07T10:00:00Z,,")
        edge.take()
        edge.end(STEADY.survey.start + timedelta(days=9))
        edge.close()
    first, second = places.sink.frames(STEADY)
    assert (first.period, second.period) == (0, 6)
    assert first.answers["place"].tolist() != second.answers["place"].tolist(), "it has no last cell"
