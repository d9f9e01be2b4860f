"""Devices that take turns: a place for life, an answer in one of w periods, and what that costs (PROTOCOLS 3)."""

from functools import reduce
from itertools import product
from math import ceil, sqrt
from typing import Any

import numpy as np
import pytest

from lab.seeded_keyrings import seeded_keyring
from protocols.arrays import Floats
from protocols.planning import plan
from protocols.respondent import Respondent
from protocols.scheme import PRESENCE_ONLY, Scheme
from tests.helpers.enumeration import combine, one_attribute_losses, per_trait, whole_loss
from tests.helpers.surveys import of_size, scheme_with

DEVICES = np.arange(20_000, dtype=np.uint64)
SIGMAS = 5.0
TWO = (of_size(2, "a", mechanism="grr"), of_size(3, "b", mechanism="grr"))
HIDDEN = (of_size(2, "a", mechanism="grr"), of_size(2, "b", mechanism="oue-z"))


def taking_turns(one_in: int, **terms: Any) -> Respondent:
    scheme = scheme_with(*TWO, **{"eps": 1.0, "one_in": one_in, **terms})
    return Respondent(scheme, seeded_keyring(1))


@pytest.mark.parametrize("one_in", [2, 7, 365])
def test_every_place_is_drawn_equally_often(one_in: int) -> None:
    found = np.bincount(taking_turns(one_in).places(DEVICES), minlength=one_in)
    assert len(found) == one_in
    expected = len(DEVICES) / one_in
    chi_square = float(((found - expected) ** 2 / expected).sum())
    assert abs(chi_square - (one_in - 1)) < SIGMAS * sqrt(2 * (one_in - 1))


def test_a_device_answers_at_its_place_for_life_alone_and_among_others() -> None:
    among = taking_turns(5)
    places = among.places(DEVICES)
    for period in (0, 1, 7, 4_000_000_000):
        assert (among.answering(DEVICES, period) == (places == period % 5)).all()
    alone = [int(taking_turns(5).places(np.array([device], dtype=np.uint64))[0]) for device in range(20)]
    assert alone == places[:20].tolist()


def test_the_place_is_independent_of_the_sampled_attribute_and_of_the_token() -> None:
    people = taking_turns(4)
    places, sampled = people.places(DEVICES), people.sampled(DEVICES)
    token = (people.tokens(DEVICES, 3) % np.uint64(4)).astype(np.int64)
    for other in (sampled, token):
        share = np.array([np.mean(places[other == kind] == 0) for kind in np.unique(other)])
        assert np.abs(share - 0.25).max() < SIGMAS * sqrt(0.25 * 0.75 / (len(DEVICES) / 4))


@pytest.mark.parametrize("solution", ["smp", "spl", "rs+fd"])
def test_every_row_is_of_one_kind_and_presence_only_rows_are_asked_nothing(solution: str) -> None:
    people = taking_turns(3, solution=solution)
    asked = list(people.asked(DEVICES, period=10))
    rows = np.concatenate([rows for _, rows in asked])
    assert np.array_equal(np.sort(rows), np.arange(len(DEVICES)))
    assert len(asked) == len(people.scheme.kinds)
    assert asked[-1][0] == () and people.scheme.kinds[-1] == PRESENCE_ONLY
    assert np.array_equal(asked[-1][1], np.flatnonzero(people.places(DEVICES) != 10 % 3))


def distribution(scheme: Scheme, periods: range, constant: bool) -> Floats:
    """P(all reports of some periods | a history of each attribute), as [history_1, ..., history_d, outcome].

    By brute force: for every place the answers in its periods, of all histories. Where no period is answered, the
    observer sees the same from all such places.
    """
    one_in = scheme.survey.one_in
    by_pattern: dict[tuple[int, ...], Floats] = {}
    for place in range(one_in):
        answered = tuple(at for at, period in enumerate(periods) if period % one_in == place)
        truths: list[Floats] = []
        fakes: list[Floats | None] = []
        for question in scheme.questions:
            ((_, first, _, fake),) = per_trait(question)
            every = product(range(question.k), repeat=len(periods))
            histories = [(value,) * len(periods) for value in range(question.k)] if constant else list(every)
            truths.append(np.array([_independent([first[h[at]] for at in answered]) for h in histories]))
            fakes.append(None if fake is None else _independent([fake] * len(answered)))
        seen = combine(scheme, truths, fakes) / one_in
        by_pattern[answered] = by_pattern.get(answered, 0) + seen
    return np.concatenate(list(by_pattern.values()), axis=-1)


def _independent(rows: list[Floats]) -> Floats:
    return reduce(np.multiply.outer, rows).ravel() if rows else np.ones(1)


