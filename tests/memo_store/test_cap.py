"""A device never exceeds its cap of memoised values, whatever happens to it."""

from typing import Any

import numpy as np
import pytest

from memo_store.store import MemoStore
from memo_store.tables.memos import MemoTable
from tests.memo_store.surveys import devices, ledger_of, respondent


def test_at_the_cap_a_device_holds_the_last_memo_it_created_for_good(store: MemoStore) -> None:
    people, everyone = respondent(terms="memo_cap: 2,"), devices(200)
    memos, question = store.survey(people), people.scheme.questions[0]
    seen = [memos.lookup(question, everyone, np.full(200, value), p) for p, value in enumerate((4, 5, 6, 4, 7))]
    own = {value: people.memoise(question, everyone, np.full(200, value)) for value in (4, 5)}
    for memo, value in zip(seen, (4, 5, 5, 5, 5), strict=True):
        assert (memo == own[value]).all()


def test_two_processes_do_not_exceed_a_cap_together(store: MemoStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sees room for one more value; a failure would be both of them taking it."""
    terms = "memo_cap: 1, grace: 1d,"
    slow, quick = (store.survey(respondent(terms=terms)) for _ in range(2))
    question, everyone, propose = slow.respondent.scheme.questions[0], devices(500), MemoTable.propose

    def quick_first(*arguments: Any) -> Any:
        monkeypatch.setattr(MemoTable, "propose", propose)
        quick.lookup(question, everyone, np.full(500, 3), 1)
        return propose(*arguments)

    monkeypatch.setattr(MemoTable, "propose", quick_first)
    held = slow.lookup(question, everyone, np.full(500, 4), 0)
    assert (held == quick.respondent.memoise(question, everyone, np.full(500, 3))).all()
    assert set(ledger_of(quick, everyone).values["area"].tolist()) == {1}


def test_real_and_fake_values_are_capped_alike(store: MemoStore) -> None:
    people, everyone = respondent(terms="memo_cap: 2, solution: rs+fd,", second=True), devices(500)
    memos = store.survey(people)
    for period in range(5):
        for question in people.scheme.questions:
            memos.lookup(question, everyone, (np.arange(500) + period) % question.k, period)
    sampled = people.sampled(everyone)
    counts = ledger_of(memos, everyone).values
    assert 0 < np.mean(sampled == 0) < 1
    assert {name: set(count.tolist()) for name, count in counts.items()} == {"area": {2}, "plan": {2}}
