"""Crosses: pairs of attributes as further questions; and the shares by which devices draw their question."""

from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import pytest

from lab.seeded_keyrings import seeded_keyring
from protocols.errors import SettingsError, SurveyError
from protocols.planning import plan
from protocols.privacy import evidence
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from tests.helpers.surveys import scheme_with
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
    for drawn, question in zip(scheme.sampled(range(3)).exact(), scheme.questions, strict=True):
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
