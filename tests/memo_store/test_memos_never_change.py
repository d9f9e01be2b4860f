"""A memo, once used, never changes; a value of a period is committed once, and presence follows delivery."""

import multiprocessing
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from redis.connection import UnixDomainSocketConnection

from memo_store.store import MemoStore
from memo_store.survey_memos import SurveyMemos
from protocols.errors import FingerprintChanged, HistoryLost, StoreError
from protocols.respondent import Respondent
from servers.redis_server import RedisServer
from tests.helpers.another_release import never_choose
from tests.memo_store.surveys import devices, empty, going_back, memoised, respondent, running, unsteady

OpenMemos = Callable[[Respondent], SurveyMemos]
EVERYONE = devices(10_000)
VALUES = (EVERYONE % 10).astype(np.int64)


def race(url: str, start: Barrier, number: int) -> tuple[bytes, bytes]:
    """One of several processes: its draws are its own, and so is its idea of the devices' values in period 1."""
    with MemoStore(url) as store:
        memos = store.survey(unsteady(respondent()))
        question = memos.respondent.scheme.questions[0]
        start.wait(timeout=120)
        same_values = memos.lookup(question, EVERYONE, VALUES, 0)
        start.wait(timeout=120)
        other_values = memos.lookup(question, EVERYONE, (VALUES + number) % 10, 1)
        return same_values.tobytes(), other_values.tobytes()


def test_eight_processes_at_once_get_one_memo_for_each_device(redis_url: str) -> None:
    """A failure would be a device with two memos for one value, or with two values in one period."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["memo_store", "tests.memo_store.surveys"])
    with context.Manager() as manager, context.Pool(8) as pool:
        start = manager.Barrier(8)
        got = pool.starmap(race, [(redis_url, start, number) for number in range(8)])
    assert len({same for same, _ in got}) == 1
    assert len({other for _, other in got}) == 1


def test_whoever_wrote_first_wins_over_whoever_looked_first(open_memos: OpenMemos) -> None:
    """A failure would be the slow one's draw, in its answer or in the store."""
    slow, quick = unsteady(respondent()), open_memos(unsteady(respondent()))
    question, winners = slow.scheme.questions[0], list[NDArray[np.uint8]]()
    slow.meanwhile = lambda: winners.append(quick.lookup(question, EVERYONE, VALUES, 0))
    answer = open_memos(slow).lookup(question, EVERYONE, VALUES, 0)
    assert (answer == winners[0]).all()
    assert (answer == quick.lookup(question, EVERYONE, VALUES, 1)).all()


class Fragile(UnixDomainSocketConnection):
    """A connection whose server is killed right after some of the batches have been sent to it."""

    server: RedisServer
    fatal: frozenset[int] = frozenset()
    sent = 0

    def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        super().send_packed_command(command, check_health)
        Fragile.sent += 1
        if Fragile.sent in Fragile.fatal:
            Fragile.server.kill()


def test_a_redis_that_is_killed_again_and_again_changes_no_memo(tmp_path: Path, redis_executable: Path) -> None:
    """A failure would be a memo that was returned before a kill and is another one after it."""
    with running(tmp_path, executable=redis_executable) as server:
        Fragile.server, Fragile.sent, Fragile.fatal = server, 0, frozenset(range(30, 300, 19))
        pool = redis.ConnectionPool(connection_class=Fragile, path=str(server.socket), retry=None)
        client, restart = redis.Redis(connection_pool=pool), lambda _: None if server.running else server.start()
        with closing(pool), MemoStore(client, sleep=restart) as store:
            memos = store.survey(unsteady(respondent()))
            question = memos.respondent.scheme.questions[0]
            parts = np.array_split(EVERYONE, 40)
            before = [memos.lookup(question, part, VALUES[part], 0) for part in parts]
            assert Fragile.sent > max(Fragile.fatal) / 2, "the kills came too late to matter"
            Fragile.fatal = frozenset()
            server.kill()
            later = store.survey(unsteady(respondent()))
            assert np.count_nonzero(np.concatenate(before) != later.lookup(question, EVERYONE, VALUES, 1)) == 0
            assert np.count_nonzero(np.concatenate(before) != memos.lookup(question, EVERYONE, VALUES, 1)) == 0
            assert memos.presence_losses == (), "nothing was lost, so nothing may look lost"


