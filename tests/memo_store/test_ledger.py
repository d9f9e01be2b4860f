"""What devices have spent, in one survey and in all, and what the store says of itself without any key."""

import numpy as np
import pytest

from memo_store.registry import COSTED
from memo_store.store import MemoStore
from memo_store.survey_memos import SurveyMemos
from tests.memo_store.surveys import devices, respondent

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
                memos.commit_values(question, asked, values, period)
        memos.presence.delivered(EVERYONE, period)


@pytest.mark.parametrize(
    ("terms", "spent"),
    [
        ("solution: smp,", {3 * 2.0, 2 * 2.0}),  # a = 2 for each of three areas, or of both plans
        ("solution: spl,", {3 * 1.0, 2 * 1.0}),  # a / 2 for each
        ("solution: rs+fd,", {3 * 2.0}),  # e' for each value; whole tuples, so e' is a
        ("solution: rs+fd, guarantee: published,", {3 * np.log(2 * (np.exp(2) - 1) + 1)}),
    ],
)
def test_each_value_costs_what_its_solution_says(store: MemoStore, terms: str, spent: set[float]) -> None:
    live(store.survey(respondent(terms=terms, second=True)), 3)
    found = store.stats().questions
    assert sorted(amount for question in found for amount, _ in question.spent) == pytest.approx(sorted(spent))
    assert all("relation renaming" in question.meaning for question in found)


def test_one_shot_reports_add_up_and_saying_delivered_twice_does_not(store: MemoStore) -> None:
    memos = store.survey(respondent(budgets="eps: 0.5"))
    live(memos, 4)
    memos.presence.delivered(EVERYONE[:10], 3)
    (survey,) = store.stats().surveys
    assert (survey.devices, survey.reports, survey.spent) == (1000, 4000, ((pytest.approx(2.0), 1000),))
    assert "relation any: the sum over all reports" in survey.meaning


def test_with_one_in_at_most_one_report_in_so_many_periods_has_cost(store: MemoStore) -> None:
    memos = store.survey(respondent(budgets="eps: 0.5, one_in: 3"))
    live(memos, 7)
    memos.presence.delivered(EVERYONE[:10], 20)
    answers = sum(memos.respondent.answering(EVERYONE, period) for period in range(7))
    assert max(answers) == 3, "in periods 0 to 6; 21 periods hold seven"
    (survey,) = store.stats().surveys
    assert survey.spent == ((pytest.approx(3 * 0.5), 990), (pytest.approx(7 * 0.5), 10))
    assert "at most one in 3 consecutive periods" in survey.meaning


def test_a_fleet_that_takes_turns_is_charged_no_more_than_its_reports_and_its_periods_allow(store: MemoStore) -> None:
    memos = store.survey(respondent(budgets="eps: 0.5, one_in: 3"))
    presence = memos.fleet_presence(1200)  # of which 200 never report
    for period in range(7):
        presence.status(EVERYONE, period)
        presence.delivered(EVERYONE if period < 2 else EVERYONE[:400], period)
    (survey,) = store.stats().surveys  # without a key it is not known when a device reported last
    assert (survey.devices, survey.reports) == (1000, 4000)
    assert survey.spent == ((pytest.approx(1.0), 600), (pytest.approx(1.5), 400))


def test_values_beyond_those_whose_cost_is_listed_cost_no_less(store: MemoStore) -> None:
    memos = store.survey(respondent(k=COSTED + 8, terms=""))
    live(memos, COSTED + 5)
    assert store.stats().questions[0].spent == ((pytest.approx(2.0 * (COSTED + 5)), 1000),)


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
