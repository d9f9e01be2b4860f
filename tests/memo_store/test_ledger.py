"""What devices have spent, in one survey and in all, and what the store says of itself without any key."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import redis

from memo_store.connection.layout import SHARDS
from memo_store.registry import COSTED
from memo_store.store import MemoStore
from memo_store.survey_memos import Lookup, SurveyMemos
from protocols.errors import HistoryLost, StoreError
from servers.redis_server import RedisServer
from tests.memo_store.surveys import devices, empty, ledger_of, respondent

EVERYONE = devices(1000)


def live(memos: SurveyMemos, periods: int) -> None:
    """Devices whose values move on by one each period, each in what it is asked."""
    scheme = memos.respondent.scheme
    for period in range(periods):
        for place, question in enumerate(scheme.questions):
            asked = EVERYONE
            if scheme.discloses:
                asked = EVERYONE[memos.respondent.sampled(EVERYONE) == place]
            values = (asked.astype(np.int64) + period) % question.k
            if scheme.survey.longitudinal:
                memos.lookup(question, asked, values, period)
            else:
                memos.commit_values([Lookup(question, asked, values)], period)
        memos.presence.delivered(EVERYONE, period)


@pytest.mark.parametrize(
    ("terms", "spent"),
    [
        ("solution: smp,", 3 * 2.0),  # one attribute, a = 2 for each of three values
        ("solution: spl,", 3 * 1.0 + 2 * 1.0),  # a / 2 for each value: three areas and both plans
        ("solution: rs+fd,", 3 * 2.0),  # e' for each value; whole tuples, so e' is a
        ("solution: rs+fd, guarantee: published,", 3 * np.log(2 * (np.exp(2) - 1) + 1)),
    ],
)
def test_each_value_costs_what_its_solution_says(store: MemoStore, terms: str, spent: float) -> None:
    memos = store.survey(respondent(terms=terms, second=True))
    live(memos, 3)
    ledger = ledger_of(memos, EVERYONE)
    in_area = ledger.values["area"] == 3
    assert in_area.any()
    assert ledger.spent[in_area] == pytest.approx(spent)
    assert "relation renaming" in ledger.meaning


def test_one_shot_reports_add_up_and_saying_delivered_twice_does_not(store: MemoStore) -> None:
    memos = store.survey(respondent(budgets="eps: 0.5"))
    live(memos, 4)
    memos.presence.delivered(EVERYONE[:10], 3)
    ledger = ledger_of(memos, EVERYONE)
    assert set(ledger.reports.tolist()) == {4}
    assert ledger.spent == pytest.approx(2.0)
    assert "relation any: the sum over all reports" in ledger.meaning


def test_with_one_in_at_most_one_report_in_so_many_periods_has_cost(store: MemoStore) -> None:
    memos = store.survey(respondent(budgets="eps: 0.5, one_in: 3"))
    live(memos, 7)
    memos.presence.delivered(EVERYONE[:10], 20)
    ledger = ledger_of(memos, EVERYONE)
    assert ledger.spent[10:] == pytest.approx(3 * 0.5)  # periods 0 to 6 hold three answers at most
    assert ledger.spent[:10] == pytest.approx(7 * 0.5)  # 21 periods hold seven
    assert set(ledger.reports[:10].tolist()) == {8}
    answers = sum(memos.respondent.answering(EVERYONE, period) for period in range(7))
    assert (ledger.spent > 0.5 * answers - 1e-9).all()
    assert "at most one in 3 consecutive periods" in ledger.meaning
    (survey,) = store.stats().surveys
    assert survey.spent == ((pytest.approx(1.5), 990), (pytest.approx(3.5), 10))


def test_a_fleet_that_takes_turns_is_charged_no_more_than_its_reports_and_its_periods_allow(store: MemoStore) -> None:
    memos = store.survey(respondent(budgets="eps: 0.5, one_in: 3"))
    presence = memos.fleet_presence(1200)  # of which 200 never report
    for period in range(7):
        presence.status(EVERYONE, period)
        presence.delivered(EVERYONE if period < 2 else EVERYONE[:400], period)
    assert ledger_of(memos, EVERYONE).spent.tolist() == pytest.approx([1.5] * 400 + [0.5] * 600)
    (survey,) = store.stats().surveys  # without a key it is not known when a device reported last
    assert (survey.devices, survey.reports) == (1000, 4000)
    assert survey.spent == ((pytest.approx(1.0), 600), (pytest.approx(1.5), 400))


def test_values_beyond_those_whose_cost_is_listed_cost_no_less(store: MemoStore) -> None:
    memos = store.survey(respondent(k=COSTED + 8, terms=""))
    live(memos, COSTED + 5)
    assert ledger_of(memos, EVERYONE).spent == pytest.approx(2.0 * (COSTED + 5))


def test_stats_show_spending_and_devices_at_their_cap_without_any_key(store: MemoStore) -> None:
    memos = store.survey(respondent(terms="memo_cap: 2, solution: spl,", second=True))
    question = memos.respondent.scheme.questions[0]
    memos.lookup(question, EVERYONE, np.zeros(1000, dtype=np.int64), 0)
    memos.lookup(question, EVERYONE[:300], np.ones(300, dtype=np.int64), 1)
    memos.presence.delivered(EVERYONE[:500], 1)
    found = store.stats()
    (survey,) = found.surveys
    assert (survey.survey, survey.devices, survey.reports) == ("visits", 500, 500)
    assert survey.at_cap == {"area": 300, "plan": 0} and survey.spent == ()
    area, plan = sorted(found.questions, key=lambda question: -question.devices)
    assert (area.memos, plan.memos, area.surveys) == ({"area": 1300}, {"plan": 0}, ("visits",))
    assert area.spent == ((pytest.approx(1.0), 700), (pytest.approx(2.0), 300)) and plan.spent == ()
    assert [area.quantile(share) for share in (0.5, 0.7, 0.71, 1.0)] == pytest.approx([1, 1, 2, 2])
    assert found.history_confirmed and found.memory > 0 and found.keys > 0
    assert found.durability.append_only


def test_the_statistics_of_an_empty_store_are_empty_and_leave_it_empty(hasty_redis_url: str) -> None:
    with MemoStore(hasty_redis_url) as store:
        found = store.stats()
        assert (found.surveys, found.keys, found.history_confirmed) == ((), 0, False)
        assert store.stats().keys == 0


# A store that has lost data is noticed: emptied, gone back in time, or in part.
SOME = devices(400)
CAPPED = respondent(id="capped", terms="memo_cap: 3,")
QUESTION = CAPPED.scheme.questions[0]


@pytest.fixture
def store(server: RedisServer) -> Iterator[MemoStore]:
    """A store that survives restarts of its server, because it waits for them."""
    with MemoStore(server.url, sleep=lambda _: None if server.running else server.start()) as store:
        yield store


def look_up(memos: SurveyMemos, period: int) -> None:
    memos.lookup(memos.respondent.scheme.questions[0], SOME, np.full(len(SOME), period % 10), period)


def go_back(server: RedisServer, copy: Path) -> None:
    """Restore an old copy, as an operator would after a broken disk, or a failover to a replica that lagged."""
    server.kill()
    shutil.rmtree(server.directory)
    shutil.copytree(copy, server.directory)
    server.start()


def test_a_store_that_goes_back_in_time_stops_capped_surveys_for_good(
    server: RedisServer, store: MemoStore, tmp_path: Path
) -> None:
    """Its epoch is the right one, and still devices have been permitted more than it knows of."""
    store.accept_loss()
    capped, uncapped = store.survey(CAPPED), store.survey(respondent())
    look_up(capped, 0)
    look_up(uncapped, 0)
    shutil.copytree(server.directory, tmp_path / "copy", ignore=shutil.ignore_patterns("*.sock"))
    look_up(capped, 1)
    look_up(uncapped, 1)
    go_back(server, tmp_path / "copy")
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
        memos.presence.status(SOME, 0)
        memos.presence.delivered(SOME, 0)
    empty(server.url)
    with pytest.raises(HistoryLost):
        capped.presence.status(SOME, 1)
    uncapped.presence.status(SOME, 1)
    assert uncapped.presence_losses == (1, 2)


def test_a_restart_without_loss_is_not_mistaken_for_one(store: MemoStore, server: RedisServer) -> None:
    store.accept_loss()
    memos = store.survey(CAPPED)
    for period in range(4):
        look_up(memos, period)
        memos.presence.delivered(SOME, period)
        server.kill()
    assert memos.presence.status(SOME, 5).gaps.tolist() == [2] * len(SOME)
    assert memos.presence_losses == ()


def test_a_survey_first_seen_in_a_later_period_says_that_it_knows_nothing_before(store: MemoStore) -> None:
    memos = store.survey(respondent())
    memos.presence.status(SOME, 12)
    assert memos.presence_losses == (12,)
    assert store.survey(respondent()).presence_losses == (12,)
    memos.presence.status(SOME, 13)
    assert memos.presence_losses == (12,)


def test_every_loss_is_remembered_and_what_was_reported_before_it_in_the_same_period_counts_as_lost(
    store: MemoStore, server: RedisServer
) -> None:
    """Who reported early in period 4 is new again in period 5: windows from 4 to 5 count that device twice."""
    memos = store.survey(respondent(terms="grace: 9d,"))
    for period in range(20):
        memos.presence.status(SOME, period)
        memos.presence.delivered(SOME[:200], period)
        if period in (4, 10):
            empty(server.url)
        if period == 10:
            memos.presence.delivered(SOME[200:], 8)  # late, and the loss is noticed only now
        memos.presence.delivered(SOME[200:], period)
    assert memos.presence_losses == (4, 5, 8, 9, 10, 11)
    assert store.survey(respondent(terms="grace: 9d,")).presence_losses == (4, 5, 8, 9, 10, 11)


def test_losses_that_several_processes_notice_are_all_remembered(store: MemoStore, server: RedisServer) -> None:
    """The one that notices last must not write over what the others have noted."""
    terms = "grace: 9d,"
    early, late = store.survey(respondent(terms=terms)), store.survey(respondent(terms=terms))
    for memos in (early, late):
        memos.presence.status(SOME, 0)
    empty(server.url)
    early.presence.delivered(SOME, 3)
    late.presence.delivered(SOME, 7)
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
    assert "memo_cap bounds nothing" not in ledger_of(capped, SOME).meaning
    empty(server.url)
    with pytest.raises(HistoryLost):
        look_up(capped, 1)
    assert store.has_lost_data, "a process that has seen the store notices"
    with pytest.raises(StoreError, match=r"has lost data \(accept the loss"):
        store.confirm_history()
    store.accept_loss()
    look_up(capped, 1)
    assert store.has_lost_data and store.stats().has_lost_data
    assert "memo_cap bounds nothing" in ledger_of(capped, SOME).meaning
    assert "memo_cap" not in ledger_of(store.survey(respondent()), SOME).meaning
