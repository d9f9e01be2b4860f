"""What `auto` chooses, and what a plan says: what the compiled survey does, and exactly what applies."""

import json
from itertools import pairwise
from math import exp, log
from pathlib import Path
from typing import Any

import pytest

from hearsay.survey_files import example
from protocols.errors import SurveyError
from protocols.mechanisms import SupportChannel, fitting
from protocols.mechanisms.catalogue import build
from protocols.mechanisms.mechanism import Budget
from protocols.mechanisms.record import MAX_VALUES
from protocols.mechanisms.rounds import grr
from protocols.planning import plan, told_apart
from protocols.privacy.central import central
from protocols.privacy.linked import loss
from protocols.privacy.presence import SeriesName, series_scales
from protocols.privacy.risk import attribute_guess
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from tests.helpers.surveys import of_size, scheme_with

TWO_ROUNDS: dict[str, Any] = {"eps_inf": 2.0, "eps_1": 1.0}


def codes(scheme: Scheme) -> set[str]:
    return {caution.code for caution in plan(scheme, alternatives=False).cautions}


def test_auto_is_explained_by_the_variances_of_those_that_can_meet_the_budgets() -> None:
    drawn = plan(scheme_with(of_size(5), of_size(100, "b"), **TWO_ROUNDS))
    few, many = drawn.attributes
    assert (few.mechanism, many.mechanism) == ("l-grr", "l-osue")
    for attribute in (few, many):
        assert attribute.alternatives[attribute.mechanism] == min(attribute.alternatives.values())
        assert list(attribute.alternatives.values()) == sorted(attribute.alternatives.values())
        assert "smallest variance" in attribute.why
    unordered = {record.name for record in fitting("two rounds") if not record.needs_order}
    assert unordered == set(few.alternatives) >= {"l-grr", "l-sue", "l-osue", "l-oue", "l-soue", "loloha"}
    asked = plan(scheme_with(of_size(5, mechanism="l-sue"), **TWO_ROUNDS)).attributes[0]
    assert asked.why == "the survey asks for it"
    drawn = plan(scheme_with(of_size(5), eps_inf=2.0, eps_1=1.9))
    assert {"l-oue", "l-soue"}.isdisjoint(drawn.attributes[0].alternatives)


def test_precision_follows_the_number_of_devices_and_averaging_stops_at_the_memos() -> None:
    survey = scheme_with(of_size(4, mechanism="grr"), of_size(4, "b", mechanism="grr"), eps=1.0)
    p, q = grr(4, 1.0).p, grr(4, 1.0).q
    precision = plan(survey, devices=20_000, error=0.02).attributes[0].precision
    assert precision.reports == 10_000  # smp: each attribute is asked of half of the devices
    assert precision.if_nobody == pytest.approx((q * (1 - q) / 10_000) ** 0.5 / (p - q))
    half = (p + q) / 2
    assert precision.if_half == pytest.approx((half * (1 - half) / 10_000) ** 0.5 / (p - q))
    again = plan(survey, devices=precision.devices_needed, error=0.02).attributes[0].precision
    assert max(again.if_nobody, again.if_half) == pytest.approx(0.02, rel=1e-3)
    assert precision.at_best is None
    precision = plan(scheme_with(of_size(4), **TWO_ROUNDS)).attributes[0].precision
    memo = SupportChannel(4, grr(4, 2.0), exclusive=True)
    assert precision.at_best == pytest.approx((memo.floor[0] * (1 - memo.floor[0]) / 10_000) ** 0.5 / memo.gain)
    assert precision.at_best < precision.if_nobody


def test_the_largest_domain_has_a_plan() -> None:
    """Nothing in it may take a number for each two of the values: those would fill 32 GiB."""
    drawn = plan(scheme_with(of_size(MAX_VALUES), **TWO_ROUNDS)).attributes[0]
    assert drawn.mechanism == "l-osue" and "l-geometric" not in drawn.alternatives
    assert drawn.precision.if_half > drawn.precision.if_nobody > 0


def test_guarantees_are_those_of_the_survey_and_an_order_has_both_figures() -> None:
    scheme = scheme_with(of_size(4), of_size(9, "b"), solution="rs+fd", guarantee="attribute", memo_cap=3, **TWO_ROUNDS)
    promise = plan(scheme).guarantee
    assert promise.per_report.attribute == pytest.approx(1)
    assert promise.for_ever.attribute == pytest.approx(2)
    assert promise.constant[7].whole == pytest.approx(scheme.guarantees.constant(7).whole)
    assert promise.cells == {"a": 3, "b": 3}
    one_shot = plan(scheme_with(of_size(4), eps=1.0)).guarantee
    assert one_shot.for_ever.whole is None and one_shot.renaming is None
    promise = plan(scheme_with(of_size(11, mechanism="geometric"), eps=0.5)).guarantee
    assert promise.neighbours_per_report == pytest.approx({"a": 0.5})
    assert promise.per_report.whole == pytest.approx(5.0)


