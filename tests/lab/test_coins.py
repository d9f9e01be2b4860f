"""Losses proven with coins: never above the truth for honest devices, and above the claim for every broken one."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log
from typing import Any

import numpy as np
import pytest

from lab.attacks.coins import coin_audit, expected_bound, lower_bound, smallest_violation
from lab.attacks.histories import Coins, law_of_reports, ratios, returning_coins, steady_coins
from lab.seeded_keyrings import seeded_keyring
from protocols.mechanisms import Flip
from protocols.question import Question
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from tests.helpers.surveys import of_size, scheme_with
from tests.lab.observing import MECHANISMS, Answer, honest, tossed, with_coins

ALPHA = 0.01
TWO_ROUNDS: dict[str, Any] = {"eps_inf": 2.0, "eps_1": 1.0}


def proven(
    scheme: Scheme, n: int, t: int, answer: Answer = honest, coins: Coins | None = None, seed: int = 0,
    alpha: float = ALPHA,
) -> float:  # fmt: skip
    """What the coins of n devices prove, with t linked reports."""
    coins = coins or steady_coins(scheme, t)
    shown = tossed(n, seed)
    rows, found = ratios(with_coins(scheme, coins, shown, t, answer, seed), coins, range(t))
    law = None if coins.change or answer is not honest else law_of_reports(scheme, t)
    return coin_audit(found, shown[rows], alpha, law)[0]


def asked(mechanism: str, k: int, **terms: Any) -> Scheme:
    return scheme_with(of_size(k, mechanism=mechanism), **terms)


@pytest.mark.parametrize(("t", "expected"), [(1, 0.947), (2, 1.549), (3, 1.768), (5, 1.847), (10, 1.913)])
def test_linked_reports_prove_nearly_all_of_the_loss(t: int, expected: float) -> None:
    """With 20,000 devices; the exact losses are 1, 1.642, 1.899, 1.994 and 2.000."""
    scheme = asked("l-osue", 10, **TWO_ROUNDS)
    law = law_of_reports(scheme, t)
    assert law is not None
    assert expected_bound(law, 20_000, ALPHA) == pytest.approx(expected, abs=5e-4)
    found = [proven(scheme, 20_000, t, seed=seed) for seed in (1, 2, 3)]
    assert np.mean(found) == pytest.approx(expected, abs=3 * 0.05 / 3**0.5)
    assert max(found) <= (scheme.guarantees.constant(t).whole or 0)


@pytest.mark.parametrize(("name", "terms"), MECHANISMS)
def test_no_honest_mechanism_is_refuted_and_most_of_its_loss_is_seen(name: str, terms: dict[str, Any]) -> None:
    scheme = asked(name, 4, **terms)
    for t in (1, 4):
        found, promise = proven(scheme, 4000, t), scheme.guarantees.constant(t).whole
        assert promise is not None and found <= promise
        assert found > 0.4 * min(promise, 3.0), "the attack is too weak"


@pytest.mark.parametrize("solution", ["spl", "smp", "rs+fd"])
def test_tuples_of_every_solution_keep_their_promise(solution: str) -> None:
    scheme = scheme_with(of_size(3), of_size(4, "b"), solution=solution, **TWO_ROUNDS)
    for t in (1, 5):
        found = proven(scheme, 6000, t)
        assert 0.3 < found <= (scheme.guarantees.constant(t).whole or 0)


def test_turns_cover_as_many_periods_as_they_promise() -> None:
    scheme = scheme_with(of_size(4, mechanism="grr"), eps=1.0, one_in=3)
    for t, promise in ((1, 1.0), (3, 1.0), (6, 2.0)):
        assert scheme.guarantees.constant(t).whole == pytest.approx(promise)
        assert 0.5 * promise < proven(scheme, 9000, t) <= promise


@pytest.mark.long(part="statistics")
def test_false_alarms_are_as_rare_as_alpha_says() -> None:
    """A thousand audits of honest devices. A bound above the exact loss is a false alarm."""
    scheme = asked("grr", 3, eps=1.0)
    alarms = sum(proven(scheme, 400, 1, seed=run, alpha=0.05) > 1.0 for run in range(1000))
    assert alarms <= 0.05 * 1000 + 3 * (0.05 * 0.95 * 1000) ** 0.5
    assert alarms > 5, "the bound is not tight"


@pytest.mark.long(part="statistics")
def test_a_threshold_found_on_the_same_devices_sees_losses_where_there_are_none() -> None:
    random, kept, spared = np.random.default_rng(4), 0, 0
    for _ in range(300):
        scores, shown = random.normal(size=500), random.random(500) < 0.5
        guessed = [np.abs(scores) >= threshold for threshold in np.linspace(0.05, 3, 40)]
        right = (scores > 0) == shown
        kept += max(lower_bound(right[some].sum(), some.sum(), ALPHA) for some in guessed) > 0
        spared += coin_audit(scores, shown, ALPHA)[0] > 0
    assert kept > 10, "1 % would be 3"
    assert spared <= 3 + 3 * 1.7


# Negative controls: broken devices, each of which must be refuted.


def without_memo(respondent: Respondent, question: Question, devices: Any, period: int, values: Any) -> Any:
    fresh = question.mechanism.memoise(values, respondent.keyring.draws(("no memo",), devices, period))
    return respondent.report(question, devices, period, fresh)


@pytest.mark.parametrize("name", ["l-osue", "l-grr"])
def test_a_missing_memo_is_proven_with_two_thousand_devices(name: str) -> None:
    found = proven(asked(name, 10, **TWO_ROUNDS), 2000, 10, without_memo)
    assert found > 2.0


def forgetful(respondent: Respondent, question: Question, devices: Any, period: int, values: Any) -> Any:
    """Has lost its memo once, and made another one: a store that was flushed, under a client that does not derive."""
    lost = respondent if period < 10 else Respondent(respondent.scheme, seeded_keyring(99))
    memo = lost.memoise(question, devices, lost.cells(question, devices, values))
    return respondent.report(question, devices, period, memo)


@pytest.mark.parametrize("name", ["l-osue", "l-grr"])
def test_a_memo_that_was_lost_and_made_again_is_proven(name: str) -> None:
    scheme, t = asked(name, 4, **TWO_ROUNDS), 20
    coins, shown = steady_coins(scheme, t), tossed(8000)
    seen = with_coins(scheme, coins, shown, t, forgetful)
    halves = [ratios(seen, coins, periods)[1] for periods in (range(10), range(10, 20))]
    assert coin_audit(halves[0] + halves[1], shown, ALPHA)[0] > 2.0
    assert coin_audit(halves[0], shown, ALPHA)[0] <= 2.0


def test_a_retry_with_new_noise_is_proven() -> None:
    """The second attempt at a period must be the same report; here it is drawn again, and both are seen."""
    scheme = asked("l-osue", 10, **TWO_ROUNDS)
    assert proven(scheme, 20_000, 2) > 1.0, "what one period may reveal"


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize(("sizes", "bound"), [((100,) * 10, 1.0), ((2,) * 6, 1.8)])
def test_rs_fd_as_published_does_not_keep_its_epsilon(sizes: tuple[int, ...], bound: float) -> None:
    attributes = [of_size(k, f"a{i}", mechanism="grr") for i, k in enumerate(sizes)]
    scheme = scheme_with(*attributes, solution="rs+fd", guarantee="published", eps=1.0)
    law = law_of_reports(scheme, 1)
    assert law is not None and law[1].sum() == pytest.approx(1) and expected_bound(law, 20_000, ALPHA) > bound
    found = proven(scheme, 20_000, 1)
    assert found > bound
    assert found <= (scheme.guarantees.per_report.whole or 0), "but it keeps what we compute for it"
    assert proven(scheme_with(*attributes, solution="rs+fd", eps=1.0), 20_000, 1) <= 1.0, "for the tuple it does"


def test_a_second_round_with_too_little_noise_is_proven() -> None:
    scheme = asked("l-grr", 10, **TWO_ROUNDS)
    question = scheme.questions[0]
    second = question.mechanism.second
    assert isinstance(second, Flip)
    p = 1.1 * second.p
    wrong = replace(question.mechanism, second=Flip(p, (1 - p) / 9))

    def careless(respondent: Respondent, question: Question, devices: Any, period: int, values: Any) -> Any:
        memo = respondent.memoise(question, devices, values)
        return wrong.report(memo, respondent.keyring.draws(("careless",), devices, period))

    loss = wrong.one_report
    assert isinstance(loss, Flip) and log(loss.p / loss.q) == pytest.approx(1.09, abs=0.02)
    shown, coins = tossed(40_000), steady_coins(scheme, 1)
    _, found = ratios(with_coins(scheme, coins, shown, 1, careless), coins, range(1))
    assert coin_audit(found, shown, ALPHA, law_of_reports(scheme, 1))[0] > 1.0


@pytest.mark.parametrize("name", ["l-grr", "l-osue"])
def test_a_value_that_comes_back_shows_more_than_two_values_cost(name: str) -> None:
    """Histories with two values lose 2 eps_inf = 4 if they change and return at the same times, and only then."""
    scheme = asked(name, 20, eps_inf=2.0, eps_1=1.9)
    found = proven(scheme, 4000, 20, coins=returning_coins(scheme, 20))
    assert found > 4.0
    assert found <= (scheme.guarantees.any(20).whole or 0)


def test_the_power_of_an_audit_is_stated() -> None:
    seen = smallest_violation(1.0, 10_000, ALPHA)
    assert seen is not None and 1.0 < seen < 1.1
    p, q = (1 / (1 + exp(-eps)) for eps in (seen, 1.0))
    assert 10_000 * (p * log(p / q) + (1 - p) * log((1 - p) / (1 - q))) == pytest.approx(log(1 / ALPHA), rel=1e-3)
    assert smallest_violation(1.0, 0, ALPHA) is None
