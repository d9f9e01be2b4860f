"""The store against a plain dictionary, and the presence of a fleet against that of single devices."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memo_store.store import MemoStore
from memo_store.survey_memos import SurveyMemos
from protocols.errors import StoreError
from protocols.respondent import Respondent
from servers.redis_server import RedisServer
from tests.memo_store.surveys import devices, empty, ledger_of, respondent

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
    monkeypatch.setattr("memo_store.entries.CHUNK", 2)


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
        ledger = ledger_of(memos, np.arange(6, dtype=np.uint64))
        assert ledger.values["area"].tolist() == [len(model.created.get(device, [])) for device in range(6)]


EVERYONE = devices(40)
OpenMemos = Callable[[Respondent], SurveyMemos]
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