def test_figures_that_rest_on_the_cap_are_shown_beside_those_that_do_not() -> None:
    free, one, three = (
        plan(scheme_with(of_size(4), of_size(9, "b"), memo_cap=cap, **TWO_ROUNDS)).guarantee for cap in (None, 1, 3)
    )
    assert free.any_without_cap is None and free.renaming_without_cap is None
    assert one.any[100].whole == pytest.approx(2.0) and one.any_without_cap == free.any
    assert three.any_without_cap is None and three.any[100] == free.any[100]
    assert one.renaming_without_cap == three.renaming_without_cap == free.renaming


CAUTIONS = json.loads((Path(__file__).parent / "cautions.json").read_text())
"""The codes of the cautions of a plan, the attributes of its survey, and its other terms."""


def test_cautions_apply_where_they_should() -> None:
    for expected, attributes, terms in CAUTIONS:
        assert codes(scheme_with(*attributes, **terms)) == set(expected), (attributes, terms)


def test_the_plan_shows_what_noise_on_presence_costs() -> None:
    """Of 1,000 reports with 100 bits, nothing is left to learn; of as many with one symbol, most is."""
    wide = scheme_with(of_size(100, mechanism="oue"), eps=1.0, presence_epsilon=1.0)
    presence = plan(wide, devices=1000).presence
    assert presence is not None
    assert presence.reports_epsilon + presence.supports_epsilon == pytest.approx(1.0)
    assert presence.attributes["a"].largest == 71
    assert round(presence.attributes["a"].if_half, 2) == 0.87
    assert "useless-with-presence-noise" in {caution.code for caution in plan(wide, devices=1000).cautions}
    needed = plan(wide, devices=1000, error=0.05).presence
    assert needed is not None
    met = plan(wide, devices=needed.attributes["a"].devices_needed).presence
    assert met is not None
    assert max(met.attributes["a"].if_half, met.attributes["a"].if_nobody) == pytest.approx(0.05, rel=1e-3)
    text = next(c.text for c in plan(wide, devices=1000).cautions if c.code == "useless-with-presence-noise")
    assert "standard error of 0.87" in text and "who stayed away is not hidden" in text
    narrow = plan(scheme_with(of_size(4, mechanism="grr"), eps=1.0, presence_epsilon=1.0), devices=1000)
    assert narrow.presence is not None and narrow.presence.attributes["a"].if_half < 0.06
    assert "useless-with-presence-noise" not in {caution.code for caution in narrow.cautions}


def test_the_plan_shows_each_published_number_with_its_noise() -> None:
    """The figures are those of docs/privacy.md: daily periods with weeks and months, epsilon 1."""
    scheme = scheme_with(of_size(4, mechanism="grr"), eps=1.0, presence_epsilon=1.0, visitors="calendar")
    presence = plan(scheme, devices=5000).presence
    assert presence is not None
    shown = {series.name: (series.cost, series.half_width) for series in presence.series}
    assert shown == {
        "reports of period": (1, 27),
        "visitors of week": (1, 27),
        "visitors of month": (1, 27),
        "new of month": (2, 35),
        "supports of period": (1, 6),
    }
    assert presence.series[0].relative == 27 / 5000
    found = {time: (round(loss.numbers, 2), round(loss.answers, 1)) for time, loss in presence.losses.items()}
    assert found == {"a period": (0.5, 1.0), "a week": (1.37, 4.9), "a month": (4.42, 19.9)}
    assert round(presence.losses["a period"].answers_chance, 2) == 0.73


def test_the_division_of_a_budget_makes_the_sum_of_the_variances_smallest() -> None:
    costs = {SeriesName("reports", "period"): 1, SeriesName("new", "week"): 2, SeriesName("rolling", "r"): 7}
    scales = series_scales(costs, 1.0)
    assert sum(costs[name] / scales[name] for name in costs) == pytest.approx(1, abs=1e-5)
    best = sum(scale**2 for scale in scales.values())
    for name, other in pairwise([*costs, *costs]):
        moved = {**scales, name: 1 / (1 / scales[name] + 0.01 / costs[name])}
        moved[other] = 1 / (1 / scales[other] - 0.01 / costs[other])
        assert sum(costs[one] / moved[one] for one in costs) == pytest.approx(1, abs=1e-5)
        assert sum(scale**2 for scale in moved.values()) > best


