"""What a replay keeps of people: no name, and no key of a period that is over."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import redis

from lab.seeded_keyrings import seeded_keyring
from memo_store import drawer as drawers
from memo_store.connection.link import Link
from memo_store.drawer import Drawer
from memo_store.period_keys import Forgetting
from memo_store.sealing import Sealer
from memo_store.store import MemoStore
from memo_store.survey_memos import SurveyMemos
from producers import replay as replaying
from producers.events.interpreting import People
from producers.events.spool import Spool
from producers.replay import Replay
from protocols.errors import HistoryLost, ReplayError, SettingsError, StoreError
from protocols.randomness import Keyring, later_key
from protocols.respondent import Respondent
from servers.redis_server import RedisServer
from tests.helpers.dying import EVERY, Killed, Steps
from tests.helpers.sinks import KeepingSink, rows_by_token
from tests.producers.events import AREAS, EVENTS, OPTIONS, START, Event, MakeReplay, history, survey, write
from tests.producers.populations import CLOCK_KEY, KEYRING

SCHEME = survey(budgets="eps: 0.2")
AFTER = timedelta(hours=7)  # when a period of 6 hours is finished, it and the one before have keys
SOMEONE = np.zeros(1, dtype=np.uint64)


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url) as client:
        yield client


@pytest.fixture
def store(client: redis.Redis) -> MemoStore:
    store = MemoStore(client)
    store.confirm_history()
    return store


@pytest.fixture
def drawer(tmp_path: Path) -> Path:
    return tmp_path / "drawer" / "cdr.keys"


Open = Callable[..., SurveyMemos]


@pytest.fixture
def opened(drawer: Path) -> Open:
    """The survey as a new process sees it."""

    def open_survey(store: MemoStore, after: timedelta | None = AFTER, **more: Any) -> SurveyMemos:
        forgetting = None if after is None else Forgetting(after, drawer)
        return store.survey(Respondent(SCHEME, KEYRING), forgetting=forgetting, **more)

    return open_survey


def replay(memos: SurveyMemos, sink: KeepingSink, path: Path, periods: range, people: int = 3) -> Replay:
    """Of people who are at a place in each period; where that is depends on the file's name, too."""
    shift, hours = len(path.stem), timedelta(hours=6)
    events = [Event(f"p{i}", START + p * hours, AREAS[(i + p + shift) % 4], 1) for p in periods for i in range(people)]
    write(path, [event.row() for event in events])
    return Replay(memos, sink, CLOCK_KEY, [path], OPTIONS, path.parent / "workspace")


def state(client: redis.Redis) -> dict[bytes, bytes]:
    (key,) = client.scan_iter("hearsay:{*}:state")
    return dict(client.hgetall(key))


def reports(sink: KeepingSink) -> list[int]:
    """How many tokens came in each period; one that came twice had the same report."""
    return np.bincount([period for period, _ in rows_by_token(sink.frames(SCHEME))]).tolist()


@pytest.mark.parametrize("every", EVERY)
def test_a_process_that_dies_between_any_two_steps_leaves_one_report_of_each_person_and_period(
    store: MemoStore,
    client: redis.Redis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    opened: Open,
    drawer: Path,
    every: int,
) -> None:
    """Steps are all commands of the store, writes to the drawer, what is sealed, flushes of the sink and checkpoints.

    The next process repairs it.
    """
    written = (KeepingSink, "flush"), (replaying, "write_checkpoint"), (drawers._File, "_write"), (Spool, "_append")
    steps = Steps(monkeypatch, (Link, "_retrying"), *written)
    last, died = 0, True
    while died:
        steps.begin(0)
        client.flushall()
        drawer.unlink(missing_ok=True)
        store.confirm_history()
        last, died = last + every, False
        sink, path = KeepingSink(1), tmp_path / str(last) / "a.csv"
        path.parent.mkdir()
        steps.begin(last)
        try:
            replay(opened(store), sink, path, range(3)).run()
        except Killed:
            died = True
            steps.begin(0)
            replay(opened(store), sink, path, range(3)).run()
        assert reports(sink) == [3, 3, 3], f"died before step {last}"
        assert (Drawer(drawer).first, Drawer(drawer).periods) == (1, [1, 2]), f"died before step {last}"
        assert sum(map(bool, drawer.read_bytes()[40:])) <= 2 * 40, "nothing is left of other keys"
    assert last > 40


