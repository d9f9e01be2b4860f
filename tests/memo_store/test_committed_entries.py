"""A period reports the memo entry that it has committed, and a device never exceeds its cap, whatever happens."""

from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from memo_store.store import MemoStore
from memo_store.survey_memos import SurveyMemos
from memo_store.tables.memos import MemoTable
from memo_store.tables.period_commits import PeriodCommits
from producers.reporting import Reporter
from producers.scenarios.base import Presences
from protocols.arrays import Values
from protocols.errors import DeliveryError, HistoryLost
from protocols.respondent import Respondent
from tests.helpers.dying import Killed
from tests.helpers.sinks import KeepingSink
from tests.memo_store.surveys import devices, empty, memoised, respondent

EVERYONE = devices(300)


def people(cap: int | None) -> Respondent:
    return respondent(terms="grace: 9d," if cap is None else f"memo_cap: {cap}, grace: 9d,")


def values(value: int) -> Values:
    return np.full(len(EVERYONE), value)


def look_up(memos: SurveyMemos, value: int, period: int) -> list[Any]:
    return list(memos.lookup(memos.respondent.scheme.questions[0], EVERYONE, values(value), period).tolist())


def sent(memos: SurveyMemos, value: int, period: int) -> list[tuple[int, str, bytes]]:
    """What a process sends for a period over a sink that fails before it confirms anything."""
    sink = KeepingSink(fail_after=0)
    truth = Presences(period, EVERYONE, {"area": values(value)})
    with pytest.raises(DeliveryError):
        Reporter(memos, memos.presence, sink).report(truth)
    return sink.records


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("cap", [1, 2, 3])
def test_a_record_that_fills_between_two_attempts_at_a_period_does_not_change_what_is_sent(
    store: MemoStore, cap: int, restart: bool
) -> None:
    """A failure would be two memos under one noise: the first attempt's, and the one that the device holds now."""
    memos = store.survey(people(cap))
    first = sent(memos, 0, 0)
    for period in (1, 2, 3):
        sent(memos, period, period)
    assert memoised(store) == {cap: len(EVERYONE)}
    if restart:
        memos = store.survey(people(cap))
    assert first and sent(memos, 5, 0) == first


@pytest.mark.parametrize("cap", [None, 1, 2])
def test_a_crash_before_anything_is_committed_is_repaired_by_starting_again(
    store: MemoStore, monkeypatch: pytest.MonkeyPatch, cap: int | None
) -> None:
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(PeriodCommits, "committing", Mock(side_effect=Killed))
        look_up(store.survey(people(cap)), 3, 0)
    repaired = look_up(store.survey(people(cap)), 4, 0)
    assert look_up(store.survey(people(cap)), 5, 0) == repaired
    own, question = people(cap), people(cap).scheme.questions[0]
    assert repaired == own.memoise(question, EVERYONE, values(3 if cap == 1 else 4)).tolist()
    assert memoised(store) == {1: len(EVERYONE)}, "nothing was memoised before"


@pytest.mark.parametrize("cap", [None, 1, 2])
def test_of_two_processes_that_commit_two_memos_in_one_period_the_first_one_counts_for_both(
    store: MemoStore, monkeypatch: pytest.MonkeyPatch, cap: int | None
) -> None:
    slow, quick, first, commit = store.survey(people(cap)), store.survey(people(cap)), [], PeriodCommits.committing

    def quick_first(*arguments: Any) -> Any:
        monkeypatch.setattr(PeriodCommits, "committing", commit)
        first.append(look_up(quick, 3, 0))
        return commit(*arguments)

    monkeypatch.setattr(PeriodCommits, "committing", quick_first)
    assert look_up(slow, 4, 0) == first[0]
    assert look_up(store.survey(people(cap)), 5, 0) == first[0]


def test_an_entry_that_the_store_has_lost_is_derived_again_from_what_was_committed(
    store: MemoStore, hasty_redis_url: str
) -> None:
    """Also if another process has filled the record before: the noise of the period was used with this memo."""
    memos = store.survey(people(1))
    look_up(memos, 3, 0)
    held = look_up(memos, 4, 1)
    empty(hasty_redis_url)
    with pytest.raises(HistoryLost):
        look_up(memos, 4, 1)
    store.accept_loss()
    other = look_up(store.survey(people(1)), 7, 2)
    assert look_up(memos, 8, 1) == held
    assert look_up(memos, 8, 2) == other != held
    assert memoised(store) == {2: len(EVERYONE)}, "both were reported: the cap is void"


def test_two_processes_do_not_exceed_a_cap_together(store: MemoStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sees room for one more value; a failure would be both of them taking it."""
    slow, quick, create = store.survey(people(1)), store.survey(people(1)), MemoTable.create

    def quick_first(*arguments: Any) -> Any:
        monkeypatch.setattr(MemoTable, "create", create)
        look_up(quick, 3, 1)
        return create(*arguments)

    monkeypatch.setattr(MemoTable, "create", quick_first)
    held, own = look_up(slow, 4, 0), slow.respondent
    assert held == own.memoise(own.scheme.questions[0], EVERYONE, values(3)).tolist()
    assert memoised(store) == {1: len(EVERYONE)}


def test_real_and_fake_values_are_capped_alike(store: MemoStore) -> None:
    people, everyone = respondent(terms="memo_cap: 2, solution: rs+fd,", second=True), devices(500)
    memos = store.survey(people)
    for period in range(5):
        for question in people.scheme.questions:
            memos.lookup(question, everyone, (np.arange(500) + period) % question.k, period)
    sampled = people.sampled(everyone)
    assert 0 < np.mean(sampled == 0) < 1
    (found,) = store.stats().questions
    assert found.memos == {"area": 1000, "plan": 1000} and found.spent == ((pytest.approx(4.0), 500),)