def test_a_redis_emptied_in_the_middle_of_a_run_changes_no_memo(redis_url: str, open_memos: OpenMemos) -> None:
    memos = open_memos(respondent())
    question = memos.respondent.scheme.questions[0]
    before = memos.lookup(question, EVERYONE, VALUES, 3)
    memos.presence.delivered(EVERYONE[:5000], 3)
    empty(redis_url)
    again = memos.lookup(question, EVERYONE, (VALUES + 1) % 10, 3)
    assert np.count_nonzero(before != again) == 0, "not even the period's value changes while the process lives"
    later = open_memos(respondent())
    assert np.count_nonzero(before != later.lookup(question, EVERYONE, (VALUES + 2) % 10, 3)) == 0, "nor for others"
    assert np.count_nonzero(before != memos.lookup(question, EVERYONE, VALUES, 4)) == 0
    assert memos.presence_losses == (3, 4)
    assert open_memos(respondent()).presence.status(EVERYONE, 5).gaps.tolist() == [7] * 10_000


def test_a_redis_emptied_in_the_middle_of_a_run_stops_a_capped_survey(redis_url: str, open_memos: OpenMemos) -> None:
    capped = respondent(terms="memo_cap: 3,")
    with MemoStore(redis_url) as store:
        store.accept_loss()
        memos = open_memos(capped)
        question = capped.scheme.questions[0]
        before = memos.lookup(question, EVERYONE, VALUES, 0)
        empty(redis_url)
        for attempt in (
            lambda: memos.lookup(question, EVERYONE, VALUES, 1),
            lambda: memos.presence.status(EVERYONE, 1),
            lambda: memos.presence.delivered(EVERYONE, 1),
            lambda: open_memos(capped),
        ):
            with pytest.raises(HistoryLost, match="history of this store is not confirmed"):
                attempt()
        open_memos(respondent(id="uncapped")), "which confirms nothing"
        with pytest.raises(HistoryLost):
            open_memos(capped)
        store.accept_loss()
        assert np.count_nonzero(before != open_memos(capped).lookup(question, EVERYONE, VALUES, 1)) == 0


def test_a_device_asked_for_twice_in_one_batch_gets_one_memo(open_memos: OpenMemos) -> None:
    people, twice = respondent(), np.repeat(devices(100), 2)
    question = people.scheme.questions[0]
    memo = open_memos(people).lookup(question, twice, np.tile([1, 2], 100), 0)
    assert (memo[::2] == memo[1::2]).all()


@pytest.mark.parametrize("when", ["before the status", "before the delivery"])
def test_what_others_have_delivered_meanwhile_counts(redis_url: str, when: str) -> None:
    everyone, people = devices(40), respondent(terms="grace: 9d,")
    with MemoStore(redis_url) as slow, MemoStore(redis_url) as quick:
        ours, theirs = slow.survey(people), quick.survey(people)
        for period in (3, 6):
            ours.presence.status(everyone, period)
            theirs.presence.delivered(everyone[:20], period + 2)
            if when == "before the status":
                assert ours.presence.status(everyone, period).eligible.tolist() == [False] * 20 + [True] * 20
            ours.presence.delivered(everyone, period)
            for either in (ours, theirs):
                assert either.presence.status(everyone, period + 3).gaps.tolist() == [1] * 20 + [3] * 20
        (found,) = slow.stats().surveys
        assert (found.devices, found.reports) == (40, 80)


def test_a_period_past_its_grace_is_closed_for_all_devices(open_memos: OpenMemos) -> None:
    people, everyone = respondent(terms="grace: 1d,"), devices(2)
    memos = open_memos(people)
    assert memos.presence.status(everyone, 10).eligible.all()
    assert memos.presence.status(everyone, 9).eligible.all(), "grace keeps it open"
    assert not memos.presence.status(everyone, 8).eligible.any()


def test_by_the_wall_clock_a_period_is_closed_at_its_end_plus_grace_also_for_who_has_a_clock_behind(
    redis_url: str,
) -> None:
    noon = datetime(2026, 1, 4, 12, tzinfo=UTC)  # day 3; day 2 has ended, and its grace with it
    people, everyone = respondent(terms="grace: 6h,", clock="wall"), devices(300)
    question = people.scheme.questions[0]
    with (
        MemoStore(redis_url, now=lambda: noon - timedelta(hours=7)) as behind,
        MemoStore(redis_url, now=lambda: noon) as right,
    ):
        slow, quick = behind.survey(people), right.survey(people)
        assert [slow.presence.status(everyone, period).eligible.all() for period in (2, 3, 4)] == [True, True, True]
        slow.lookup(question, everyone, np.zeros(300, dtype=np.int64), 2)
        assert [quick.presence.status(everyone, period).eligible.all() for period in (2, 3, 4)] == [False, True, True]
        with pytest.raises(StoreError, match="period 2 of survey 'visits' is closed"):
            behind.survey(people).lookup(question, everyone, np.ones(300, dtype=np.int64), 2)


