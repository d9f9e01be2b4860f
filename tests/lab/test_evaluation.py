"""Evaluation against what is known: closed forms, exact against published, Norm-Sub against clipping."""

import numpy as np
import pytest

from lab.evaluation.measuring import evaluate
from lab.evaluation.methods import METHODS, Method, choose
from lab.evaluation.scores import Infeasible, Score
from lab.evaluation.truth import Truth, noisy_priors, one_period
from producers.scenarios import Presences

SEED = 6


def truth_of(*people: int, **sizes: int) -> Truth:
    """People whose values are skewed: the first value is the commonest."""
    moments = []
    for period, count in enumerate(people):
        random = np.random.default_rng(period)
        values = {name: np.minimum(random.geometric(2 / k, count) - 1, k - 1) for name, k in sizes.items()}
        devices = random.choice(10 * count + 1, count, replace=False).astype(np.uint64)
        moments.append(Presences(period, devices, values))
    return Truth(sizes, moments)


def scored(truth: Truth, *methods: Method | str, eps: float = 2.0, **options: object) -> list[Score]:
    named = [one for method in methods for one in (choose([method]) if isinstance(method, str) else [method])]
    outcomes = evaluate(truth, named, [eps], seed=SEED, **options)  # type: ignore[arg-type]
    assert all(isinstance(outcome, Score) for outcome in outcomes)
    return [outcome for outcome in outcomes if isinstance(outcome, Score)]


def reason(truth: Truth, name: str, eps: float = 1.0, **options: object) -> str:
    """Why a method is not possible."""
    (outcome,) = evaluate(truth, choose([name], placed=True), [eps], runs=1, **options)  # type: ignore[arg-type]
    assert isinstance(outcome, Infeasible) and "\n" not in outcome.reason
    return outcome.reason


ON_ALL_TERMS = [
    *(method for method in METHODS if not method.placed),
    *(method.as_published() for method in METHODS if method.republished),
    *(method.taking_turns(2) for method in choose(["smp[grr]", "spl[oue]", "rs+fd[grr]"])),
]


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("method", ON_ALL_TERMS, ids=lambda method: f"{method.name}, {method.terms}")
def test_measured_errors_are_those_of_the_closed_form(method: Method) -> None:
    """Over periods of different sizes, one of them empty."""
    (score,) = scored(truth_of(600, 0, 1500, some=6, many=30), method, runs=30)
    assert score.mse["raw"].value == pytest.approx(score.expected, rel=0.2)  # the geometric one: 0.1 by chance


@pytest.mark.parametrize("name", ["many", "a1", "a77"])
def test_a_refused_attribute_is_called_by_its_own_name(name: str) -> None:
    truth = truth_of(3, few=2, **{name: 70_000})
    assert reason(truth, "rs+fd[grr]").startswith(f"attribute '{name}': grr takes at most")
    assert "has no grid" in reason(truth, "geo-grid")


@pytest.mark.parametrize(
    ("name", "eps", "alpha", "said"),
    [
        ("rs+fd[grr]", 1.0, 0.5, "hides one attribute among several"),
        ("smp[l-oue]", 1.0, 0.9, "l-oue cannot reach eps_1 = 0.9 with eps_inf = 1 (choose eps_1 below 0.763383, or"),
        ("smp[l-grr]", 30.0, 0.5, "eps_inf: 30 protects nothing; choose 0.001 to 20"),
        ("smp[l-grr]", 1e-4, 0.5, "eps_inf = 0.0001: should be greater than or equal to 0.001 ("),
        ("smp[l-grr]", 1.0, 0.9999, "eps_1: 0.9999 must be below eps_inf = 1, by 0.001 or more; leave it out to"),
    ],
)
def test_what_no_survey_takes_is_reported_with_what_one_would_take(
    name: str, eps: float, alpha: float, said: str
) -> None:
    assert said in reason(truth_of(50, a=3), name, eps, alpha=alpha)


def test_a_prior_of_a_large_census_is_one_that_a_survey_takes() -> None:
    """Half a person among two millions is less than a survey's smallest share."""
    people = np.arange(2_000_000)
    truth = one_period({"a": 3, "b": 2}, {"a": people * 0, "b": people % 2})
    priors = noisy_priors(truth, 10.0, np.random.default_rng(1))
    (method,) = choose(["rs+rfd[grr]"])
    survey = method.survey(Truth(truth.sizes, truth.moments, priors), 1.0, 0.5)
    assert survey.attributes[0].prior == pytest.approx({"0": 1, "1": 2e-6, "2": 2e-6}, abs=1e-5)


def test_runs_differ_and_the_same_keyring_gives_the_same_figures() -> None:
    truth = truth_of(500, a=3, b=4)
    once, again = (scored(truth, "smp[oue]", runs=3)[0] for _ in range(2))
    assert once.record() == again.record()
    assert once.mse["raw"].error > 0
