"""The store against a plain dictionary: any sequence of batches, restarts included, must give the same answers."""

from typing import Any

import numpy as np
import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memo_store.store import MemoStore
from protocols.respondent import Respondent
from tests.memo_store.surveys import ledger_of, respondent

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
