"""The presence of a fleet agrees with that of single devices, and a second writer is refused."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memo_store.store import MemoStore
from memo_store.survey_memos import SurveyMemos
from protocols.errors import StoreError
from protocols.respondent import Respondent
from servers.redis_server import RedisServer
from tests.memo_store.surveys import devices, empty, ledger_of, respondent

EVERYONE = devices(40)
OpenMemos = Callable[[Respondent], SurveyMemos]
Happening = list[tuple[int, set[int]]]
steps = st.lists(st.tuples(st.integers(0, 9), st.sets(st.integers(0, 39))), min_size=1, max_size=12)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(happening=steps)
def test_a_fleets_presence_agrees_with_that_of_single_devices(hasty_redis_url: str, happening: Happening) -> None:
    empty(hasty_redis_url)
    with MemoStore(hasty_redis_url) as store:
        table, numbered = (store.survey(respondent(id=id, terms="grace: 9d,")) for id in ("table", "numbered"))
        fleet = numbered.fleet_presence(40)
        for period, there in happening:
            some = np.array(sorted(there), dtype=np.uint64)
            for presence in (table.presence, fleet):
                presence.delivered(some[presence.status(some, period).eligible], period)
            expected, found = table.presence.status(EVERYONE, period), fleet.status(EVERYONE, period)
            assert found.gaps.tolist() == expected.gaps.tolist()
            assert found.eligible.tolist() == expected.eligible.tolist()
        assert ledger_of(numbered, EVERYONE).reports.tolist() == ledger_of(table, EVERYONE).reports.tolist()
        again = numbered.fleet_presence(40).status(EVERYONE, 9)
        assert again.gaps.tolist() == table.presence.status(EVERYONE, 9).gaps.tolist()


def test_a_second_writer_is_refused(open_memos: OpenMemos) -> None:
    memos = open_memos(respondent())
    first, second = memos.fleet_presence(40), memos.fleet_presence(40)
    first.delivered(EVERYONE[:5], 0)
    with pytest.raises(StoreError, match="another process reports for the same fleet"):
        second.delivered(EVERYONE[5:], 0)
    memos.fleet_presence(40).delivered(EVERYONE[5:], 0)
    assert ledger_of(memos, EVERYONE).reports.tolist() == [1] * 40


def test_a_fleets_presence_survives_an_emptied_store_as_long_as_the_fleet_runs(
    open_memos: OpenMemos, redis_url: str
) -> None:
    memos = open_memos(respondent())
    fleet = memos.fleet_presence(40)
    fleet.delivered(EVERYONE[:20], 0)
    empty(redis_url)
    fleet.delivered(EVERYONE[20:], 1)
    assert memos.presence_losses == (1, 2)
    assert memos.fleet_presence(40).status(EVERYONE, 2).gaps.tolist() == [2] * 20 + [1] * 20


@pytest.mark.parametrize("first", ["delivered", "checked", "looked up"])
def test_a_fleets_presence_survives_a_store_that_goes_back_in_time(
    server: RedisServer, tmp_path: Path, first: str
) -> None:
    """The old columns in the restored copy must not be taken for the work of another process, whoever notices first."""
    with MemoStore(server.url, sleep=lambda _: None) as store:
        memos = store.survey(respondent())
        fleet = memos.fleet_presence(40)
        fleet.delivered(EVERYONE[:10], 0)
        shutil.copytree(server.directory, tmp_path / "copy", ignore=shutil.ignore_patterns("*.sock"))
        fleet.delivered(EVERYONE[:30], 1)
        server.kill()
        shutil.rmtree(server.directory)
        shutil.copytree(tmp_path / "copy", server.directory)
        server.start()
        if first == "checked":
            memos.presence.status(EVERYONE[:0], 2)
        if first == "looked up":
            memos.lookup(memos.respondent.scheme.questions[0], EVERYONE, np.zeros(40, dtype=np.int64), 2)
        fleet.delivered(EVERYONE[30:], 2)
        assert memos.presence_losses == (2, 3)
        assert memos.fleet_presence(40).status(EVERYONE, 3).gaps.tolist() == [2] * 30 + [1] * 10


def test_a_fleet_may_grow(open_memos: OpenMemos) -> None:
    memos = open_memos(respondent())
    memos.fleet_presence(10).delivered(EVERYONE[:10], 0)
    memos.fleet_presence(40).delivered(EVERYONE[30:], 1)
    assert ledger_of(memos, EVERYONE).reports.tolist() == [1] * 10 + [0] * 20 + [1] * 10
    assert memos.fleet_presence(10).status(EVERYONE[30:], 2).gaps.tolist() == [1] * 10
