"""Crosses are further questions, drawn by shares; sets are drawn by elements, and what both reveal."""

from fractions import Fraction
from itertools import combinations, product
from math import e, inf, log, sqrt
from typing import Any

import numpy as np
import pytest

from lab.seeded_keyrings import seeded_keyring
from protocols.errors import SettingsError, SurveyError
from protocols.mechanisms import bit_flip
from protocols.planning import plan
from protocols.privacy import evidence
from protocols.question import Question
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey import NOTHING
from protocols.survey.sets import with_paddings
from tests.helpers.enumeration import exact
from tests.helpers.surveys import scheme_with, sets_of
from tests.helpers.terms import decode_terms

AGE = {"name": "age", "values": ["young", "middle", "old"], "groups": {"grown": ["middle", "old"]}}
AREA = {"name": "area", "values": ["north", "south", "west", "east"], "groups": {"poles": ["north", "south"]}}
BOTH = {"of": ["age", "area"], "share": 0.5}
TWO = {"eps_inf": 2.0, "eps_1": 1.0}


def town(**terms: Any) -> Scheme:
    return scheme_with(AGE, AREA, **{**TWO, "crosses": [BOTH], **terms})


def test_a_cross_is_one_more_question_with_all_pairs_and_the_groups_of_both() -> None:
    question = town().question("age*area")
    values, groups = question.attribute.values, question.attribute.groups
    assert [one.name for one in town().questions] == ["age", "area", "age*area"]
    assert values[:5] == ("young*north", "young*south", "young*west", "young*east", "middle*north")
    assert groups["grown*poles"] == ("middle*north", "middle*south", "old*north", "old*south")
    assert groups["young*poles"] == ("young*north", "young*south") and "grown*west" in groups
    members = {
        name: {values[place] for place in np.flatnonzero(row)}
        for name, row in zip(groups, question.members, strict=True)
    }
    assert members == {name: set(group) for name, group in groups.items()}
    places = question.places({"age": np.array([0, 1, 2], np.uint8), "area": np.array([0, 2, 3], np.uint8)})
    assert [values[place] for place in places] == ["young*north", "middle*west", "old*east"]


def test_terms_travel_with_crosses_and_shares_and_are_verified() -> None:
    scheme = town()
    assert decode_terms(scheme.terms).fingerprint == scheme.fingerprint
    with pytest.raises(SurveyError, match="not what its budgets"):
        decode_terms(scheme.terms.replace(b'"shares":[0.25,0.25,0.5]', b'"shares":[0.2,0.3,0.5]'))
    assert len({town(crosses=crosses).fingerprint for crosses in ([], [BOTH], [{"of": ["age", "area"]}])}) == 3


def test_devices_draw_their_question_by_its_share_exactly() -> None:
    """The share decides how many devices answer, and nothing else may: the table is exact to 2^-64."""
    scheme = scheme_with(AGE, {**AREA, "share": 0.2}, **TWO, crosses=[BOTH])
    assert scheme.survey.shares == pytest.approx((0.3, 0.2, 0.5))
    for drawn, question in zip(exact(scheme.sampled(range(3))), scheme.questions, strict=True):
        assert abs(drawn - question.drawn) < Fraction(1, 2**60)
    devices = np.arange(100_000, dtype=np.uint64)
    counts = np.bincount(Respondent(scheme, seeded_keyring(5)).sampled(devices), minlength=3)
    expected = 100_000 * np.array([0.3, 0.2, 0.5])
    assert ((counts - expected) ** 2 / expected).sum() < 13.8  # chi-square of 2 degrees, 0.1 %


def test_a_rare_question_is_a_trait_that_links_more() -> None:
    reports = evidence(town().questions, True, memoised=True)
    assert [one.trait_bits for one in reports] == [2, 2, 1]
    assert reports[2].alike(10_000) == 5000
    even = evidence(scheme_with(AGE, AREA, **TWO).questions, True, memoised=True)
    assert [one.traits for one in even] == [2, 2]


