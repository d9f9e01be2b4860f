"""Devices for the tests of the audit: honest ones, and ones that break their promise in a way that must be found."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lab.attacks.histories import Coins
from lab.attacks.observed import Observed
from lab.seeded_keyrings import seeded_keyring
from protocols.mechanisms import Use, fitting
from protocols.question import Question
from protocols.respondent import Respondent
from protocols.scheme import Scheme

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


def observe(scheme: Scheme, values: dict[str, Any], answer: Answer = honest, seed: int = 0) -> Observed:
    """What devices report whose values are given as [period, device]."""
    respondent = Respondent(scheme, seeded_keyring(seed))
    periods, n = next(iter(values.values())).shape
    devices = np.arange(n, dtype=np.uint64)
    answers = {
        q.name: np.array([answer(respondent, q, devices, period, values[q.name][period]) for period in range(periods)])
        for q in scheme.questions
    }
    gaps = np.ones((periods, n), dtype=np.uint16)
    gaps[0] = scheme.survey.horizon
    return Observed(
        scheme,
        values,
        np.ones((periods, n), dtype=bool),
        np.array([respondent.answering(devices, period) for period in range(periods)]),
        answers,
        respondent.sampled(devices) if scheme.sampling else None,
        {q.name: respondent.traits(q, devices) for q in scheme.questions},
        gaps,
        np.array([respondent.tokens(devices, period) for period in range(periods)]),
    )


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
