"""Trackability against enumeration: one device or two with the same value."""

from itertools import product
from math import inf, log, log2, prod

import numpy as np
import pytest

from protocols.arrays import Floats
from protocols.planning import plan
from protocols.privacy.crowd import evidence, trackability
from protocols.scheme import Scheme
from tests.helpers.enumeration import answers, survey_distribution
from tests.helpers.surveys import of_size, scheme_with

MECHANISMS = {
    "l-grr": (of_size(4, mechanism="l-grr"), {"eps_inf": 1.5, "eps_1": 0.7}),
    "l-osue": (of_size(3, mechanism="l-osue"), {"eps_inf": 1.5, "eps_1": 0.7}),
    "l-sue": (of_size(2, mechanism="l-sue"), {"eps_inf": 3.0, "eps_1": 2.0}),
    "l-oue": (of_size(3, mechanism="l-oue"), {"eps_inf": 2.0, "eps_1": 1.0}),
    "loloha": (of_size(4, mechanism="loloha", parameter=2), {"eps_inf": 2.0, "eps_1": 1.0}),
    "memo only": (of_size(3, mechanism="grr"), {"eps_inf": 1.0}),
    "bits, memo only": (of_size(3, mechanism="oue"), {"eps_inf": 1.0}),
    "buckets": (of_size(4, mechanism="dbitflip", parameter=2), {"eps_inf": 1.0}),
    "fresh": (of_size(3, mechanism="grr"), {"eps": 1.0}),
}


def enumerated(scheme: Scheme, t: int) -> float:
    """Every sequence of 2t reports, cut in halves."""
    (question,) = scheme.questions
    one, half = (answers(question, count, scheme.survey.longitudinal)[0] for count in (2 * t, t))
    traits = int(evidence(scheme.questions, False, True)[0].traits)  # the outcomes of each trait stand together
    together = one.reshape(question.k, traits, -1)
    alone = half.reshape(question.k, traits, -1)
    apart: Floats = np.einsum("vhi,vhj->vhij", alone, alone).reshape(together.shape)
    seen = together > 0
    return float(np.log(together[seen] / apart[seen]).max())


@pytest.mark.parametrize(("name", "t"), list(product(MECHANISMS, (1, 2))))
def test_the_closed_form_is_that_of_all_sequences_of_reports(name: str, t: int) -> None:
    attribute, terms = MECHANISMS[name]
    scheme = scheme_with(attribute, **terms)
    (reports,) = evidence(scheme.questions, scheme.discloses, scheme.survey.longitudinal)
    assert trackability(reports, t) == pytest.approx(enumerated(scheme, t), abs=1e-9)


@pytest.mark.parametrize("t", [1, 2])
@pytest.mark.parametrize("guarantee", ["tuple", "published"])
@pytest.mark.parametrize(
    ("sizes", "names"), [((2, 3), ("grr", "grr")), ((2, 2), ("oue-r", "sue-z")), ((3, 2), ("grr-r", "oue-z"))]
)
def test_an_attribute_drawn_for_life_tracks_through_fresh_noise(
    sizes: tuple[int, ...], names: tuple[str, ...], guarantee: str, t: int
) -> None:
    """Against every sequence of 2t reports of every tuple, cut in halves."""
    attributes = [of_size(k, f"a{i}", mechanism=name) for i, (k, name) in enumerate(zip(sizes, names, strict=True))]
    scheme = scheme_with(*attributes, eps=1.0, solution="rs+fd", guarantee=guarantee)
    (reports,) = evidence(scheme.questions, scheme.discloses, memoised=False)
    halves = [(k if "grr" in name else 2**k) ** t for k, name in zip(sizes, names, strict=True)]
    alone = survey_distribution(scheme, t).reshape(-1, prod(halves))
    both = survey_distribution(scheme, 2 * t).reshape(-1, *(half for half in halves for _ in range(2)))
    both = both.transpose(0, *range(1, 2 * len(sizes), 2), *range(2, 2 * len(sizes) + 1, 2))
    together = both.reshape(len(alone), prod(halves), prod(halves))
    found = float(np.log(together / (alone[:, :, None] * alone[:, None])).max())
    assert trackability(reports, t) == pytest.approx(found, abs=1e-9)
    assert trackability(reports, inf) == pytest.approx(log(len(sizes)))


def test_an_attribute_for_life_is_stated_in_plans() -> None:
    three = [of_size(4, name, mechanism="grr") for name in "abc"]
    drawn = plan(scheme_with(*three, eps=2.0, solution="rs+fd", guarantee="published"))
    assert drawn.crowd.report is not None
    assert drawn.crowd.report.trackability == pytest.approx(0.914, abs=5e-4)
    assert drawn.crowd.report.trackability_for_ever == pytest.approx(log(3))


def test_it_grows_with_every_report_up_to_the_memo() -> None:
    scheme = scheme_with(of_size(10, mechanism="l-grr"), eps_inf=2.0, eps_1=1.0)
    (reports,) = evidence(scheme.questions, False, True)
    figures = [trackability(reports, t) for t in (1, 2, 5, 50, 5_000, inf)]
    assert figures == sorted(figures, key=lambda figure: figure or 0.0)
    assert figures[-1] == figures[-2] == pytest.approx(log(np.exp(2) + 9))  # 1 / q1


def test_traits_add_and_attributes_of_one_report_add() -> None:
    two = [of_size(3, "a", mechanism="grr"), of_size(3, "b", mechanism="grr")]
    turns = scheme_with(*two, eps=1.0, one_in=7)
    drawn = plan(turns, devices=1_000)
    assert drawn.crowd.attributes["a"].trackability == pytest.approx(log(2 * 7))
    split = plan(scheme_with(*two, eps_inf=2.0, solution="spl"), devices=1_000)
    assert split.crowd.report is not None and split.crowd.attributes["a"].trackability is not None
    assert split.crowd.report.trackability == pytest.approx(2 * split.crowd.attributes["a"].trackability)


def test_what_is_not_known_is_not_stated() -> None:
    hidden = plan(scheme_with(of_size(3, "a"), of_size(3, "b"), eps_inf=2.0, eps_1=1.0, solution="rs+fd"))
    ordered = plan(scheme_with(of_size(5, mechanism="l-geometric"), eps_inf=2.0, eps_1=1.0))
    assert hidden.crowd.report is not None and hidden.crowd.report.trackability is None
    assert ordered.crowd.attributes["a"].trackability_for_ever is None


def test_a_gap_tells_at_most_the_logarithm_of_the_horizon() -> None:
    assert plan(scheme_with(of_size(3), eps=1.0, horizon=14)).crowd.gap_bits == pytest.approx(log2(14))
    assert plan(scheme_with(of_size(3), eps=1.0)).crowd.gap_bits == 0