def text_of(scheme: Scheme, code: str) -> str:
    return next(caution.text for caution in plan(scheme, alternatives=False).cautions if caution.code == code)


def test_an_observer_who_links_is_described_by_ten_reports_and_a_long_memo_is_called_identifying() -> None:
    two_rounds = scheme_with(of_size(3, mechanism="l-grr"), eps_inf=1.0, eps_1=0.5)
    assert two_rounds.guarantees.any(10).whole == pytest.approx(9.03, abs=0.01)
    assert "separate two histories by at most 9.03, not by 1" in text_of(two_rounds, "visible-changes")
    sent = scheme_with(of_size(3, mechanism="grr"), eps_inf=1.0)
    assert "separate two histories without bound" in text_of(sent, "visible-changes")
    for k, identifying in ((100, True), (4, False)):
        text = text_of(scheme_with(of_size(k, mechanism="oue"), eps_inf=2.0), "memo-is-sent")
        assert ("identify a device" in text) == identifying


def test_caps_are_described_with_what_they_cost_when_they_are_void_and_what_they_do_not_bound() -> None:
    scheme = scheme_with(of_size(3, mechanism="l-grr"), eps_inf=1.0, eps_1=0.5, memo_cap=1)
    assert "visible-changes" not in codes(scheme)
    text = text_of(scheme, "stale-answers")
    assert "any two histories by up to 1." in text
    assert "a loss of the memo store was accepted (`hearsay memo accept-loss`): then it is by at most 9.03" in text
    text = text_of(scheme_with(of_size(9), **TWO_ROUNDS), "no-memo-cap")
    assert "up to 18, between histories that are equal up to a renaming" in text
    assert "Only memo_cap: 1 also bounds what any two histories reveal" in text


def test_a_plan_says_by_how_much_drawn_values_move_shares() -> None:
    """A tenth of the devices drawn evenly from four values: (1 - u) f + u / k is f + u (1/k - f)."""
    colour = {"name": "colour", "values": ["red", "green", "blue", "grey"]}
    text = text_of(scheme_with(colour, of_size(3), **TWO_ROUNDS), "unlisted-values")
    assert text.startswith("colour: ") and "adds u (1/k - f)" in text and "nobody has appears to have 2.5 %" in text
    assert "unlisted-values" not in codes(scheme_with({**colour, "other": "grey"}, of_size(3), **TWO_ROUNDS))


def test_a_plan_shows_what_links_and_what_other_budgets_would_do() -> None:
    """The figures of docs/PROTOCOLS.md, section 9."""
    drawn = plan(scheme_with(of_size(100, mechanism="l-osue"), **TWO_ROUNDS), devices=2_000)
    link = drawn.crowd.attributes["a"]
    assert drawn.crowd.report is None or drawn.crowd.report == link
    assert (link.answer_bits, link.trait_bits) == (pytest.approx(2.77, abs=0.01), 0)
    assert (link.first_guess, link.luck) == (pytest.approx(0.083, abs=0.003), 1 / 2_000)
    assert drawn.crowd.hidden_bits == 1 and link.links
    curve = drawn.crowd.wider["a"]
    assert [point.eps_inf for point in curve] == [1.5, 2, 3, 4]
    assert [point.bits for point in curve] == pytest.approx([11.1, 2.77, 0.30, 0.05], abs=0.05)
    assert [point.first_guess for point in curve] == pytest.approx([0.67, 0.083, 0.004, 0.001], abs=0.012)
    text = {c.code: c.text for c in drawn.cautions}["link-by-answer"]
    assert "2.77 bits" in text and "8.3 %" in text and "Widen the ratio" in text


def test_a_mechanism_that_auto_avoids_is_named_with_the_reason() -> None:
    linking = plan(scheme_with(of_size(100), **TWO_ROUNDS, devices=2_000)).attributes[0]
    assert linking.mechanism == "l-grr" and "l-osue has a smaller variance, but links reports" in linking.why
    priors = [of_size(3, name, prior=[0.7, 0.2, 0.1]) for name in "ab"]
    showing = plan(scheme_with(*priors, eps=1.0, solution="rs+rfd")).attributes[0]
    assert showing.mechanism == "grr-r" and "grr has a smaller variance, but shows which attribute" in showing.why


