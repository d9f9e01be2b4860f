"""Guesses of values in closed form, against the best guess found by looking at everything that can be seen."""

from math import inf
from typing import Any

import numpy as np
import pytest

from lab.audit.closed.guessing import best_guess, guess, tuple_guess
from protocols.mechanisms import fitting
from protocols.privacy import value_guess
from protocols.question import Question
from protocols.scheme import Scheme
from tests.helpers.enumeration import answers, survey_distribution
from tests.helpers.surveys import of_size, scheme_with
from tests.lab.broken import asked
from tests.lab.observing import MECHANISMS

SIZES = [2, 3, 4]


def enumerated(scheme: Scheme, question: Question, t: int, prior: Any) -> float:
    rows, fake = answers(question, t, scheme.survey.longitudinal)
    if fake is not None:
        rows = question.share * rows + (1 - question.share) * fake
    return float((prior[:, None] * rows).max(axis=0).sum())


@pytest.mark.parametrize(("name", "terms"), MECHANISMS)
@pytest.mark.parametrize("k", SIZES)
def test_the_best_guess_of_a_value_is_the_one_found_by_enumeration(name: str, terms: dict[str, Any], k: int) -> None:
    priors = np.full(k, 1 / k), np.arange(1, k + 1) / np.arange(1, k + 1).sum()
    for d in (1, 2, k) if name == "dbitflip" else (None,):
        scheme = scheme_with(of_size(k, mechanism=name, parameter=d), **terms)
        question, memoised = scheme.questions[0], scheme.survey.longitudinal
        assert guess(question, 1, memoised) == pytest.approx(value_guess(question), abs=1e-14)
        seen = 0
        for t in (1, 2, 3):
            for prior in priors:
                found = guess(question, t, memoised, prior)
                if found is not None:
                    seen += 1
                    assert found == pytest.approx(enumerated(scheme, question, t, prior), abs=1e-12)
        assert seen == {"dbitflip": 3, "olh": 2}.get(name, 6)  # of several fresh hashes there is no closed form


@pytest.mark.parametrize("solution", ["rs+fd", "rs+rfd"])
@pytest.mark.parametrize("terms", [{"eps": 1.0}, {"eps_inf": 2.0, "eps_1": 1.0}], ids=["one-shot", "two rounds"])
def test_guesses_among_fakes_are_those_found_by_enumeration(solution: str, terms: dict[str, Any]) -> None:
    shares = [0.5, 0.3, 0.2]
    for record in fitting(solution):  # type: ignore[arg-type]
        prior = {"prior": shares} if solution == "rs+rfd" else {}
        scheme = scheme_with(
            *(of_size(3, name, mechanism=record.name, **prior) for name in "ab"), solution=solution, **terms
        )
        question, memoised = scheme.questions[0], scheme.survey.longitudinal
        found = 0
        for t in (1, 2):
            for shape in (np.full(3, 1 / 3), np.array(shares)):
                exact = guess(question, t, memoised, shape)
                steady = memoised and question.mechanism.encoding.exclusive
                if exact is not None and (np.ptp(shape) == 0 or t == 1 or steady):
                    found += 1
                    assert exact == pytest.approx(enumerated(scheme, question, t, shape), abs=1e-12)
        assert found >= 2


@pytest.mark.parametrize("name", ["l-geometric", "l-grr", "loloha"])
def test_what_cannot_be_gone_through_has_a_bound(name: str) -> None:
    """A few counts are gone through; many are not, and the figure of all reports for ever bounds that of some."""
    prior = np.arange(1, 31) / np.arange(1, 31).sum()
    scheme = scheme_with(of_size(30, mechanism=name), eps_inf=2.0, eps_1=1.0)
    bound, exact = best_guess(scheme, scheme.questions[0], 10, prior)
    few, known = best_guess(scheme, scheme.questions[0], 2, prior)
    assert bound is not None and few is not None and known and few <= bound + 1e-12
    assert exact is (name == "loloha"), "a hash has few symbols"
    if not exact:
        assert bound == guess(scheme.questions[0], inf, True, prior)


@pytest.mark.parametrize("solution", ["spl", "smp", "rs+fd"])
def test_a_whole_tuple_is_guessed_as_well_as_enumeration_says(solution: str) -> None:
    scheme = scheme_with(of_size(3), of_size(2, "b"), solution=solution, eps_inf=2.0, eps_1=1.0)
    for t in (1, 2):
        everything = survey_distribution(scheme, t)
        best = everything.reshape(-1, everything.shape[-1]).max(axis=0).sum() / 6
        assert tuple_guess(scheme, t) == pytest.approx(best, abs=1e-12)


LONG, ONCE = {"eps_inf": 2.0, "eps_1": 1.0}, {"eps": 1.0}
KNOWN: list[tuple[str, int, dict[str, Any], dict[float, float]]] = [
    ("l-grr", 4, LONG, {1: 0.475, 2: 0.475, 3: 0.546, 10: 0.678, 30: 0.711, inf: 0.711}),
    ("l-grr", 10, LONG, {1: 0.232, 2: 0.232, 3: 0.268, 10: 0.401, 30: 0.450, inf: 0.451}),
    ("l-osue", 4, LONG, {1: 0.381, 2: 0.435, 10: 0.502, 30: 0.503, inf: 0.503}),
    ("l-osue", 10, LONG, {1: 0.181, 2: 0.244, 10: 0.316, 30: 0.318, inf: 0.318}),
    ("grr", 4, ONCE, {10: 0.773, 30: 0.959, inf: 1.0}),
    ("grr", 10, ONCE, {10: 0.439, 30: 0.723, inf: 1.0}),
    ("oue", 4, ONCE, {10: 0.707, 30: 0.924, inf: 1.0}),
    ("oue", 10, ONCE, {10: 0.520, 30: 0.842, inf: 1.0}),
]


@pytest.mark.parametrize(("name", "k", "terms", "expected"), KNOWN)
def test_linked_reports_approach_the_memo_and_without_one_the_value(
    name: str, k: int, terms: dict[str, Any], expected: dict[float, float]
) -> None:
    question = asked(name, k, **terms).questions[0]
    assert {t: guess(question, t, memoised=terms is LONG) for t in expected} == pytest.approx(expected, abs=6e-4)


def test_a_probability_stays_one_for_many_values_and_reports() -> None:
    """The difference of two powers cancels there: computed naively, the accuracy exceeds 1."""
    question = asked("l-osue", 40, eps_inf=2.0, eps_1=1.0).questions[0]
    limit = guess(question, inf, memoised=True)
    assert limit is not None
    assert guess(question, 100, memoised=True) == pytest.approx(limit, abs=1e-6)
    fresh = guess(asked("oue", 40, eps=1.0).questions[0], 100, memoised=False)
    assert fresh is not None and 0.99 < fresh <= 1