CASES = {
    "one attribute": ((of_size(3, mechanism="grr"),), {}),
    "bits": ((of_size(2, mechanism="oue"),), {}),
    "ordered": ((of_size(3, mechanism="geometric"),), {}),
    "smp": (TWO, {"solution": "smp"}),
    "spl": (TWO, {"solution": "spl"}),
    "rs+fd": (HIDDEN, {"solution": "rs+fd"}),
    "rs+fd, published": (HIDDEN, {"solution": "rs+fd", "guarantee": "published"}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("one_in", [2, 3])
def test_the_stated_losses_are_those_of_all_histories(case: str, one_in: int) -> None:
    attributes, terms = CASES[case]
    scheme = scheme_with(*attributes, eps=0.7, one_in=one_in, **terms)
    promise, answered = scheme.guarantees, scheme_with(*attributes, eps=0.7, **terms).guarantees
    longest = 2 * one_in if len(attributes) == 1 or one_in == 2 else one_in
    for t in range(1, longest + 1):
        for first in range(one_in) if t == one_in else (1,):
            seen = distribution(scheme, range(first, first + t), constant=False)
            assert whole_loss(seen) == pytest.approx(promise.any(t).whole)
            assert max(one_attribute_losses(seen)) == pytest.approx(promise.any(t).attribute)
            unchanging = distribution(scheme, range(first, first + t), constant=True)
            assert whole_loss(unchanging) == pytest.approx(promise.constant(t).whole)
        assert promise.any(t).exact
        assert promise.any(t).whole == answered.any(ceil(t / one_in)).whole
    assert promise.per_window == promise.any(one_in)
    assert answered.per_window is None


def test_a_plan_shows_the_window_the_error_and_the_other_ways() -> None:
    once, turns = (plan(scheme_with(*TWO, eps=1.0, one_in=w), devices=14_000) for w in (1, 7))
    assert turns.attributes[0].precision.reports == 1_000
    grown = turns.attributes[0].precision.if_nobody / once.attributes[0].precision.if_nobody
    assert grown == pytest.approx(sqrt(7))
    assert turns.guarantee.per_window is not None and turns.guarantee.per_window.whole == pytest.approx(1.0)
    assert turns.guarantee.declared == "eps = 1, one_in = 7"
    assert "takes-turns" in {caution.code for caution in turns.cautions}
    assert "costs-add-up" in {caution.code for caution in once.cautions}
    ways = {way.terms: way for way in turns.ways}
    assert list(ways) == ["eps_inf = 2, eps_1 = 1", "eps = 1", "eps = 1, one_in = 7", "eps = 1, one_in = 30"]
    assert [way.terms for way in turns.ways if way.declared] == ["eps = 1, one_in = 7"]
    assert ways["eps = 1, one_in = 7"].any[100].whole == pytest.approx(15.0)
    assert ways["eps = 1, one_in = 7"].errors["a"] == pytest.approx(turns.attributes[0].precision.if_nobody)
    memos = scheme_with(of_size(2, "a"), of_size(3, "b"), eps_inf=2.0, eps_1=1.0)
    assert ways["eps_inf = 2, eps_1 = 1"].any[10] == memos.guarantees.any(10)


@pytest.mark.parametrize(
    "terms",
    [
        {"eps_inf": 2.0, "eps_1": 1.0, "memo_cap": 1},
        {"eps_inf": 2.0},
        {"eps_inf": 2.0, "eps_1": 1.0, "solution": "rs+fd"},
        {"eps": 15.0},
    ],
)
def test_the_survey_is_always_one_of_the_ways(terms: dict[str, Any]) -> None:
    attributes = (of_size(3, "a"), of_size(9, "b"))
    scheme = scheme_with(*attributes, **terms)
    drawn = plan(scheme, devices=5_000)
    (own,) = [way for way in drawn.ways if way.declared]
    assert own.any[10] == scheme.guarantees.any(10)
    assert own.errors == {a.name: pytest.approx(a.precision.if_nobody) for a in drawn.attributes}
    assert [way.terms.endswith("one_in = 30") for way in drawn.ways][-1]


def test_a_mechanism_with_memos_becomes_the_one_of_that_name_without_them() -> None:
    attributes = (of_size(5, "a", mechanism="l-geometric"), of_size(9, "b", mechanism="loloha", parameter=3))
    drawn = plan(scheme_with(*attributes, eps_inf=2.0, eps_1=1.0), devices=5_000)
    fresh = plan(scheme_with(of_size(5, "a", mechanism="geometric"), of_size(9, "b"), eps=1.0), devices=5_000)
    ways = {way.terms: way.errors for way in drawn.ways}
    assert ways["eps = 1"] == {a.name: pytest.approx(a.precision.if_nobody) for a in fresh.attributes}