def test_six_lines_say_how_often_a_guess_is_right() -> None:
    def right(scheme: Scheme, devices: int = 3250) -> list[str]:
        return [line.cases for line in plan(scheme, devices, alternatives=False).in_short]

    def terms(more: str, *attributes: str) -> Scheme:
        asked = ", ".join(attributes or ["{name: gender, values: [a, b, c]}"])
        return Scheme(parse_survey(f"{{id: s, start: 2026-01-01T00:00:00Z, period: 1d, {more} attributes: [{asked}]}}"))

    place = "{name: place, geo: {level: 1, radius: 400m}, grid: {at: [47, 6], cell: 100m, columns: 60, rows: 45}}"
    assert right(terms("eps_inf: 4, eps_1: 2, "))[:4] == ["88.1", "98.3", "100", "98.3"], "results as all reports"
    readers = terms("eps_inf: 4, eps_1: 2, central: {delta: 0.001}, ")
    week = central(readers.guarantees, {"gender": [3250] * 7}, delta=0.001).epsilon
    assert week is not None
    exact = (exp(week) + 0.001) / (1 + exp(week))  # what P(A) <= e^x Q(A) + delta allows
    assert float(right(readers)[3]) == pytest.approx(100 * exact, abs=0.1)
    assert float(right(readers)[3]) >= 100 * exact > 100 * told_apart(week)
    assert right(terms("eps: 1, "))[:3] == ["73.2", "100", "100"]
    assert right(terms("eps: 1, one_in: 7, "))[2] == "73.2", "in a row of seven periods"
    assert right(terms("", place))[0] == "73.2", "of two places 400 m apart"
    assert right(terms("eps: 1, ", place, "{name: a, values: [x, y]}"))[0] == "100", "places may be far apart"
    assert [right(terms(f"eps: 1, {more}"))[5] for more in ("", "presence_epsilon: 0.5, ")] == ["100", "62.3"]


@pytest.mark.parametrize("name", ["mobility-week", "telemetry"])
def test_examples_do_not_link_reports_among_their_devices(name: str) -> None:
    survey = example(name).model_copy(update={"central": None})  # what readers learn takes seconds to compute
    assert survey.devices is not None
    assert "link-by-answer" not in codes(Scheme(survey))


def labels(*attributes: dict[str, Any], **terms: Any) -> list[str]:
    return [question.label for question in scheme_with(*attributes, **terms).questions]


@pytest.mark.parametrize("eps", [0.3, 1.0, 2.5])
def test_auto_is_direct_up_to_three_e_to_the_eps_values_and_two_more(eps: float) -> None:
    """With one round and, calibrated exactly, with two: one report is then GRR(eps) or OUE(eps)."""
    limit = 3 * exp(eps) + 2
    for k in (int(limit), int(limit) + 1):
        direct = k < limit
        found = labels(of_size(k), eps=eps) + labels(of_size(k), eps_inf=2 * eps, eps_1=eps)
        assert found == (["grr", "l-grr"] if direct else ["oue", "l-osue"])


def test_auto_never_fakes_with_zero_vectors_and_adp_may() -> None:
    attributes = [of_size(200), of_size(300, "b")]
    terms: dict[str, Any] = {"solution": "rs+fd", "eps": 1.0}
    assert labels(*attributes, **terms) == ["oue-r", "oue-r"]
    assert labels(*({**attribute, "mechanism": "adp"} for attribute in attributes), **terms) == ["oue-z", "oue-z"]


@pytest.mark.parametrize(
    ("name", "limit"),
    [("l-oue", log((2 * exp(2) + 1) / 3)), ("l-soue", log(exp(1) * (2 * exp(1) + 1) / (exp(1) + 2)))],
)
def test_what_cannot_be_reached_is_refused_with_the_range(name: str, limit: float) -> None:
    attribute = of_size(9, mechanism=name)
    with pytest.raises(SurveyError, match=f"choose eps_1 below {limit:.6g}"):
        scheme_with(attribute, eps_inf=2.0, eps_1=limit + 1e-6)
    promise = scheme_with(attribute, eps_inf=2.0, eps_1=limit - 1e-6).guarantees
    assert promise.per_report.whole == pytest.approx(limit - 1e-6)


def falling(k: int) -> list[float]:
    """Shares that fall like 1 / rank."""
    total = sum(1 / rank for rank in range(1, k + 1))
    return [1 / rank / total for rank in range(1, k + 1)]


