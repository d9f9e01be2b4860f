"""How well reports are linked by their answers, and trackability: formulas against matrices and enumeration."""

from functools import reduce
from itertools import product
from math import ceil, inf, log, log2, prod, sqrt
from typing import Any

import numpy as np
import pytest

from lab.seeded_keyrings import seeded_keyring
from protocols.arrays import Floats
from protocols.mechanisms.rounds import Flip
from protocols.planning import plan
from protocols.privacy.crowd import evidence, trackability
from protocols.privacy.linking import first_guess, pair_information
from protocols.question import Question
from protocols.respondent import Respondent
from protocols.scheme import PRESENCE_ONLY, Scheme
from tests.helpers.enumeration import answers, combine, one_attribute_losses, per_trait, survey_distribution, whole_loss
from tests.helpers.surveys import of_size, scheme_with

PEOPLE = 2000


def question(mechanism: str, k: int, **budgets: float) -> Question:
    return scheme_with(of_size(k, mechanism=mechanism), **budgets).questions[0]


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
    hashed = scheme_with(of_size(20, mechanism="loloha"), **budgets)
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
    stated = plan(scheme, alternatives=False).crowd.report
    assert stated is not None and stated.trackability == pytest.approx(trackability(reports, 1))
    assert stated.trackability_for_ever == trackability(reports, inf) == pytest.approx(log(len(sizes)))


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


# Devices that take turns: a place for life, an answer in one of w periods, and what that costs (PROTOCOLS 3).
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