def test_an_id_that_was_used_for_other_terms_is_refused_also_if_a_release_resolves_it_to_them(
    open_memos: OpenMemos, monkeypatch: pytest.MonkeyPatch
) -> None:
    (question,) = open_memos(respondent()).respondent.scheme.questions
    with pytest.raises(FingerprintChanged, match="'visits' was first seen with the fingerprint"):
        open_memos(respondent(k=11))
    never_choose(monkeypatch, question.label)
    with pytest.raises(FingerprintChanged) as refused:
        open_memos(respondent())
    assert "if its file is unchanged, another release" in refused.value.hint


def test_a_one_shot_survey_commits_values_and_memoises_nothing(store: MemoStore) -> None:
    people, everyone = respondent(budgets="eps: 1"), devices(50)
    memos, question = store.survey(people), people.scheme.questions[0]
    values = np.arange(50) % 10
    for asked in (values, (values + 1) % 10):
        assert (memos.commit_values(question, everyone, asked, 0) == values).all()
    assert store.stats().questions == ()


# The store against a plain dictionary, and the presence of a fleet against that of single devices.
K, CAP, HORIZON = 4, 2, 7

batches = st.lists(st.tuples(st.integers(0, 5), st.integers(0, K - 1)), max_size=6)
steps = st.lists(
    st.tuples(st.sampled_from(["lookup", "lookup", "delivered", "status", "restart"]), st.integers(0, 2), batches),
    max_size=12,
)


class Dictionary:
    """What the store promises, without Redis, scripts, shards or sealing."""

    def __init__(self, cap: int | None) -> None:
        self.cap = cap
        self.created: dict[int, list[int]] = {}
        self.committed: dict[tuple[int, int], int] = {}
        self.last: dict[int, int] = {}
        self.newest = -1

    def lookup(self, device: int, value: int, period: int) -> int:
        """The value whose memo the device uses."""
        if (device, period) not in self.committed:
            created = self.created.setdefault(device, [])
            if self.cap is not None and len(created) == self.cap:
                value = created[-1]
            elif value not in created:
                created.append(value)
            self.committed[device, period] = value
        return self.committed[device, period]

    def delivered(self, device: int, period: int) -> None:
        self.last[device] = max(period, self.last.get(device, -1))

    def status(self, device: int, period: int) -> tuple[int, bool]:
        last = self.last.get(device)
        gap = HORIZON if last is None else max(1, min(HORIZON, period - last))
        return gap, (last is None or last < period) and period >= self.newest


def columns(batch: list[tuple[int, int]]) -> tuple[Any, Any]:
    first = dict(reversed(batch))  # a device is asked for once in a batch
    return np.array(list(first), dtype=np.uint64), np.array(list(first.values()), dtype=np.int64)


