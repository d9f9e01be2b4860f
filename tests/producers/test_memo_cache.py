"""With `memo_cap`, memos from a fleet's cache keep every promise that the store keeps without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import redis

from memo_store.connection.link import Command, Link
from memo_store.store import MemoStore
from memo_store.survey_memos import Lookup, SurveyMemos
from producers.memo_cache import MemoCache
from protocols.arrays import Values
from protocols.errors import HistoryLost, StoreUnavailable
from protocols.respondent import Respondent
from tests.memo_store.surveys import devices, respondent

EVERYONE = devices(300)
ROOM = 1 << 20
COMMIT_BYTES = 16
OpenMemos = Callable[[Respondent], SurveyMemos]


@pytest.fixture
def confirmed(redis_url: str) -> str:
    """The address of a store that serves capped surveys."""
    with MemoStore(redis_url) as store:
        store.accept_loss()
    return redis_url


def capped(cap: int, terms: str = "", second: bool = False) -> Respondent:
    return respondent(id=f"capped-{cap}", terms=f"memo_cap: {cap}, {terms}", second=second)


def cached(memos: SurveyMemos, room: int = ROOM) -> MemoCache:
    return MemoCache(memos, memos.respondent.scheme, len(EVERYONE), room)


def look_up(memos: MemoCache | SurveyMemos, people: Respondent, cells: Values, period: int) -> list[Any]:
    (found,) = memos.lookup_all([Lookup(people.scheme.questions[0], EVERYONE, cells)], period)
    return list(found.tolist())


def everybody(cell: int) -> Values:
    return np.full(len(EVERYONE), cell)


@pytest.mark.parametrize("cap", [1, 2, 3])
@pytest.mark.parametrize("room", [1, 1500, ROOM])
def test_values_that_come_and_go_have_the_memos_and_the_ledger_of_a_fleet_without_a_cache(
    open_memos: OpenMemos, confirmed: str, cap: int, room: int
) -> None:
    """A cache that served a value's own memo after the record is full would differ, as would one that forgot to."""
    draw, people = np.random.default_rng(cap), capped(cap)
    days = [draw.integers(0, 4, len(EVERYONE)) for _ in range(8)]
    found = []
    for size in (0, room):
        memos = open_memos(people)
        cache = cached(memos, size)
        answers = [look_up(cache, people, cells, period) for period, cells in enumerate(days)]
        found.append((answers, memos.ledger(EVERYONE).values["area"].tolist()))
        with redis.Redis.from_url(confirmed) as client:
            client.flushall()
        with MemoStore(confirmed) as store:
            store.accept_loss()
    assert found[0] == found[1]
    assert max(found[0][1]) == cap


def test_a_memo_from_the_cache_is_committed_before_it_is_used(open_memos: OpenMemos, confirmed: str) -> None:
    people = capped(2)
    cache = cached(open_memos(people))
    first = look_up(cache, people, everybody(3), 0)
    assert look_up(cache, people, everybody(3), 1) == first
    with redis.Redis.from_url(confirmed) as client:
        committed = sum(client.strlen(key) for key in client.scan_iter("*@1"))
    assert committed == COMMIT_BYTES * len(EVERYONE)
    again = open_memos(people)  # a process that takes over, in which the devices have moved on
    assert look_up(again, people, everybody(4), 1) == first


@pytest.mark.parametrize("shard", [0, 5])
def test_a_loss_is_noticed_although_every_memo_is_in_the_cache(
    open_memos: OpenMemos, confirmed: str, shard: int
) -> None:
    people = capped(2)
    cache = cached(open_memos(people))
    for period in range(2):
        look_up(cache, people, everybody(3), period)
    with redis.Redis.from_url(confirmed) as client:
        client.delete(*client.scan_iter(f"hearsay:{{{shard}}}:*"))
    with pytest.raises(HistoryLost):
        look_up(cache, people, everybody(3), 2)


def test_after_an_accepted_loss_the_ledger_has_what_was_cached(open_memos: OpenMemos, confirmed: str) -> None:
    """A cache that survived the loss would go on with memos that nobody counts."""
    people = capped(2)
    memos = open_memos(people)
    cache = cached(memos)
    before = [look_up(cache, people, everybody(3), period) for period in range(2)]
    with redis.Redis.from_url(confirmed) as client:
        client.flushall()
    with MemoStore(confirmed) as store:
        store.accept_loss()
    assert look_up(cache, people, everybody(3), 2) == before[0]
    assert set(memos.ledger(EVERYONE).values["area"].tolist()) == {1}


