"""How well reports are linked by their answers: formulas against matrices, guesses against devices' own code."""

from __future__ import annotations

from math import log2
from typing import Any

import numpy as np
import pytest

from lab.seeded_keyrings import seeded_keyring
from protocols.mechanisms.channels import variance_at_zero
from protocols.mechanisms.rounds import Flip
from protocols.privacy.crowd import evidence
from protocols.privacy.linking import first_guess, pair_information
from protocols.question import Question
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from tests.helpers.surveys import of_size, scheme_with

PEOPLE = 2000


def question(mechanism: str, k: int, **budgets: float) -> Question:
    return asked(mechanism, k, **budgets).questions[0]


def asked(mechanism: str, k: int, **budgets: float) -> Scheme:
    return scheme_with({**of_size(k), "mechanism": mechanism}, **budgets)


@pytest.mark.parametrize(
    ("mechanism", "bits"),
    [("l-osue", (0.38, 1.18, 2.77, 9.67)), ("l-sue", (0.45, 1.65, 4.0, 14.3)), ("l-grr", (0.10, 0.12, 0.17, 0.27))],
)
def test_information_of_a_pair_at_two_and_one(mechanism: str, bits: tuple[float, ...]) -> None:
    found = [pair_information(question(mechanism, k, eps_inf=2.0, eps_1=1.0)) for k in (10, 40, 100, 360)]
    assert found == pytest.approx(bits, abs=0.035)


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


@pytest.mark.parametrize(("eps_inf", "bits"), [(1.5, 11.1), (2.0, 2.77), (3.0, 0.30), (4.0, 0.05)])
def test_a_wider_ratio_of_the_budgets_links_less(eps_inf: float, bits: float) -> None:
    assert pair_information(question("l-osue", 100, eps_inf=eps_inf, eps_1=1.0)) == pytest.approx(bits, abs=0.05)


@pytest.mark.parametrize(
    ("mechanism", "k", "expected"), [("l-osue", 100, 0.084), ("l-osue", 360, 0.57), ("l-grr", 100, 0.004)]
)
def test_devices_are_found_again_as_often_as_computed(mechanism: str, k: int, expected: float) -> None:
    """The best guess among 2,000 devices in two periods, from answers alone."""
    scheme = asked(mechanism, k, eps_inf=2.0, eps_1=1.0)
    one = scheme.questions[0]
    computed = first_guess([one], PEOPLE)
    assert computed == pytest.approx(expected, abs=0.03)
    assert found_again(scheme, one) == pytest.approx(computed, abs=0.035)


def test_a_thousand_bits_are_as_good_as_a_name() -> None:
    assert first_guess([question("l-osue", 1000, eps_inf=2.0, eps_1=1.0)], 3000) == pytest.approx(0.99, abs=0.005)


@pytest.mark.parametrize(("eps_inf", "guess"), [(1.5, 0.67), (2.0, 0.08), (3.0, 0.004), (4.0, 0.001)])
def test_a_wider_ratio_of_the_budgets_hides_a_device_in_the_crowd(eps_inf: float, guess: float) -> None:
    """Down to luck, which is 0.0005; the accuracy of one report stays the same."""
    wide = question("l-osue", 100, eps_inf=eps_inf, eps_1=1.0)
    assert first_guess([wide], PEOPLE) == pytest.approx(guess, rel=0.25)
    assert variance_at_zero(wide.channel) == pytest.approx(variance_at_zero(question("oue", 100, eps=1.0).channel))


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


def test_more_traits_than_devices_leave_one_candidate() -> None:
    held = scheme_with(of_size(40, mechanism="dbitflip", parameter=20), eps_inf=1.0)
    assert evidence(held.questions, held.discloses, memoised=True)[0].first_guess(10_000) == 1


def found_again(scheme: Scheme, one: Question) -> float:
    respondent, devices = Respondent(scheme, seeded_keyring(5)), np.arange(PEOPLE, dtype=np.uint64)
    values = np.arange(PEOPLE) % one.k
    memo = respondent.memoise(one, devices, respondent.cells(one, devices, values))
    first, second = (respondent.report(one, devices, period, memo) for period in (0, 1))
    scores = pair_scores(one, first, second)
    own = scores.diagonal()[:, None]
    better, equal = (scores > own + 1e-9).sum(axis=1), (abs(scores - own) <= 1e-9).sum(axis=1)
    return float(np.where(better == 0, 1 / equal, 0.0).mean())


def pair_scores(one: Question, first: Any, second: Any) -> Any:
    """ln P(y, y' | one device) / P(y) P(y') of every pair of reports."""
    start, noise = one.mechanism.first, one.mechanism.second
    assert isinstance(start, Flip) and isinstance(noise, Flip)
    memo = start.gain / one.k + start.q
    if one.mechanism.encoding.exclusive:
        marginal = noise.q + noise.gain * memo
        off, on = noise.q**2 + 2 * noise.q * noise.gain * memo, noise.gain**2 * memo
        return np.log(np.where(first[:, None] == second[None, :], off + on, off) / marginal**2)
    a, b = (one.mechanism.encoding.answer.unpack(column).astype(float) for column in (first, second))
    ones = memo * noise.p + (1 - memo) * noise.q

    def cell(x: float, y: float) -> float:
        return memo * x + (1 - memo) * y

    both = np.log(cell(noise.p**2, noise.q**2) / ones**2)
    none = np.log(cell((1 - noise.p) ** 2, (1 - noise.q) ** 2) / (1 - ones) ** 2)
    mixed = np.log(cell(noise.p * (1 - noise.p), noise.q * (1 - noise.q)) / (ones * (1 - ones)))
    return a @ b.T * both + (1 - a) @ (1 - b).T * none + (a @ (1 - b).T + (1 - a) @ b.T) * mixed