@pytest.fixture
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two devices in each batch that is read from the store, so that a lookup has several of them."""
    monkeypatch.setattr("memo_store.tables.memos.CHUNK", 2)


@pytest.mark.usefixtures("few_at_once")
@pytest.mark.parametrize("cap", [None, CAP])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(script=steps)
def test_the_store_answers_as_a_dictionary_would(hasty_redis_url: str, cap: int | None, script: list[Any]) -> None:
    with redis.Redis.from_url(hasty_redis_url) as client, MemoStore(client) as store:
        client.flushall()
        store.accept_loss()
        people: Respondent = respondent(k=K, terms=f"memo_cap: {cap}," if cap else "")
        question, memos, model = people.scheme.questions[0], store.survey(people), Dictionary(cap)
        period = 0
        for what, later, batch in script:
            devices, values = columns(batch)
            period += later
            if what == "restart":
                memos = store.survey(people)
            elif what == "lookup":
                used = [model.lookup(d, v, period) for d, v in zip(devices.tolist(), values.tolist(), strict=True)]
                expected = people.memoise(question, devices, np.array(used, dtype=np.int64))
                assert memos.lookup(question, devices, values, period).tolist() == expected.tolist()
            elif what == "delivered":
                memos.presence.delivered(devices, period)
                for device in devices.tolist():
                    model.delivered(device, period)
            else:
                model.newest = max(model.newest, period)
                status = memos.presence.status(devices, period)
                expected_status = [model.status(device, period) for device in devices.tolist()]
                assert list(zip(status.gaps.tolist(), status.eligible.tolist(), strict=True)) == expected_status
        assert memoised(store) == Counter(map(len, model.created.values()))


FEW = devices(40)
Happening = list[tuple[int, set[int]]]
happenings = st.lists(st.tuples(st.integers(0, 9), st.sets(st.integers(0, 39))), min_size=1, max_size=12)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(happening=happenings)
def test_a_fleets_presence_agrees_with_that_of_single_devices(hasty_redis_url: str, happening: Happening) -> None:
    empty(hasty_redis_url)
    with MemoStore(hasty_redis_url) as store:
        table, numbered = (store.survey(respondent(id=id, terms="grace: 9d,")) for id in ("table", "numbered"))
        fleet = numbered.fleet_presence(40)
        for period, there in happening:
            some = np.array(sorted(there), dtype=np.uint64)
            for presence in (table.presence, fleet):
                presence.delivered(some[presence.status(some, period).eligible], period)
            expected, found = table.presence.status(FEW, period), fleet.status(FEW, period)
            assert found.gaps.tolist() == expected.gaps.tolist()
            assert found.eligible.tolist() == expected.eligible.tolist()
        one, other = store.stats().surveys
        assert (one.devices, one.reports) == (other.devices, other.reports)
        again = numbered.fleet_presence(40).status(FEW, 9)
        assert again.gaps.tolist() == table.presence.status(FEW, 9).gaps.tolist()


def test_a_second_writer_is_refused(store: MemoStore) -> None:
    memos = store.survey(respondent())
    first, second = memos.fleet_presence(40), memos.fleet_presence(40)
    first.delivered(FEW[:5], 0)
    with pytest.raises(StoreError, match="another process reports for the same fleet"):
        second.delivered(FEW[5:], 0)
    memos.fleet_presence(40).delivered(FEW[5:], 0)
    (found,) = store.stats().surveys
    assert (found.devices, found.reports) == (40, 40)


def test_a_fleets_presence_survives_an_emptied_store_as_long_as_the_fleet_runs(
    open_memos: OpenMemos, redis_url: str
) -> None:
    memos = open_memos(respondent())
    fleet = memos.fleet_presence(40)
    fleet.delivered(FEW[:20], 0)
    empty(redis_url)
    fleet.delivered(FEW[20:], 1)
    assert memos.presence_losses == (1, 2)
    assert memos.fleet_presence(40).status(FEW, 2).gaps.tolist() == [2] * 20 + [1] * 20


@pytest.mark.parametrize("first", ["delivered", "checked", "looked up"])
def test_a_fleets_presence_survives_a_store_that_goes_back_in_time(
    server: RedisServer, tmp_path: Path, first: str
) -> None:
    """The old columns in the restored copy must not be taken for the work of another process, whoever notices first."""
    with MemoStore(server.url, sleep=lambda _: None) as store:
        memos = store.survey(respondent())
        fleet = memos.fleet_presence(40)
        fleet.delivered(FEW[:10], 0)
        with going_back(server, tmp_path / "copy"):
            fleet.delivered(FEW[:30], 1)
        if first == "checked":
            memos.presence.status(FEW[:0], 2)
        if first == "looked up":
            memos.lookup(memos.respondent.scheme.questions[0], FEW, np.zeros(40, dtype=np.int64), 2)
        fleet.delivered(FEW[30:], 2)
        assert memos.presence_losses == (2, 3)
        assert memos.fleet_presence(40).status(FEW, 3).gaps.tolist() == [2] * 30 + [1] * 10


def test_a_fleet_may_grow(store: MemoStore) -> None:
    memos = store.survey(respondent())
    memos.fleet_presence(10).delivered(FEW[:10], 0)
    memos.fleet_presence(40).delivered(FEW[30:], 1)
    assert (store.stats().surveys[0].devices, store.stats().surveys[0].reports) == (20, 20)
    assert memos.fleet_presence(10).status(FEW[30:], 2).gaps.tolist() == [1] * 10
