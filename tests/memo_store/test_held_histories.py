"""At the cap a device holds its last memo for good: the store against the definition, over random histories."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memo_store.store import MemoStore
from protocols.privacy.histories import held
from tests.memo_store.ledgers import ledger_of
from tests.memo_store.surveys import respondent

K, DEVICES, PERIODS = 4, 5, 8
column = st.lists(st.integers(0, K - 1), min_size=DEVICES, max_size=DEVICES)


@dataclass(frozen=True)
class Attempt:
    """One process looks all devices up, maybe after a restart; the other one, or itself, tries again later."""

    process: int
    restart: bool
    later_values: list[int] | None


attempts = st.builds(Attempt, st.integers(0, 1), st.booleans(), st.none() | column)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cap=st.integers(1, 3),
    history=st.lists(column, min_size=PERIODS, max_size=PERIODS),
    script=st.lists(attempts, min_size=PERIODS, max_size=PERIODS),
)
def test_devices_report_the_memos_that_the_definition_names(
    hasty_redis_url: str, cap: int, history: list[list[int]], script: list[Attempt]
) -> None:
    """Every period is tried again in the end, when records have filled: it must give the memos of its first attempt."""
    people, everyone = (
        respondent(k=K, terms=f"memo_cap: {cap}, grace: {PERIODS}d,"),
        np.arange(DEVICES, dtype=np.uint64),
    )
    question = people.scheme.questions[0]
    with redis.Redis.from_url(hasty_redis_url) as client:
        client.flushall()
    with MemoStore(hasty_redis_url) as one, MemoStore(hasty_redis_url) as other:
        one.accept_loss()
        stores = (one, other)
        processes = [store.survey(people) for store in stores]
        seen = []
        for period, (values, attempt) in enumerate(zip(history, script, strict=True)):
            if attempt.restart:
                processes[attempt.process] = stores[attempt.process].survey(people)
            seen.append(processes[attempt.process].lookup(question, everyone, np.array(values), period))
            if attempt.later_values is not None:
                again = processes[1 - attempt.process].lookup(
                    question, everyone, np.array(attempt.later_values), period
                )
                assert again.tolist() == seen[-1].tolist()
        for period, memos in enumerate(seen):
            again = processes[period % 2].lookup(question, everyone, np.array(history[period]), period)
            assert again.tolist() == memos.tolist()
        reported = np.array([held(own, cap) for own in zip(*history, strict=True)])
        for memos, cells in zip(seen, reported.T, strict=True):
            assert memos.tolist() == people.memoise(question, everyone, cells).tolist()
        assert ledger_of(processes[0], everyone).values["area"].tolist() == [
            min(cap, len(set(own))) for own in zip(*history, strict=True)
        ]
