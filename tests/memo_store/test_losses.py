"""A store that has lost data is noticed: emptied, gone back in time, or in part."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import redis

from memo_store.connection.layout import SHARDS
from memo_store.store import MemoStore
from memo_store.survey_memos import SurveyMemos
from protocols.errors import HistoryLost, StoreError
from servers.redis_server import RedisServer
from tests.memo_store.surveys import devices, empty, going_back, respondent

EVERYONE = devices(400)
CAPPED = respondent(id="capped", terms="memo_cap: 3,")
QUESTION = CAPPED.scheme.questions[0]


@pytest.fixture
def store(server: RedisServer) -> Iterator[MemoStore]:
    """A store that survives restarts of its server, because it waits for them."""
    with MemoStore(server.url, sleep=lambda _: None if server.running else server.start()) as store:
        yield store


def look_up(memos: SurveyMemos, period: int) -> None:
    memos.lookup(memos.respondent.scheme.questions[0], EVERYONE, np.full(len(EVERYONE), period % 10), period)


def meanings(store: MemoStore) -> dict[str, str]:
    """What the figures of each survey bound."""
    return {survey.survey: survey.meaning for survey in store.stats().surveys}


def test_a_store_that_goes_back_in_time_stops_capped_surveys_for_good(
    server: RedisServer, store: MemoStore, tmp_path: Path
) -> None:
    """Its epoch is the right one, and still devices have been permitted more than it knows of."""
    store.accept_loss()
    capped, uncapped = store.survey(CAPPED), store.survey(respondent())
    look_up(capped, 0)
    look_up(uncapped, 0)
    with going_back(server, tmp_path / "copy"):
        look_up(capped, 1)
        look_up(uncapped, 1)
    with pytest.raises(HistoryLost):
        look_up(capped, 2)
    look_up(uncapped, 2)
    assert uncapped.presence_losses == (2, 3)
    with MemoStore(server.url) as later, pytest.raises(HistoryLost):
        later.survey(CAPPED)
    store.accept_loss()
    look_up(capped, 2)
    assert capped.presence_losses == (2, 3)


def test_a_lost_shard_is_enough(store: MemoStore, server: RedisServer) -> None:
    store.accept_loss()
    assert store.has_lost_data, "also where nobody is left who has seen the store before it was emptied"
    memos = store.survey(CAPPED)
    look_up(memos, 0)
    with redis.Redis.from_url(server.url) as client:
        for key in client.scan_iter("hearsay:{5}:*"):
            client.delete(key)
    with pytest.raises(HistoryLost):
        look_up(memos, 1)


def test_asking_for_the_status_of_devices_is_enough_to_notice_a_loss(store: MemoStore, server: RedisServer) -> None:
    """Reads carry no guard of their own: a failure would be gaps from an emptied store, taken for true ones."""
    store.accept_loss()
    capped, uncapped = store.survey(CAPPED), store.survey(respondent())
    for memos in (capped, uncapped):
        memos.presence.status(EVERYONE, 0)
        memos.presence.delivered(EVERYONE, 0)
    empty(server.url)
    with pytest.raises(HistoryLost):
        capped.presence.status(EVERYONE, 1)
    uncapped.presence.status(EVERYONE, 1)
    assert uncapped.presence_losses == (1, 2)


def test_a_restart_without_loss_is_not_mistaken_for_one(store: MemoStore, server: RedisServer) -> None:
    store.accept_loss()
    memos = store.survey(CAPPED)
    for period in range(4):
        look_up(memos, period)
        memos.presence.delivered(EVERYONE, period)
        server.kill()
    assert memos.presence.status(EVERYONE, 5).gaps.tolist() == [2] * len(EVERYONE)
    assert memos.presence_losses == ()


def test_a_survey_first_seen_in_a_later_period_says_that_it_knows_nothing_before(store: MemoStore) -> None:
    memos = store.survey(respondent())
    memos.presence.status(EVERYONE, 12)
    assert memos.presence_losses == (12,)
    assert store.survey(respondent()).presence_losses == (12,)
    memos.presence.status(EVERYONE, 13)
    assert memos.presence_losses == (12,)


def test_every_loss_is_remembered_and_what_was_reported_before_it_in_the_same_period_counts_as_lost(
    store: MemoStore, server: RedisServer
) -> None:
    """Who reported early in period 4 is new again in period 5: windows from 4 to 5 count that device twice."""
    memos = store.survey(respondent(terms="grace: 9d,"))
    for period in range(20):
        memos.presence.status(EVERYONE, period)
        memos.presence.delivered(EVERYONE[:200], period)
        if period in (4, 10):
            empty(server.url)
        if period == 10:
            memos.presence.delivered(EVERYONE[200:], 8)  # late, and the loss is noticed only now
        memos.presence.delivered(EVERYONE[200:], period)
    assert memos.presence_losses == (4, 5, 8, 9, 10, 11)
    assert store.survey(respondent(terms="grace: 9d,")).presence_losses == (4, 5, 8, 9, 10, 11)


def test_losses_that_several_processes_notice_are_all_remembered(store: MemoStore, server: RedisServer) -> None:
    """The one that notices last must not write over what the others have noted."""
    terms = "grace: 9d,"
    early, late = store.survey(respondent(terms=terms)), store.survey(respondent(terms=terms))
    for memos in (early, late):
        memos.presence.status(EVERYONE, 0)
    empty(server.url)
    early.presence.delivered(EVERYONE, 3)
    late.presence.delivered(EVERYONE, 7)
    assert store.survey(respondent(terms=terms)).presence_losses == (3, 4, 7, 8)


def test_the_commits_of_a_period_are_dropped_when_it_is_closed(store: MemoStore, server: RedisServer) -> None:
    memos = store.survey(respondent(terms="grace: 1d,"))
    for period in range(6):
        look_up(memos, period)
    with redis.Redis.from_url(server.url) as client:
        strings = {
            key.rpartition(b"@")[2]: client.ttl(key) for key in client.scan_iter("*@*") if client.strlen(key) > 1
        }
        marks = [key for key in client.scan_iter("*@*") if client.strlen(key) == 1]
        assert strings == {b"4": -1, b"5": -1}
        assert len(marks) == 4 * SHARDS and all(0 < client.ttl(mark) <= 3600 for mark in marks), "the marks expire too"


def test_a_closed_period_is_refused_and_not_taken_for_a_loss(store: MemoStore, server: RedisServer) -> None:
    slow, quick = store.survey(respondent()), store.survey(respondent())
    look_up(slow, 0)
    look_up(quick, 1)
    with pytest.raises(StoreError, match="period 0 of survey 'visits' is closed"):
        look_up(slow, 0)
    look_up(slow, 1)
    with redis.Redis.from_url(server.url) as client:
        for string in client.scan_iter("*@1"):
            client.delete(string)  # as a process does that advances to period 2 while this one is in a batch
    with pytest.raises(StoreError, match="period 1 of survey 'visits' is closed"):
        slow.lookup(QUESTION, devices(800)[400:], np.zeros(400, dtype=np.int64), 1)
    assert slow.presence_losses == ()


def test_a_store_that_is_declared_new_goes_on_and_one_that_lost_data_says_so_for_good(
    store: MemoStore, server: RedisServer
) -> None:
    uncapped = store.survey(respondent())
    look_up(uncapped, 0)
    store.confirm_history()
    assert store.history_confirmed and not store.has_lost_data
    capped = store.survey(CAPPED)
    look_up(capped, 0)
    look_up(uncapped, 1)
    assert uncapped.presence_losses == () and not store.has_lost_data
    assert "memo_cap bounds nothing" not in meanings(store)["capped"]
    empty(server.url)
    with pytest.raises(HistoryLost):
        look_up(capped, 1)
    assert store.has_lost_data, "a process that has seen the store notices"
    with pytest.raises(StoreError, match=r"has lost data \(accept the loss"):
        store.confirm_history()
    store.accept_loss()
    look_up(capped, 1)
    assert store.has_lost_data and store.stats().has_lost_data
    store.survey(respondent())
    assert "memo_cap bounds nothing" in meanings(store)["capped"] and "memo_cap" not in meanings(store)["visits"]
