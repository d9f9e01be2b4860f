"""How well reports are linked by their answers: formulas against matrices, guesses against devices' own code."""

from math import log2
from typing import Any

import numpy as np
import pytest

from protocols.mechanisms.rounds import Flip
from protocols.privacy.crowd import evidence
from protocols.privacy.linking import first_guess, pair_information
from protocols.question import Question
from protocols.scheme import Scheme
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


def test_a_memo_that_is_sent_links_by_all_its_entropy() -> None:
    sent = question("grr", 8, eps_inf=2.0)
    assert pair_information(sent) == pytest.approx(log2(8), abs=1e-9), "even values have even memos"


def test_questions_of_one_report_link_by_the_sum_of_their_scores() -> None:
    """Two attributes of 50 values are as good as one of 100, if every bit is alike."""
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
