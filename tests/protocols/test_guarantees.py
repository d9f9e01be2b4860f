"""Every guarantee, and every closed-form guess, against the full output distribution, enumerated."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from protocols.arrays import Floats
from protocols.mechanisms import Use, fitting
from protocols.privacy import Loss, loss_of_values
from protocols.privacy.histories import second_round_loss
from protocols.privacy.risk import attribute_guess, value_guess
from protocols.scheme import Scheme
from tests.helpers.enumeration import (
    answers,
    combine,
    histories,
    history_distribution,
    neighbours_loss,
    one_attribute_losses,
    survey_distribution,
    whole_loss,
)
from tests.helpers.surveys import of_size, scheme_with

BUDGETS: dict[str, dict[str, Any]] = {
    "one-shot": {"eps": 1.0},
    "memo only": {"eps_inf": 1.5},
    "two rounds": {"eps_inf": 2.0, "eps_1": 0.8},
}
CALIBRATIONS = ("exact", "published")
USES: tuple[Use, ...] = ("one-shot", "memo only", "two rounds")
FAKED = [*(record.name for record in fitting("rs+fd")), "adp", "auto"]
PAIRS = [("grr", "grr"), ("grr-r", "grr-r"), ("grr-r", "grr"), ("oue-r", "oue-r"), ("grr", "sue-r"), ("oue-r", "grr-r")]
Priors = dict[int, list[float]]
PRIORS: Priors = {2: [0.3, 0.7], 3: [0.6, 0.3, 0.1], 4: [0.1, 0.55, 0.15, 0.2]}

SINGLE = [(use, record.name) for use in USES for record in fitting(use)]


def several(sizes: Sequence[int], names: str | Sequence[str], priors: Priors | None = None) -> list[dict[str, Any]]:
    """Attributes of these sizes; all of one mechanism, or each of its own. Priors are by size."""
    each = [names] * len(sizes) if isinstance(names, str) else names
    return [
        of_size(k, f"a{i}", mechanism=name, prior=priors[k] if priors else None)
        for i, (k, name) in enumerate(zip(sizes, each, strict=True))
    ]


def holds(scheme: Scheme, t: int) -> None:
    """The figures after t linked reports are those of the enumerated distribution."""
    truth = survey_distribution(scheme, t)
    assert truth.sum(axis=-1) == pytest.approx(1)
    figures = scheme.guarantees.constant(t)
    assert figures.whole == pytest.approx(whole_loss(truth), rel=1e-9)
    assert scheme.guarantees.per_attribute(t) == pytest.approx(one_attribute_losses(truth), rel=1e-9)
    assert figures.attribute == max(scheme.guarantees.per_attribute(t))


def as_far_apart_as_said(scheme: Scheme) -> Loss:
    """What is stated of any two histories of two reports is exact, and that of the enumerated distribution."""
    truth, stated = history_distribution(scheme, 2), scheme.guarantees.any(2)
    assert (stated.relation, stated.exact) == ("any", True)
    assert stated.whole == pytest.approx(whole_loss(truth), rel=1e-9)
    assert stated.attribute == pytest.approx(max(one_attribute_losses(truth)), rel=1e-9)
    return stated


def of_memos(scheme: Scheme, *counts: int) -> Floats:
    """What so many different memos of each attribute show."""
    tables = [histories(question, count)[0] for question, count in zip(scheme.questions, counts, strict=True)]
    return combine(scheme, [table for table, _ in tables], [fake for _, fake in tables])


@pytest.mark.parametrize(("kind", "name"), SINGLE)
@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_a_single_attribute_reveals_exactly_what_is_said(kind: str, name: str, calibration: str) -> None:
    for k, t in product((2, 3, 4), (1, 2, 3)):
        options = [{"parameter": d} for d in range(1, k + 1)] if name == "dbitflip" else [{}]
        for option in options:
            scheme = scheme_with(of_size(k, mechanism=name, **option), calibration=calibration, **BUDGETS[kind])
            holds(scheme, t)
            if "geometric" in name:
                found = neighbours_loss(survey_distribution(scheme, t))
                assert scheme.guarantees.between_neighbours(t)["a"] == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize(("kind", "name"), SINGLE)
@pytest.mark.parametrize("solution", ["spl", "smp"])
def test_several_attributes_reveal_exactly_what_is_said(kind: str, name: str, solution: str) -> None:
    attributes = [of_size(2, "a", mechanism=name), of_size(3, "b"), of_size(2, "c")]
    if name == "loloha":  # 256 hashes a piece: two attributes are plenty to enumerate
        attributes = attributes[:2]
    scheme = scheme_with(*attributes, solution=solution, **BUDGETS[kind])
    for t in (1, 2):
        holds(scheme, t)


@pytest.mark.parametrize("guarantee", ["tuple", "attribute", "published"])
@pytest.mark.parametrize("kind", BUDGETS)
@pytest.mark.parametrize("name", FAKED)
def test_fake_data_reveals_exactly_what_is_said(kind: str, name: str, guarantee: str) -> None:
    for calibration, sizes in product(CALIBRATIONS, ((2, 3), (2, 2, 2), (3, 4))):
        terms = {"solution": "rs+fd", "guarantee": guarantee, "calibration": calibration, **BUDGETS[kind]}
        scheme = scheme_with(*several(sizes, name), **terms)
        bits = sum(1 if "grr" in q.label else k for k, q in zip(sizes, scheme.questions, strict=True))
        for t in (1, 2, 3):
            if bits * t <= 16:
                holds(scheme, t)


@pytest.mark.parametrize("guarantee", ["tuple", "attribute", "published"])
@pytest.mark.parametrize("kind", BUDGETS)
@pytest.mark.parametrize("names", PAIRS)
def test_fakes_from_a_prior_reveal_exactly_what_is_said(kind: str, names: tuple[str, str], guarantee: str) -> None:
    for sizes, t in product(((2, 3), (3, 3), (4, 2)), (1, 2, 3)):
        bits = sum(1 if "grr" in name else k for k, name in zip(sizes, names, strict=True))
        if bits * t <= 16:
            attributes = several(sizes, names, PRIORS)
            holds(scheme_with(*attributes, solution="rs+rfd", guarantee=guarantee, **BUDGETS[kind]), t)


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, name in SINGLE if kind != "one-shot"])
def test_values_add_up_as_said(kind: str, name: str) -> None:
    for k, d in ((2, 1), (3, 1), (3, 2), (4, 2), (3, 3)):
        option = {"parameter": d} if name == "dbitflip" else {}
        scheme = scheme_with(of_size(k, mechanism=name, **option), **BUDGETS[kind])
        question = scheme.questions[0]
        for count in range(1, min(3, question.mechanism.encoding.states) + 1):
            found = max(whole_loss(truth) for truth, _ in histories(question, count))
            assert loss_of_values(question.mechanism, count) == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize("cap", [None, 2])
@pytest.mark.parametrize("solution", ["smp", "spl"])
@pytest.mark.parametrize("names", [("l-grr", "l-oue"), ("l-grr", "l-osue"), ("l-sue", "l-grr"), ("loloha", "l-grr")])
def test_any_two_histories_are_as_far_apart_as_said(names: tuple[str, str], solution: str, cap: int | None) -> None:
    """Histories that return, cells that collide, two attributes."""
    as_far_apart_as_said(scheme_with(*several((3, 3), names), solution=solution, memo_cap=cap, eps_inf=1.0, eps_1=0.5))


@pytest.mark.parametrize(
    ("name", "k", "t"),
    [("l-grr", 2, 7), ("l-grr", 3, 5), ("l-grr", 4, 4), ("l-osue", 2, 5), ("l-sue", 2, 5), ("l-oue", 3, 4)],
)
def test_a_week_of_any_two_histories_is_as_far_apart_as_said(name: str, k: int, t: int) -> None:
    """Against all histories and all answers."""
    scheme = scheme_with(of_size(k, mechanism=name), eps_inf=2.0, eps_1=1.0)
    stated = scheme.guarantees.any(t)
    assert stated.exact and stated.whole == pytest.approx(whole_loss(history_distribution(scheme, t)), rel=1e-9)
    assert scheme.guarantees.any(7).whole < 7 * second_round_loss(scheme.questions[0].mechanism)
    assert not scheme.guarantees.any(8).exact


@pytest.mark.parametrize("name", ["l-grr", "l-sue"])
def test_reports_after_a_week_add_what_one_report_adds_at_most(name: str) -> None:
    """Against all histories and all answers, of one report more than are enumerated."""
    scheme = scheme_with(of_size(2, mechanism=name), eps_inf=2.0, eps_1=1.0)
    more = second_round_loss(scheme.questions[0].mechanism)
    stated = scheme.guarantees.any(8).whole
    assert stated == pytest.approx(scheme.guarantees.any(7).whole + more)
    if name == "l-grr":
        assert whole_loss(history_distribution(scheme, 8)) <= stated
    assert scheme.guarantees.any(100).whole == pytest.approx(stated + 92 * more)


@pytest.mark.parametrize(("reports", "times"), [(4, 63.3), (7, 18.5), (8, 5.8), (100, 1.07)])
def test_how_much_more_a_sum_over_reports_would_say_of_wide_bits(reports: int, times: float) -> None:
    """The figures of PROTOCOLS 3: 100 values, eps_inf = 8, eps_1 = 1."""
    scheme = scheme_with(of_size(100, mechanism="l-osue"), eps_inf=8.0, eps_1=1.0)
    added_up = reports * second_round_loss(scheme.questions[0].mechanism)
    assert added_up / scheme.guarantees.any(reports).whole == pytest.approx(times, rel=2e-3)


@pytest.mark.parametrize("name", ["l-grr", "l-osue", "l-sue", "loloha", "l-geometric"])
def test_a_cap_of_two_does_not_widen_what_any_three_reports_show(name: str) -> None:
    capped, free = (scheme_with(of_size(3, mechanism=name), eps_inf=1.0, eps_1=0.5, memo_cap=cap) for cap in (2, None))
    found, stated = whole_loss(history_distribution(capped, 3)), capped.guarantees.any(3)
    assert found <= stated.whole + 1e-9 and not stated.exact
    assert stated.whole == free.guarantees.any(3).whole
    if free.guarantees.any(3).exact:
        assert stated.whole == pytest.approx(whole_loss(history_distribution(free, 3)), rel=1e-9)


@pytest.mark.parametrize("k", [2, 3])
def test_hashes_to_more_symbols_than_there_are_values_have_a_bound(k: int) -> None:
    scheme = scheme_with(of_size(k, mechanism="loloha"), eps_inf=6.0, eps_1=4.0)
    stated = scheme.guarantees.any(2)
    assert scheme.questions[0].mechanism.encoding.memo.count > k and not stated.exact
    assert whole_loss(history_distribution(scheme, 2)) <= stated.whole + 1e-12


@pytest.mark.parametrize("solution", ["rs+fd", "rs+rfd"])
@pytest.mark.parametrize("name", ["grr", "oue-r"])
def test_among_fakes_any_two_histories_are_within_the_bound(name: str, solution: str) -> None:
    attributes = several((2, 3), name, PRIORS if solution == "rs+rfd" else None)
    scheme = scheme_with(*attributes, solution=solution, **BUDGETS["two rounds"])
    one = scheme.guarantees.any(1)
    assert one.exact and one.whole == pytest.approx(whole_loss(history_distribution(scheme, 1)), rel=1e-9)
    truth, bound = history_distribution(scheme, 2), scheme.guarantees.any(2)
    assert not bound.exact
    assert scheme.guarantees.constant(2).whole < whole_loss(truth) <= bound.whole
    assert max(one_attribute_losses(truth)) <= bound.attribute


@pytest.mark.parametrize(
    ("solution", "names"),
    [("smp", ("auto", "auto")), ("spl", ("auto", "l-sue")), ("rs+fd", ("grr", "oue-r"))],
)
def test_with_a_cap_of_one_any_two_histories_are_as_far_apart_as_constant_ones(
    solution: str, names: tuple[str, str]
) -> None:
    attributes = several((2, 3), names)
    scheme = scheme_with(*attributes, solution=solution, memo_cap=1, **BUDGETS["two rounds"])
    as_far_apart_as_said(scheme)
    assert scheme.guarantees.any(10_000).whole == pytest.approx(scheme.guarantees.for_ever.whole)
    free = scheme_with(*attributes, solution=solution, **BUDGETS["two rounds"]).guarantees
    assert scheme.guarantees.without_cap.any(2) == free.any(2)
    assert scheme.guarantees.without_cap.renaming == free.renaming


@pytest.mark.parametrize("solution", ["smp", "spl", "rs+fd"])
def test_one_shot_reports_add_up_between_any_two_histories(solution: str) -> None:
    names = ("grr", "oue-r") if solution == "rs+fd" else ("grr", "oue")
    scheme = scheme_with(*several((2, 3), names), solution=solution, eps=1.0)
    assert as_far_apart_as_said(scheme).whole == pytest.approx(2.0)


@pytest.mark.parametrize("name", ["grr", "oue", "dbitflip", "geometric"])
def test_where_memos_are_sent_any_two_histories_have_no_bound(name: str) -> None:
    for cap in (None, 2):
        guarantees = scheme_with(of_size(4, mechanism=name), eps_inf=1.0, memo_cap=cap).guarantees
        assert guarantees.any(2) == Loss(relation="any", whole=None, attribute=None, exact=True)
    assert scheme_with(of_size(4, mechanism=name), eps_inf=1.0, memo_cap=1).guarantees.any(2).whole is not None


@pytest.mark.parametrize("name", ["grr", "grr-r", "sue-z", "oue-r"])
def test_values_add_up_under_fakes_as_said(name: str) -> None:
    for cap in (1, 2):
        terms = {"solution": "rs+fd", "guarantee": "published", "memo_cap": cap, **BUDGETS["two rounds"]}
        scheme = scheme_with(*several((2, 3), name), **terms)
        truth = of_memos(scheme, cap, cap)
        renaming = scheme.guarantees.renaming
        assert renaming is not None and renaming.exact
        assert renaming.whole == pytest.approx(whole_loss(truth), rel=1e-9)
        assert renaming.attribute == pytest.approx(max(one_attribute_losses(truth)), rel=1e-9)


@pytest.mark.parametrize("name", ["grr", "grr-r", "sue-z", "oue-r"])
def test_fakes_dampen_the_first_value_and_not_those_that_follow(name: str) -> None:
    """One attribute takes a second value after the others have given away, by theirs, which one is true."""
    scheme = scheme_with(*several((3, 2), name), solution="rs+fd", guarantee="published", **BUDGETS["two rounds"])
    first, further = scheme.guarantees.for_ever.attribute, scheme.guarantees.per_additional_value
    assert further is not None

    def spent(*counts: int) -> float:
        return one_attribute_losses(of_memos(scheme, *counts))[0]

    assert spent(1, 1) <= first + 1e-9
    assert first < spent(2, 2) - spent(1, 2) <= further.attribute + 1e-9
    assert spent(2, 1) - spent(1, 1) <= further.attribute + 1e-9


@pytest.mark.parametrize("name", ["grr", "grr-r", "sue-r"])
@pytest.mark.parametrize("solution", ["rs+fd", "rs+rfd"])
def test_what_is_not_exact_at_the_cap_is_an_upper_bound(name: str, solution: str) -> None:
    """Attributes that can take unequally many values, and fakes from a prior."""
    attributes = several((2, 3), name, PRIORS if solution == "rs+rfd" else None)
    scheme = scheme_with(*attributes, solution=solution, **BUDGETS["two rounds"])
    promise = scheme.guarantees
    assert promise.values == (2, 3)
    truth = of_memos(scheme, *promise.values)
    bound = promise.renaming
    assert bound is not None and not bound.exact
    assert whole_loss(truth) <= bound.whole <= 1.3 * whole_loss(truth)
    assert max(one_attribute_losses(truth)) <= bound.attribute <= 1.3 * max(one_attribute_losses(truth))


@pytest.mark.parametrize("kind", BUDGETS)
@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("sizes", [(2, 3), (5, 40), (3, 100, 7, 12)])
def test_an_attribute_guarantee_spends_what_was_declared(kind: str, calibration: str, sizes: tuple[int, ...]) -> None:
    for solution, name in (("rs+fd", "auto"), ("rs+fd", "oue-z"), ("rs+fd", "sue-r"), ("rs+rfd", "auto")):
        priors = {k: [2 * (i + 1) / (k * (k + 1)) for i in range(k)] for k in sizes if solution == "rs+rfd"}
        terms = {"solution": solution, "guarantee": "attribute", "calibration": calibration, **BUDGETS[kind]}
        promise = scheme_with(*several(sizes, name, priors), **terms).guarantees
        declared = BUDGETS[kind]
        if "eps" not in declared:
            assert promise.for_ever.attribute == pytest.approx(declared["eps_inf"], rel=1e-9)
        report = declared.get("eps") or declared.get("eps_1") or declared["eps_inf"]
        assert promise.per_report.attribute == pytest.approx(report, rel=1e-9)
        assert promise.per_report.whole > report


def test_choices_settle_on_the_smallest_variance_and_a_one_shot_survey_has_no_bound_for_ever() -> None:
    """Under an attribute guarantee what one attribute uses changes what all may spend; no single switch helps."""
    sizes = (4, 9, 14)
    terms: dict[str, Any] = {"solution": "rs+fd", "guarantee": "attribute", "eps": 1.0}
    chosen = scheme_with(*(of_size(k, f"a{i}") for i, k in enumerate(sizes)), **terms)
    labels = [question.label for question in chosen.questions]
    for place in range(3):
        other = list(labels)
        other[place] = "grr" if labels[place] == "oue-r" else "oue-r"
        rival = scheme_with(*(of_size(k, f"a{i}", mechanism=other[i]) for i, k in enumerate(sizes)), **terms)
        assert sum(q.variance for q in chosen.questions) < sum(q.variance for q in rival.questions)
    promise = scheme_with(of_size(3), eps=1.0).guarantees
    assert promise.for_ever == Loss(relation="constant", whole=None, attribute=None, exact=True)
    assert promise.constant(7).whole == pytest.approx(7)
    assert promise.per_additional_value is None and promise.renaming is None


@pytest.mark.parametrize("name", [record.name for record in fitting("rs+fd")])
@pytest.mark.parametrize("terms", [{"eps": 1.0}, {"eps_inf": 2.0, "eps_1": 1.0}], ids=["one-shot", "two rounds"])
def test_no_guess_among_fakes_is_better_than_said(name: str, terms: dict[str, Any]) -> None:
    scheme = scheme_with(*several((2, 3, 2), name), solution="rs+fd", **terms)
    everything = survey_distribution(scheme, 1)
    for place, question in enumerate(scheme.questions):
        others = tuple(i for i in range(3) if i != place)
        of_value = everything.mean(axis=others)  # the other attributes' values are spread evenly
        assert value_guess(question) == pytest.approx(of_value.max(axis=0).sum() / question.k)

    tables = [answers(question, 1, scheme.survey.longitudinal) for question in scheme.questions]
    for same in (False, True):
        by_sampled = []
        for sampled in range(3):
            parts = [
                (rows[0] if same else rows.mean(axis=0)) if i == sampled else fake
                for i, (rows, fake) in enumerate(tables)
            ]
            by_sampled.append(np.einsum("a,b,c->abc", *parts).ravel())
        assert attribute_guess(scheme.questions, same) == pytest.approx(np.max(by_sampled, axis=0).sum() / 3)


@pytest.mark.parametrize(
    ("names", "gives_away"),
    [
        (("grr", "grr"), True),
        (("grr", "oue-r"), True),
        (("grr", "grr-r"), True),
        (("grr-r", "grr-r"), False),
        (("sue-r", "grr-r"), False),
        (("sue-r",) * 2, False),
    ],
)
@pytest.mark.parametrize("terms", [{"eps": 1.0}, {"eps_inf": 2.0, "eps_1": 1.0}], ids=["one-shot", "two rounds"])
def test_a_prior_that_is_right_hides_the_sampled_attribute_only_where_fakes_carry_noise(
    names: tuple[str, str], gives_away: bool, terms: dict[str, Any]
) -> None:
    """Values are spread exactly like the fakes, which is the best a prior can be."""
    priors = {3: [0.9, 0.06, 0.04], 2: [0.2, 0.8]}
    scheme = scheme_with(*several((3, 2), names, priors), solution="rs+rfd", **terms)
    (first, fake_first), (second, fake_second) = (answers(q, 1, scheme.survey.longitudinal) for q in scheme.questions)
    assert fake_first is not None and fake_second is not None
    by_sampled = np.outer(priors[3] @ first, fake_second), np.outer(fake_first, priors[2] @ second)
    best = np.max(by_sampled, axis=0).sum() / 2
    assert attribute_guess(scheme.questions, same=False) == pytest.approx(best)
    assert (best > 0.51) == gives_away