def test_auto_asks_pairs_so_that_they_do_not_link_or_they_are_refused() -> None:
    many = {"name": "hour", "range": {"last": 23}}
    free = scheme_with(AGE, many, **TWO, crosses=[{"of": ["age", "hour"], "share": 0.5}])
    assert free.question("age*hour").label == "l-osue", "without a crowd the error alone counts"

    def asked(devices: int, **more: Any) -> Scheme:
        cross = {"of": ["age", "hour"], "share": 0.5, **more}
        return scheme_with(AGE, many, **TWO, crosses=[cross], devices=devices)

    assert asked(8_000).question("age*hour").label == "l-grr"
    assert asked(10**7).question("age*hour").label == "l-osue"
    with pytest.raises(SurveyError, match=r"age\*hour would link reports: with l-osue.* a crowd of 8,000 hides 2\.97"):
        asked(8_000, mechanism="l-osue")
    with pytest.raises(SurveyError, match="would link") as refused:
        asked(1_000)
    assert "a larger share" in refused.value.hint


# Age (8) by area (11) as the seventh question of 10^6 devices: 4 e^eps / (e^eps - 1)^2 * 7 / 10^6, as a root in points.
@pytest.mark.parametrize(("eps", "points"), [(0.5, 1.05), (1.0, 0.51), (2.0, 0.23)])
def test_the_plan_shows_the_error_of_a_pair_beside_the_even_pair(eps: float, points: float) -> None:
    sizes = {"a": 8, "b": 11, "c": 3, "d": 3, "e": 3, "f": 3}
    attributes = [{"name": name, "range": {"last": k - 1}} for name, k in sizes.items()]
    crosses = [{"of": ["a", "b"], "mechanism": "oue"}]
    scheme = scheme_with(*attributes, eps=eps, crosses=crosses)
    shares = plan(scheme, devices=10**6).shares
    assert shares is not None
    pair = shares.questions[-1]
    assert pair.name == "a*b" and pair.even == pytest.approx(1 / 88)
    assert 100 * pair.error == pytest.approx(points, rel=0.03)
    found = {caution.code for caution in plan(scheme, devices=100_000).cautions}
    assert ("pairs-too-fine" in found) == (eps < 2)


def test_the_proposed_shares_reach_all_wanted_errors_with_the_fewest_devices() -> None:
    scheme = town()
    wanted = {"age*area": 0.004, "age": 0.01}
    shares = plan(scheme, devices=1000, error=0.02, wanted=wanted).shares
    assert shares is not None
    assert [one.wanted for one in shares.questions] == [0.01, 0.02, 0.004]
    assert sum(one.proposed for one in shares.questions) == pytest.approx(1)
    named = {one.name: one.proposed for one in shares.questions}
    again = scheme_with({**AGE, "share": named["age"]}, AREA, **TWO, crosses=[{**BOTH, "share": named["age*area"]}])
    reached = plan(again, devices=shares.devices_needed).shares
    assert reached is not None
    assert [one.error for one in reached.questions] == pytest.approx([0.01, 0.02, 0.004], rel=1e-3)
    assert [one.error for one in reached.questions] == pytest.approx(
        [one.proposed_error * sqrt(1000 / shares.devices_needed) for one in shares.questions], rel=1e-3
    )
    with pytest.raises(SurveyError, match="no attribute 'place'"):
        plan(scheme, wanted={"place": 0.1})
    with pytest.raises(SettingsError, match="no shares"):
        plan(scheme_with(AGE, AREA, **TWO, solution="spl"), wanted={"age": 0.1})


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
    scheme = scheme_with(sets_of(items, several, mechanism="l-grr"), **TWO)
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
    scheme = scheme_with(sets_of(200, 10), **TWO)
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
    assert (different(elements(scheme_with(sets_of(60, 10), **TWO), [sets] * 30)) == 1).all()
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
    found = elements(scheme_with(sets_of(60, several), **TWO), tables)
    expected = 2 / (several + 1)
    moved = np.mean(found[0] != found[1])
    assert abs(moved - expected) < 3 * (expected * (1 - expected) / n) ** 0.5
    assert different(found).mean() < 5
