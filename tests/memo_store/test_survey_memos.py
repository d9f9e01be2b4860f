"""One survey in the store: memos never change, a period's value is committed once, presence follows delivery."""

from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from memo_store.connection.link import Link
from memo_store.sealing import Sealer
from memo_store.store import MemoStore
from memo_store.survey_memos import Lookup, SurveyMemos
from memo_store.survey_state import SurveyState
from protocols.errors import FingerprintChanged, StoreError
from protocols.respondent import Respondent
from tests.helpers.another_release import never_choose
from tests.memo_store.surveys import devices, ledger_of, respondent

OpenMemos = Callable[[Respondent], SurveyMemos]


def test_a_device_asked_for_twice_in_one_batch_gets_one_memo(open_memos: OpenMemos) -> None:
    people, twice = respondent(), np.repeat(devices(100), 2)
    question = people.scheme.questions[0]
    memo = open_memos(people).lookup(question, twice, np.tile([1, 2], 100), 0)
    assert (memo[::2] == memo[1::2]).all()


@pytest.mark.parametrize("held", [0, 25, 1000])
@pytest.mark.parametrize("when", ["before the status", "before the delivery", "noticed before the delivery"])
def test_what_others_have_delivered_meanwhile_counts(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, held: int, when: str
) -> None:
    monkeypatch.setattr("memo_store.presence.MOST_HELD", held)
    everyone, people = devices(40), respondent(terms="grace: 9d,")
    with MemoStore(redis_url) as slow, MemoStore(redis_url) as quick:
        ours, theirs = slow.survey(people), quick.survey(people)
        for period in (3, 6):
            ours.presence.status(everyone, period)
            theirs.presence.delivered(everyone[:20], period + 2)
            if when == "noticed before the delivery":
                ours.presence.status(everyone[:0], period)
            if when == "before the status":
                assert ours.presence.status(everyone, period).eligible.tolist() == [False] * 20 + [True] * 20
            ours.presence.delivered(everyone, period)
            for either in (ours, theirs):
                assert either.presence.status(everyone, period + 3).gaps.tolist() == [1] * 20 + [3] * 20
        assert ledger_of(ours, everyone).reports.tolist() == [2] * 40


def test_a_period_past_its_grace_is_closed_for_all_devices(open_memos: OpenMemos) -> None:
    people, everyone = respondent(terms="grace: 1d,"), devices(2)
    memos = open_memos(people)
    assert memos.presence.status(everyone, 10).eligible.all()
    assert memos.presence.status(everyone, 9).eligible.all(), "grace keeps it open"
    assert not memos.presence.status(everyone, 8).eligible.any()


def test_by_the_wall_clock_a_period_is_closed_at_its_end_plus_grace(redis_url: str) -> None:
    noon = datetime(2026, 1, 4, 12, tzinfo=UTC)  # day 3; day 2 has ended, and its grace with it
    people, everyone = respondent(terms="grace: 6h,", clock="wall"), devices(2)
    for now, open_periods in ((noon, [False, True, True]), (noon - timedelta(hours=7), [True, True, True])):
        with MemoStore(redis_url, now=lambda now=now: now) as store:
            memos = store.survey(people)
            assert [memos.presence.status(everyone, period).eligible.all() for period in (2, 3, 4)] == open_periods


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


def test_a_one_shot_survey_commits_values_and_memoises_nothing(open_memos: OpenMemos) -> None:
    people, everyone = respondent(budgets="eps: 1"), devices(50)
    memos, question = open_memos(people), people.scheme.questions[0]
    values = np.arange(50) % 10
    for given in (values, (values + 1) % 10):
        (committed,) = memos.commit_values([Lookup(question, everyone, given)], 0)
        assert (committed == values).all()
    assert not ledger_of(memos, everyone).values[question.name].any()


class SlowState(SurveyState):
    """Something happens between its check that a period is open and its commit there."""

    meanwhile: Callable[[], object] = staticmethod(lambda: None)

    def require_open(self, period: int) -> None:
        super().require_open(period)
        self.meanwhile()


def test_a_period_that_closes_between_check_and_commit_is_not_committed_again(
    open_memos: OpenMemos, redis_url: str
) -> None:
    """Failure would look like: the memo of another value than the one that may have been reported."""
    people, everyone = respondent(), devices(300)
    question, quick = people.scheme.questions[0], open_memos(people)
    quick.lookup(question, everyone, np.zeros(300, dtype=np.int64), 0)
    with closing(Link(redis_url)) as link:
        sealer = Sealer(people.keyring, "visits", people.scheme.fingerprint)
        slow = SlowState(link, people.scheme, sealer, lambda: datetime.now(UTC))
        slow.meanwhile = lambda: quick.presence.status(everyone, 1)
        with pytest.raises(StoreError, match="period 0 of survey 'visits' is closed"):
            SurveyMemos(slow, people).lookup(question, everyone, np.ones(300, dtype=np.int64), 0)


def test_a_process_whose_clock_is_behind_does_not_commit_in_a_period_that_another_has_closed(redis_url: str) -> None:
    noon = datetime(2026, 1, 4, 12, tzinfo=UTC)  # day 2 and its grace end at six
    people, everyone = respondent(terms="grace: 6h,", clock="wall"), devices(300)
    question = people.scheme.questions[0]
    with (
        MemoStore(redis_url, now=lambda: noon - timedelta(hours=7)) as behind,
        MemoStore(redis_url, now=lambda: noon) as right,
    ):
        behind.survey(people).lookup(question, everyone, np.zeros(300, dtype=np.int64), 2)
        right.survey(people).presence.status(everyone, 3)
        with pytest.raises(StoreError, match="period 2 of survey 'visits' is closed"):
            behind.survey(people).lookup(question, everyone, np.ones(300, dtype=np.int64), 2)
