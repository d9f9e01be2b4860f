"""How well reports are linked by their answers, and trackability: formulas against matrices and enumeration."""

from itertools import product
from math import inf, log, log2, prod
from typing import Any

import numpy as np
import pytest

from protocols.arrays import Floats
from protocols.mechanisms.rounds import Flip
from protocols.planning import plan
from protocols.privacy.crowd import evidence, trackability
from protocols.privacy.linking import first_guess, pair_information
from protocols.question import Question
from protocols.scheme import Scheme
from tests.helpers.enumeration import answers, survey_distribution
from tests.helpers.surveys import of_size, scheme_with

PEOPLE = 2000


def question(mechanism: str, k: int, **budgets: float) -> Question:
    return asked(mechanism, k, **budgets).questions[0]


def asked(mechanism: str, k: int, **budgets: float) -> Scheme:
    return scheme_with({**of_size(k), "mechanism": mechanism}, **budgets)


def test_information_of_symbols_is_that_of_their_joint_matrix() -> None:
    prior = {"0": 0.6, "1": 0.3, "2": 0.1}
    scheme = scheme_with(
        {**of_size(3), "prior": prior, "mechanism": "grr"},
        {**of_size(3, "b"), "prior": prior, "mechanism": "grr"},
        solution="rs+rfd",
        eps_inf=2.0,
        eps_1=1.0,
    )
    one = scheme.questions[0]
    first, second = one.mechanism.first, one.mechanism.second
    assert isinstance(first, Flip) and isinstance(second, Flip)
    shares = np.array(list(prior.values()))
    memos = 0.5 * (shares * first.gain + first.q) + 0.5 * shares
    noise = second.q + second.gain * np.eye(3)
    joint, marginal = noise.T @ np.diag(memos) @ noise, memos @ noise
    expected = float((joint * np.log2(joint / np.outer(marginal, marginal))).sum())
    assert pair_information(one) == pytest.approx(expected, abs=1e-12)


def test_a_memo_that_is_sent_links_by_its_entropy_and_questions_of_a_report_by_their_sum() -> None:
    sent = question("grr", 8, eps_inf=2.0)
    assert pair_information(sent) == pytest.approx(log2(8), abs=1e-9), "even values have even memos"
    # Two attributes of 50 values are as good as one of 100, if every bit is alike.
    half, both = (question("l-osue", k, eps_inf=2.0, eps_1=1.0) for k in (50, 100))
    assert first_guess([half, half], PEOPLE) == pytest.approx(first_guess([both], PEOPLE), rel=0.1)


def test_without_a_memo_only_the_value_links() -> None:
    fresh = question("grr", 8, eps=2.0)
    noise = fresh.mechanism.first
    assert isinstance(noise, Flip)
    matrix = noise.q + noise.gain * np.eye(8)
    joint = matrix.T @ matrix / 8
    expected = float((joint * np.log2(64 * joint)).sum())
    assert pair_information(fresh, memoised=False) == pytest.approx(expected, abs=1e-12)
    ordered = question("geometric", 8, eps=0.5)
    matrix = ordered.channel.matrix
    joint, shares = matrix.T @ matrix / 8, matrix.mean(axis=0)
    expected = float((joint * np.log2(joint / np.outer(shares, shares))).sum())
    assert pair_information(ordered, memoised=False) == pytest.approx(expected, abs=1e-12)


def test_what_is_kept_for_life_divides_the_crowd() -> None:
    budgets: dict[str, Any] = {"eps_inf": 2.0, "eps_1": 1.0}
    three = scheme_with(*(of_size(4, name) for name in "abc"), **budgets)
    alone = evidence(three.questions, three.discloses, memoised=True)
    assert [one.traits for one in alone] == [3, 3, 3]
    assert alone[0].first_guess(9000) == pytest.approx(first_guess(alone[0].questions, 3000))
    hashed = asked("loloha", 20, **budgets)
    assert evidence(hashed.questions, hashed.discloses, memoised=True)[0].traits == 3**5
    held = scheme_with(of_size(10, mechanism="dbitflip", parameter=3), eps_inf=1.0)
    assert evidence(held.questions, held.discloses, memoised=True)[0].traits == 120
    split = scheme_with(*(of_size(4, name) for name in "abc"), solution="spl", **budgets)
    (whole,) = evidence(split.questions, split.discloses, memoised=True)
    assert whole.traits == 1
    assert whole.answer_bits == pytest.approx(sum(pair_information(q) for q in whole.questions))
    held = scheme_with(of_size(40, mechanism="dbitflip", parameter=20), eps_inf=1.0)
    assert evidence(held.questions, held.discloses, memoised=True)[0].first_guess(10_000) == 1


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


def test_it_grows_with_every_report_up_to_the_memo_and_a_gap_tells_the_logarithm_of_the_horizon() -> None:
    scheme = scheme_with(of_size(10, mechanism="l-grr"), eps_inf=2.0, eps_1=1.0)
    (reports,) = evidence(scheme.questions, False, True)
    figures = [trackability(reports, t) for t in (1, 2, 5, 50, 5_000, inf)]
    assert figures == sorted(figures, key=lambda figure: figure or 0.0)
    assert figures[-1] == figures[-2] == pytest.approx(log(np.exp(2) + 9))  # 1 / q1
    assert plan(scheme_with(of_size(3), eps=1.0, horizon=14)).crowd.gap_bits == pytest.approx(log2(14))
    assert plan(scheme_with(of_size(3), eps=1.0)).crowd.gap_bits == 0


def test_traits_and_attributes_of_one_report_add_and_what_is_not_known_is_not_stated() -> None:
    two = [of_size(3, "a", mechanism="grr"), of_size(3, "b", mechanism="grr")]
    turns = scheme_with(*two, eps=1.0, one_in=7)
    drawn = plan(turns, devices=1_000)
    assert drawn.crowd.attributes["a"].trackability == pytest.approx(log(2 * 7))
    split = plan(scheme_with(*two, eps_inf=2.0, solution="spl"), devices=1_000)
    assert split.crowd.report is not None and split.crowd.attributes["a"].trackability is not None
    assert split.crowd.report.trackability == pytest.approx(2 * split.crowd.attributes["a"].trackability)
    hidden = plan(scheme_with(of_size(3, "a"), of_size(3, "b"), eps_inf=2.0, eps_1=1.0, solution="rs+fd"))
    ordered = plan(scheme_with(of_size(5, mechanism="l-geometric"), eps_inf=2.0, eps_1=1.0))
    assert hidden.crowd.report is not None and hidden.crowd.report.trackability is None
    assert ordered.crowd.attributes["a"].trackability_for_ever is None
