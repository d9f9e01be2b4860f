"""What `auto` chooses, what cannot be chosen, and budgets at their limits."""

from math import exp, log
from typing import Any

import pytest

from protocols.errors import SurveyError
from protocols.mechanisms.catalogue import build, fitting
from protocols.mechanisms.channels import variance_at_zero
from protocols.mechanisms.mechanism import Budget
from protocols.privacy.linked import loss
from protocols.privacy.risk import attribute_guess
from tests.helpers.surveys import of_size, scheme_with


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
        variances = {name: variance_at_zero(q.channel) for name, q in chosen.alternatives(question).items()}
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