def test_two_replays_at_once_draw_one_key_of_a_period_and_none_brings_it_back(
    store: MemoStore, opened: Open, drawer: Path
) -> None:
    with ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(lambda _: int(opened(store).respondent.tokens(SOMEONE, 3)[0]), range(32)))
    assert len(set(tokens)) == 1
    slow = opened(store)
    opened(store).finish(9)
    slow.finish(4)
    assert (Drawer(drawer).first, Drawer(drawer).periods) == (8, [])
    with pytest.raises(StoreError, match="the key of period 7 of survey 'cdr' is forgotten"):
        slow.respondent.tokens(SOMEONE, 7)


def test_a_replay_that_falls_behind_another_is_refused_and_nobody_reports_twice(
    store: MemoStore, opened: Open, tmp_path: Path
) -> None:
    """The other has other values of the same people: with one noise, two reports would show how they differ."""
    sink = KeepingSink()
    others = [replay(opened(store), sink, tmp_path / "other.csv", range(6))]
    slow = replay(opened(store), sink, tmp_path / "slow.csv", range(6))
    with pytest.raises(StoreError, match=r"forgotten .*remove events before 2026-01-02T00:00:00\+00:00 from the files"):
        slow.run(stop=lambda: bool(others and others.pop().run() is None))
    assert reports(sink) == [3] * 6


def test_a_store_that_was_emptied_or_restored_goes_on_with_the_keys_of_the_drawer(
    store: MemoStore, client: redis.Redis, opened: Open
) -> None:
    memos = opened(store)
    token = memos.respondent.tokens(SOMEONE, 1)
    noted = state(client)
    client.flushall()
    memos.presence.status(SOMEONE, 1)
    assert state(client)[b"drawer"] == noted[b"drawer"]
    client.flushall()
    store.accept_loss()
    assert opened(store, seen=memos.seen).respondent.tokens(SOMEONE, 1) == token


def test_a_drawer_that_is_lost_or_was_replaced_by_a_copy_is_refused(
    store: MemoStore, client: redis.Redis, opened: Open, drawer: Path
) -> None:
    """Else people would report periods that were sent again, with other noise."""
    memos = opened(store)
    memos.respondent.tokens(SOMEONE, 1)
    copy = drawer.read_bytes()
    memos.respondent.tokens(SOMEONE, 2)
    drawer.write_bytes(copy)
    with pytest.raises(StoreError, match=r"the key of period 2 .* was replaced.*its memos stay as they are"):
        opened(store).respondent.tokens(SOMEONE, 2)
    opened(store).finish(9)
    drawer.write_bytes(copy)
    opened(store)
    assert (Drawer(drawer).first, Drawer(drawer).periods) == (8, []), "what the store knows to be forgotten"
    drawer.unlink()
    with pytest.raises(StoreError, match=r"are in a drawer on .* is not that file"):
        opened(store)
    client.flushall()
    with pytest.raises(HistoryLost, match="there is no drawer with period keys of survey 'cdr', and they may be lost"):
        opened(store)
    assert not drawer.exists()


