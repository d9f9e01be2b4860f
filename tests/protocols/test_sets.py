"""Sets: what reports of a drawn element reveal about them, and what a changed set shows."""

from itertools import combinations, product
from math import e, inf, log

import numpy as np
import pytest

from protocols.mechanisms import bit_flip
from protocols.question import Question
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey import NOTHING
from protocols.survey.sets import with_paddings
from tests.helpers.surveys import scheme_with, sets_of

MEMOS = {"eps_inf": 2.0, "eps_1": 1.0}


def drawn(items: int, several: int) -> np.ndarray:
    """By set of up to L + 1 values: the chance that each element is drawn."""
    laws = []
    for size in range(several + 2):
        for held in combinations(range(items), size):
            table = np.array([[*held, *[NOTHING] * (several + 1 - size)]])
            elements = with_paddings(table, items, several)[0]
            law = np.bincount(elements, minlength=items + several + 1)[:-1].astype(np.float64)
            laws.append(law / law.sum())
    return np.array(laws)


def widest(laws: np.ndarray, question: Question, t: int) -> float:
    """The largest log-ratio of all sequences of t linked reports, by going through them."""
    k, first, second = laws.shape[1], bit_flip(question.mechanism.first), question.mechanism.second
    noise = np.eye(k) if second is None else bit_flip(second).q + bit_flip(second).gain * np.eye(k)
    memos = laws @ (first.q + first.gain * np.eye(k))
    reports = np.array([np.prod(noise[:, list(said)], axis=1) for said in product(range(k), repeat=t)])
    chances = memos @ reports.T
    return float(np.log(chances.max(axis=0) / chances.min(axis=0)).max())


@pytest.mark.parametrize(("items", "several"), [(3, 2), (4, 2), (4, 3), (5, 3)])
def test_no_two_sets_lose_more_than_the_budgets_and_two_lose_all_of_it(items: int, several: int) -> None:
    scheme = scheme_with(sets_of(items, several, mechanism="l-grr"), **MEMOS)
    once = scheme_with(sets_of(items, several, mechanism="grr"), eps=1)
    laws = drawn(items, several)
    for t in (1, 2, 3):
        assert widest(laws, scheme.questions[0], t) == pytest.approx(scheme.guarantees.constant(t).whole, abs=1e-9)
    assert scheme.guarantees.per_report.whole == pytest.approx(1)
    assert scheme.guarantees.for_ever.whole == pytest.approx(2)
    assert widest(laws, once.questions[0], 1) == pytest.approx(1, abs=1e-9)


def test_one_padding_for_all_slots_would_lose_what_an_element_does() -> None:
    question = scheme_with(sets_of(4, 2, mechanism="grr"), eps=1).questions[0]
    laws = drawn(4, 2)
    gathered = np.concatenate([laws[:, :4], laws[:, 4:].sum(axis=1, keepdims=True), np.zeros((len(laws), 1))], axis=1)
    assert widest(laws, question, 1) == pytest.approx(1)
    assert widest(gathered, question, 1) == pytest.approx(log(2 * (e - 1) + 1))  # 1.49


def test_the_losses_of_many_values_are_those_that_were_computed_before() -> None:
    scheme = scheme_with(sets_of(200, 10), **MEMOS)
    promise = scheme.guarantees
    assert [round(promise.constant(t).whole or 0, 3) for t in (1, 2, 3, inf)] == [1, 1.977, 2, 2]
    assert promise.any(2).whole == pytest.approx(7.18, abs=0.01) and not promise.any(2).exact
    assert promise.per_additional_value is not None
    assert promise.per_additional_value.whole == pytest.approx(log(10 * (e**2 - 1) + 1))
    assert scheme.questions[0].variance == pytest.approx((200 + 10 * e - 1) / (e - 1) ** 2)
    many = scheme_with(sets_of(1000, 5), eps=1).questions[0]
    assert many.label == "oue" and many.variance == pytest.approx(4 * 25 * e / (e - 1) ** 2)


def elements(scheme: Scheme, tables: list[np.ndarray]) -> np.ndarray:
    """The element that each device draws in each period."""
    respondent, question = Respondent(scheme, Keyring(bytes(32))), scheme.questions[0]
    devices = np.arange(len(tables[0]), dtype=np.uint64)
    return np.array([respondent.values(question, devices, {"a": sets}, period) for period, sets in enumerate(tables)])


def different(columns: np.ndarray) -> np.ndarray:
    ordered = np.sort(columns, axis=0)
    return 1 + np.count_nonzero(np.diff(ordered, axis=0), axis=0)


def test_a_set_that_stays_has_one_memo_and_fresh_draws_have_several() -> None:
    sets = np.random.default_rng(1).permuted(np.tile(np.arange(60), (500, 1)), axis=1)[:, :6]
    assert (different(elements(scheme_with(sets_of(60, 10), **MEMOS), [sets] * 30)) == 1).all()
    assert different(elements(scheme_with(sets_of(60, 10), eps=1), [sets] * 30)).mean() > 5


def test_a_change_of_one_value_seldom_moves_the_drawn_element() -> None:
    random, n, several = np.random.default_rng(2), 20_000, 10
    order = random.permuted(np.tile(np.arange(20), (n, 1)), axis=1)  # a set, and the values that are not in it
    tables = [order[:, :several].copy()]
    for _ in range(30):
        into, out = random.integers(0, several, n)[:, None], random.integers(several, 20, n)[:, None]
        both = np.take_along_axis(order, into, axis=1), np.take_along_axis(order, out, axis=1)
        np.put_along_axis(order, into, both[1], axis=1)
        np.put_along_axis(order, out, both[0], axis=1)
        tables.append(order[:, :several].copy())
    found = elements(scheme_with(sets_of(60, several), **MEMOS), tables)
    expected = 2 / (several + 1)
    moved = np.mean(found[0] != found[1])
    assert abs(moved - expected) < 3 * (expected * (1 - expected) / n) ** 0.5
    assert different(found).mean() < 5