def test_a_device_settles_also_when_another_process_fills_its_record(open_memos: OpenMemos, confirmed: str) -> None:
    people = capped(2)
    cache, other = cached(open_memos(people)), open_memos(people)
    for period in range(2):
        look_up(cache, people, everybody(3), period)
    held = look_up(other, people, everybody(7), 2)
    assert look_up(cache, people, everybody(3), 3) == held


def test_what_a_device_committed_before_it_settled_is_not_kept_for_later_periods(
    open_memos: OpenMemos, confirmed: str
) -> None:
    people = capped(2, "grace: 3d,")
    other = open_memos(people)
    early = look_up(other, people, everybody(3), 0)
    held = look_up(other, people, everybody(7), 1)
    cache = cached(open_memos(people))
    assert look_up(cache, people, everybody(3), 0) == early, "the period was committed with the first memo"
    assert look_up(cache, people, everybody(3), 2) == held


def test_a_device_whose_look_up_failed_is_looked_up_again(
    open_memos: OpenMemos, confirmed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store may have filled the record before it failed."""
    people = capped(2)
    memos = open_memos(people)
    cache = cached(memos)
    look_up(cache, people, everybody(3), 0)
    find = SurveyMemos.lookup_entries

    def fail_after(*arguments: Any) -> None:
        find(*arguments)
        raise StoreUnavailable("no answer")

    with monkeypatch.context() as patched:
        patched.setattr(SurveyMemos, "lookup_entries", fail_after)
        with pytest.raises(StoreUnavailable):
            look_up(cache, people, everybody(7), 1)
    held = look_up(memos, people, everybody(7), 1)
    assert look_up(cache, people, everybody(3), 2) == held


@pytest.mark.parametrize("second", [False, True], ids=["one attribute", "two"])
def test_memos_from_the_cache_cost_two_checks_and_one_commit(
    open_memos: OpenMemos, confirmed: str, monkeypatch: pytest.MonkeyPatch, second: bool
) -> None:
    """Round trips do not grow with devices, nor with attributes, and no record is read."""
    people = capped(2, second=second)
    cache = cached(open_memos(people))
    asked = [Lookup(question, EVERYONE, everybody(1)) for question in people.scheme.questions]
    memos = [column.tolist() for column in cache.lookup_all(asked, 0)]
    batches: list[tuple[str, int]] = []
    run = Link.run

    def count(link: Link, commands: list[Command], **options: bool) -> list[Any]:
        batches.append((commands[0][0], len(commands)))
        return run(link, commands, **options)

    monkeypatch.setattr(Link, "run", count)
    assert [column.tolist() for column in cache.lookup_all(asked, 1)] == memos
    closing, *rest = [batch for batch in batches if batch != ("HMGET", 16)]
    assert closing == ("EVAL", 16 + 1), "the commits of the period that is closed now are dropped"
    assert rest == [("EVAL", 16)] and batches.count(("HMGET", 16)) == 2


def test_without_a_cap_what_a_cache_lacks_is_created_without_a_read(
    open_memos: OpenMemos, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the memos exist after all, because another process has made them."""
    people = respondent(id="free")
    question, some = people.scheme.questions[0], EVERYONE[::3]
    cache, other = cached(open_memos(people)), open_memos(people)
    look_up(cache, people, everybody(1), 0)
    other.lookup(question, some, np.full(len(some), 2), 1)
    read: list[object] = []
    run = Link.run

    def note(link: Link, commands: list[Command], **options: bool) -> list[Any]:
        read.extend(command[1] for command in commands if command[0] == "HMGET")
        return run(link, commands, **options)

    monkeypatch.setattr(Link, "run", note)
    derived = people.memoise(question, EVERYONE, everybody(2)).tolist()
    assert look_up(cache, people, everybody(2), 2) == derived
    assert all(str(key).endswith(":epoch") for key in read)
    assert look_up(other, people, everybody(2), 3) == derived
