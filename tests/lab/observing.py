"""Devices for the tests of the audit: honest ones, and ones that break their promise in a way that coins prove."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from lab.attacks.coins import Coins, coin_audit, ratios, returning_coins, steady_coins
from lab.attacks.observed import Observed
from lab.seeded_keyrings import seeded_keyring
from protocols.mechanisms import Flip, Use, fitting
from protocols.question import Question
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey import NOTHING
from tests.helpers.surveys import of_size, scheme_with

USES: dict[Use, dict[str, Any]] = {
    "one-shot": {"eps": 1.0},
    "memo only": {"eps_inf": 1.5},
    "two rounds": {"eps_inf": 2.0, "eps_1": 1.0},
}
MECHANISMS: list[tuple[str, dict[str, Any]]] = [
    (record.name, terms) for use, terms in USES.items() for record in fitting(use) if record.name != "threshold"
]
"""All that ask a single attribute for its value, each with its budgets."""
Answer = Callable[[Respondent, Question, Any, int, Any], Any]  # respondent, question, devices, period, values


def honest(respondent: Respondent, question: Question, devices: Any, period: int, values: Any) -> Any:
    return respondent.answers(question, devices, period, values)


def of_any_kind(respondent: Respondent, question: Question, devices: Any, period: int, values: Any) -> Any:
    """Honest devices, whose values may be sets, given by their elements."""
    given = np.where(values < question.items.k, values, NOTHING) if question.sets else values
    drawn = respondent.values(question, devices, {question.name: given}, period)
    return respondent.answers(question, devices, period, drawn)


def partly_bare(respondent: Respondent, question: Question, devices: Any, period: int, values: Any) -> Any:
    """Every second device answers a direct question, or one about a threshold, without noise."""
    answers, encoding = of_any_kind(respondent, question, devices, period, values), question.mechanism.encoding
    bare = (
        values[::2, 0]
        if question.sets
        else encoding.finish(
            respondent.cells(question, devices[::2], values[::2]), respondent.traits(question, devices[::2])
        )
    )
    answers[::2] = bare
    return answers


def observe(scheme: Scheme, values: dict[str, Any], answer: Answer = honest, seed: int = 0) -> Observed:
    """What devices report whose values are given as [period, device]."""
    respondent = Respondent(scheme, seeded_keyring(seed))
    periods, n = next(iter(values.values())).shape[:2]
    devices, seen = np.arange(n, dtype=np.uint64), Observed(scheme, n, periods, respondent)
    seen.values, seen.present = values, np.ones((periods, n), dtype=bool)
    for q in scheme.questions:
        answers = [answer(respondent, q, devices, period, values[q.name][period]) for period in range(periods)]
        seen.answers[q.name] = np.array(answers)
    seen.gaps[:], seen.gaps[0] = 1, scheme.survey.horizon
    for period in range(periods):
        seen.answered[period] = respondent.answering(devices, period)
        seen.tokens[period] = respondent.tokens(devices, period)
    return seen


def tossed(n: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).random(n) < 0.5


def with_coins(
    scheme: Scheme, coins: Coins, shown: Any, periods: int, answer: Answer = honest, seed: int = 0
) -> Observed:
    """What devices report whose coins chose between two histories."""
    values = {
        q.name: np.array([coins.values(shown, period)[q.name] for period in range(periods)]) for q in scheme.questions
    }
    return observe(scheme, values, answer, seed)


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
    return coin_audit(found, shown[rows], alpha)[0]


def asked(mechanism: str, k: int, **terms: Any) -> Scheme:
    return scheme_with(of_size(k, mechanism=mechanism), **terms)


def without_memo(respondent: Respondent, question: Question, devices: Any, period: int, values: Any) -> Any:
    fresh = question.mechanism.memoise(values, respondent.keyring.draws(("no memo",), devices, period))
    return respondent.report(question, devices, period, respondent.listed(question, fresh))


def forgetful(respondent: Respondent, question: Question, devices: Any, period: int, values: Any) -> Any:
    """Has lost its memo once, and made another one: a store that was flushed, under a client that does not derive."""
    lost = respondent if period < 10 else Respondent(respondent.scheme, seeded_keyring(99))
    memo = lost.memoise(question, devices, lost.cells(question, devices, values))
    return respondent.report(question, devices, period, respondent.listed(question, memo))


def careless(respondent: Respondent, question: Question, devices: Any, period: int, values: Any) -> Any:
    """Its second round has too little noise: one report loses 1.09, and not 1."""
    second = question.mechanism.second
    assert isinstance(second, Flip)
    p = 1.1 * second.p
    wrong = replace(question.mechanism, second=Flip(p, (1 - p) / 9))
    memo = respondent.memoise(question, devices, values)
    return wrong.report(memo, respondent.keyring.draws(("careless",), devices, period))


def lost_memo(name: str, alpha: float) -> tuple[float, float]:
    scheme, coins, shown = asked(name, 4, **TWO_ROUNDS), steady_coins(asked(name, 4, **TWO_ROUNDS), 20), tossed(8000)
    seen = with_coins(scheme, coins, shown, 20, forgetful)
    halves = [ratios(seen, coins, periods)[1] for periods in (range(10), range(10, 20))]
    assert coin_audit(halves[0], shown, alpha)[0] <= 2.0, "until it is lost, the promise is kept"
    return coin_audit(halves[0] + halves[1], shown, alpha)[0], 2.0


def too_little_noise(alpha: float) -> tuple[float, float]:
    return proven(asked("l-grr", 10, **TWO_ROUNDS), 120_000, 1, careless, alpha=alpha), 1.0


def as_published(sizes: tuple[int, ...], promise: float, devices: int, alpha: float) -> tuple[float, float]:
    """RS+FD with the budget of the papers; it keeps what we compute for it."""
    attributes = [of_size(k, f"a{i}", mechanism="grr") for i, k in enumerate(sizes)]
    scheme = scheme_with(*attributes, solution="rs+fd", guarantee="published", eps=1.0)
    found = proven(scheme, devices, 1, alpha=alpha)
    assert found <= (scheme.guarantees.per_report.whole or 0)
    assert proven(scheme_with(*attributes, solution="rs+fd", eps=1.0), 20_000, 1, alpha=alpha) <= 1.0
    return found, promise


def comes_back(name: str, alpha: float) -> tuple[float, float]:
    """Histories with two values lose 2 eps_inf = 4 if they change and return at the same times, and only then."""
    scheme = asked(name, 20, eps_inf=2.0, eps_1=1.9)
    found = proven(scheme, 4000, 20, coins=returning_coins(scheme, 20), alpha=alpha)
    assert found <= (scheme.guarantees.any(20).whole or 0)
    return found, 4.0


def memoless(name: str, alpha: float) -> tuple[float, float]:
    return proven(asked(name, 10, **TWO_ROUNDS), 2000, 10, without_memo, alpha=alpha), 2.0


def retry(alpha: float) -> tuple[float, float]:
    """The second attempt at a period must be the same report; here it is drawn again, and both are seen."""
    return proven(asked("l-osue", 10, **TWO_ROUNDS), 20_000, 2, alpha=alpha), 1.0


BROKEN: dict[str, Callable[[float], tuple[float, float]]] = {
    "no memo, bits": partial(memoless, "l-osue"),
    "no memo, symbols": partial(memoless, "l-grr"),
    "a memo that was lost and made again, bits": partial(lost_memo, "l-osue"),
    "a memo that was lost and made again, symbols": partial(lost_memo, "l-grr"),
    "a retry with new noise": retry,
    "a second round with too little noise": too_little_noise,
    "a value that comes back, bits": partial(comes_back, "l-osue"),
    "a value that comes back, symbols": partial(comes_back, "l-grr"),
    "RS+FD as published, ten attributes": partial(as_published, (100,) * 10, 1.0, 160_000),
    "RS+FD as published, six attributes": partial(as_published, (2,) * 6, 1.8, 80_000),
}