def test_periods_that_release_0_2_has_begun_keep_their_key_and_what_was_committed(
    store: MemoStore, client: redis.Redis, opened: Open, drawer: Path
) -> None:
    """It had one key in the store, which gave all later ones, and committed values under the fleet's key."""
    question, people = SCHEME.questions[0], np.arange(20, dtype=np.uint64)
    before = opened(store, None)
    values = before.commit_values(question, people, np.arange(20) % 4, 2)
    (name,) = client.scan_iter("hearsay:{*}:state")
    key = bytes(range(32))
    sealed = Sealer(KEYRING, SCHEME.survey.id, SCHEME.fingerprint).seal("period key 1", key)
    client.hset(name, mapping={"first": 1, "key": sealed})
    for _ in range(2):  # a process that dies while it takes them over does it again
        Drawer.create(drawer, 4).adopt(1, [key, later_key(key, 1)])
    memos = opened(store)
    assert memos.commit_values(question, people, np.arange(20) // 5, 2).tolist() == values.tolist()
    old, new = Respondent(SCHEME, Keyring(later_key(key, 1))), Respondent(SCHEME, Keyring(later_key(key, 2)))
    assert memos.respondent.tokens(people, 2).tolist() == old.tokens(people, 2).tolist()
    assert memos.respondent.tokens(people, 3).tolist() != new.tokens(people, 3).tolist(), "drawn, not derived"
    with pytest.raises(StoreError, match="the key of period 0 of survey 'cdr' is forgotten"):
        memos.respondent.tokens(people, 0)
    assert b"key" not in state(client) and state(client)[b"first"] == b"drawer"


def test_another_machine_is_refused(
    store: MemoStore, opened: Open, drawer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the drawer, if it has a copy or shares the file; by the store, if it has a drawer of its own."""
    opened(store)
    drawer.rename(tmp_path / "kept")
    other = Drawer.create(drawer, 4)
    with pytest.raises(StoreError, match="all processes of an edge run on one machine, with one drawer"):
        opened(store)
    other.path.unlink()
    (tmp_path / "kept").rename(drawer)
    opened(store)
    monkeypatch.setattr(drawers, "this_machine", lambda: ["another"])
    with pytest.raises(StoreError, match=r"belong to another machine: .*docs/edge\.md says how to go on"):
        opened(store)


@pytest.mark.parametrize("after", [AFTER, None], ids=["forgotten", "for life"])
def test_who_takes_the_store_and_the_fleet_key_does_not_name_past_values(
    store: MemoStore,
    client: redis.Redis,
    redis_server: RedisServer,
    tmp_path: Path,
    opened: Open,
    drawer: Path,
    after: timedelta | None,
) -> None:
    """The thief even knows whose each report is. Without the option, all values are named."""
    sink, memos = KeepingSink(), opened(store, after)
    replay(memos, sink, tmp_path / "a.csv", range(2), 400).run()
    people = People(KEYRING).devices(pa.array([f"p{i}" for i in range(400)]))
    rows = rows_by_token(sink.frames(SCHEME))
    answers = np.array([rows[0, token][1][0][1][0] for token in memos.respondent.tokens(people, 0).tolist()])
    old = [] if after is None else [Drawer(drawer).key(period).key for period in range(2)]
    replay(opened(store, after), sink, tmp_path / "b.csv", range(2, 5)).run()
    assert not any(client.strlen(key) > 1 for key in client.scan_iter("*@0")), "what is committed is the value"
    client.save()
    left = (redis_server.directory / "dump.rdb").read_bytes() + (drawer.read_bytes() if old else b"")
    assert not any(key in left for key in old)
    keys = [Drawer(drawer).key(period).key for period in Drawer(drawer).periods] if old else []
    for ring in [KEYRING] if after is None else [KEYRING, *map(Keyring, keys)]:
        thief = Respondent(SCHEME, KEYRING, lambda _, ring=ring: ring)
        tried = [thief.answer_once(SCHEME.questions[0], people, 0, np.full(400, v)) == answers for v in range(4)]
        named = np.mean(np.argmax(tried, axis=0) == (np.arange(400) + 1) % 4)
        assert named == 1 if after is None else 0.15 < named < 0.37  # luck: 0.25, and 0.27 by the answer itself


def test_a_survey_stays_with_the_option_or_without_it(
    store: MemoStore, client: redis.Redis, opened: Open, drawer: Path
) -> None:
    with pytest.raises(SettingsError, match="--forget-after 0s is not longer than the grace of survey 'cdr', 0s"):
        opened(store, timedelta(0))
    opened(store)
    with pytest.raises(StoreError, match=r"begun with --forget-after.*\(replay it with --forget-after, or give"):
        opened(store, None)
    client.flushall()
    drawer.unlink()
    store.confirm_history()
    opened(store, None).presence.status(SOMEONE, 0)
    for _ in range(2):
        with pytest.raises(StoreError, match=r"begun without --forget-after: .* for good \(leave the option out"):
            opened(store)
        (key,) = client.scan_iter("hearsay:{*}:state")
        client.hdel(key, "first", "drawer")  # as 0.2.0 leaves it


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
    replay: MakeReplay,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("producers.events.spool.AT_ONCE", 50)
    events = history(20, 1)
    rows = [e.row() for e in events] + [["+33000000001", "when?", "north", "1"]]
    sink = KeepingSink()
    summary = replay(write(tmp_path / EVENTS, rows), sink).run()
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
