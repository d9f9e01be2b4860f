"""A memo, once used, never changes: not by a race, a crash, a restart, or a wiped Redis."""

import multiprocessing
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis
from numpy.typing import NDArray
from redis.connection import UnixDomainSocketConnection

from memo_store.store import MemoStore
from memo_store.survey_memos import SurveyMemos
from protocols.errors import HistoryLost
from protocols.respondent import Respondent
from servers.redis_server import RedisServer
from tests.memo_store.surveys import devices, empty, respondent, running, unsteady

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


def test_whoever_wrote_first_wins_over_whoever_looked_first(open_memos: Callable[[Respondent], SurveyMemos]) -> None:
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
        client = redis.Redis(
            connection_pool=redis.ConnectionPool(connection_class=Fragile, path=str(server.socket), retry=None)
        )
        with MemoStore(client, sleep=lambda _: None if server.running else server.start()) as store:
            memos = store.survey(unsteady(respondent()))
            question = memos.respondent.scheme.questions[0]
            parts = np.array_split(EVERYONE, 40)
            before = [memos.lookup(question, part, VALUES[part], 0) for part in parts]
            assert Fragile.sent > max(Fragile.fatal) / 2, "the kills came too late to matter"
            Fragile.fatal = frozenset()
            server.kill()
            after = memos.lookup(question, EVERYONE, VALUES, 1)
            assert np.count_nonzero(np.concatenate(before) != after) == 0
            assert memos.presence_losses == (), "nothing was lost, so nothing may look lost"


def test_a_redis_emptied_in_the_middle_of_a_run_changes_no_memo(
    redis_url: str, open_memos: Callable[[Respondent], SurveyMemos]
) -> None:
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


def test_a_redis_emptied_in_the_middle_of_a_run_stops_a_capped_survey(
    redis_url: str, open_memos: Callable[[Respondent], SurveyMemos]
) -> None:
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