def test_auto_with_a_prior_takes_fakes_that_do_not_show_the_true_attribute() -> None:
    """Bare fakes of grr would be a little more exact; auto takes the most exact mechanism of those that hide."""
    attributes = [of_size(k, f"a{k}", prior=falling(k)) for k in (4, 8, 30)]
    terms: dict[str, Any] = {"solution": "rs+rfd", "eps": 1.0}
    chosen = scheme_with(*attributes, **terms)
    assert [q.label for q in chosen.questions] == ["grr-r", "grr-r", "oue-r"]
    assert attribute_guess(chosen.questions, same=False) == pytest.approx(1 / 3)
    for place, question in enumerate(chosen.questions):
        variances = {name: q.variance for name, q in chosen.choosing.alternatives(chosen.questions, place).items()}
        hiding = {name: variances[name] for name in ("grr-r", "oue-r")}
        assert question.label == min(hiding, key=lambda name: hiding[name])
        bare = [{**a, "mechanism": "grr"} if i == place else a for i, a in enumerate(attributes)]
        assert 3 * attribute_guess(scheme_with(*bare, **terms).questions, same=False) > 1.05
    assert labels(*({**a, "mechanism": "adp"} for a in attributes), **terms) == ["grr", "grr", "oue-r"]


def test_auto_keeps_bare_fakes_where_they_show_hardly_anything_and_leaks_least_where_another_leaks_anyway() -> None:
    attributes = [of_size(4, name, prior=[0.26, 0.25, 0.25, 0.24]) for name in "ab"]
    chosen = scheme_with(*attributes, solution="rs+rfd", eps=2.0)
    assert [q.label for q in chosen.questions] == ["grr", "grr"]
    assert 0.5 < attribute_guess(chosen.questions, same=False) < 0.525
    attributes = [of_size(4, prior=falling(4), mechanism="grr"), of_size(4, "b", prior=falling(4))]
    chosen = scheme_with(*attributes, solution="rs+rfd", eps=1.0)
    assert chosen.questions[1].label == "grr-r"
    assert 2 * attribute_guess(chosen.questions, same=False) > 1.05


def test_auto_avoids_what_links_in_the_surveys_crowd() -> None:
    """100 bits at 2 and 1 have 2.8 bits in common: 2,000 devices hide 1, a million 9.9."""
    wide, budgets = of_size(100), {"eps_inf": 2.0, "eps_1": 1.0}
    assert labels(wide, **budgets) == ["l-osue"]
    assert labels(wide, **budgets, devices=2_000) == ["l-grr"]
    assert labels(wide, **budgets, devices=1_000_000) == ["l-osue"]
    assert labels(wide, eps_inf=4.0, eps_1=1.0, devices=2_000) == ["l-osue"]
    assert labels({**wide, "mechanism": "allomfree"}, **budgets, devices=2_000) == ["l-osue"]
    assert labels({**wide, "mechanism": "l-osue"}, **budgets, devices=2_000) == ["l-osue"]
    ten = [of_size(100, f"a{i}") for i in range(10)]  # the sampled one alone has 3.3 bits: everything links
    assert set(labels(*ten, **budgets, devices=2_000)) == {"l-osue"}


def test_auto_counts_all_answers_of_a_report_together() -> None:
    """Of two attributes that a report both answers, one may be bits (the first): two would link."""
    attributes = [of_size(k, f"a{k}") for k in (60, 70)]
    budgets = {"eps_inf": 4.0, "eps_1": 2.0, "solution": "spl"}
    assert labels(*attributes, **budgets) == ["l-osue", "l-osue"]
    assert labels(*attributes, **budgets, devices=8_000) == ["l-osue", "l-grr"]
    assert labels(*attributes, **budgets, devices=20_000) == ["l-osue", "l-osue"]


@pytest.mark.parametrize("eps", [1e-5, 20.0])
def test_the_smallest_and_the_largest_budgets_are_met(eps: float) -> None:
    for record in fitting("memo only"):
        found = loss(build(record.name, 40, Budget(eps)))
        assert found == pytest.approx(39 * eps if "geometric" in record.name else eps, rel=1e-6)
    for record in fitting("two rounds"):
        if not record.needs_order:
            assert loss(build(record.name, 40, Budget(eps, eps / 3))) == pytest.approx(eps / 3, rel=1e-6)


def test_a_long_range_does_not_underflow() -> None:
    """e^-4000 is no float; its logarithm is."""
    promise = scheme_with(of_size(400, mechanism="l-geometric"), eps_inf=10.0, eps_1=2.0).guarantees
    assert promise.between_neighbours(1)["a"] == pytest.approx(2.0)
    assert promise.for_ever.whole == pytest.approx(3990.0)
