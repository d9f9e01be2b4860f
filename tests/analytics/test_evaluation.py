"""Evaluation against what is known: closed forms, exact against published, Norm-Sub against clipping."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.evaluation import (
    Method,
    Score,
    Snapshot,
    Truth,
    choose,
    evaluate,
    everybody_once,
    measuring,
    noisy_priors,
)
from analytics.evaluation.methods import METHODS
from analytics.evaluation.scores import Infeasible
from hearsay.running.seeded_keyrings import seeded_keyring
from producers.scenarios import scenario

KEYRING = seeded_keyring(6)


def snapshot(period: int, people: int, sizes: dict[str, int]) -> Snapshot:
    """People whose values are skewed: the first value is the commonest."""
    random = np.random.default_rng(period)
    values = {name: np.minimum(random.geometric(2 / k, people) - 1, k - 1) for name, k in sizes.items()}
    return Snapshot(period, random.choice(10 * people + 1, people, replace=False).astype(np.uint64), values)


def truth_of(*people: int, **sizes: int) -> Truth:
    priors = {name: np.arange(k, 0, -1) / np.arange(k + 1).sum() for name, k in sizes.items()}
    return Truth(sizes, [snapshot(period, count, sizes) for period, count in enumerate(people)], priors)


def scored(truth: Truth, *names: str, eps: float = 2.0, **options: object) -> list[Score]:
    outcomes = evaluate(truth, choose(names), [eps], KEYRING, **options)  # type: ignore[arg-type]
    assert all(isinstance(outcome, Score) for outcome in outcomes)
    return [outcome for outcome in outcomes if isinstance(outcome, Score)]


ON_ALL_TERMS = [
    *(method for method in METHODS if not method.placed),
    *(method.as_published() for method in METHODS if method.republished),
    *(method.taking_turns(2) for method in choose(["smp[grr]", "spl[oue]", "rs+fd[grr]"])),
]


@pytest.mark.parametrize("method", ON_ALL_TERMS, ids=lambda method: f"{method.name}, {method.terms}")
def test_measured_errors_are_those_of_the_closed_form(method: Method) -> None:
    """Over periods of different sizes, one of them empty."""
    (score,) = evaluate(truth_of(600, 0, 1500, some=6, many=30), [method], [2.0], KEYRING, runs=30)
    assert isinstance(score, Score)
    assert score.mse["raw"].value == pytest.approx(score.expected, rel=0.15)


def test_taking_turns_costs_a_factor_of_the_turns_and_memos_take_none() -> None:
    truth = truth_of(20_000, some=6)
    always, memo = (choose([name])[0] for name in ("smp[grr]", "smp[l-grr]"))
    once, turns = evaluate(truth, [always, always.taking_turns(5)], [1.0], KEYRING, runs=30)
    assert isinstance(once, Score) and isinstance(turns, Score)
    assert turns.expected / once.expected == pytest.approx(5, rel=0.1)
    assert turns.mse["raw"].value / once.mse["raw"].value == pytest.approx(5, rel=0.4)
    assert turns.guarantees.per_window is not None
    assert memo.taking_turns(5) is memo


def test_exact_l_grr_beats_the_published_one_by_the_ratio_of_their_variances() -> None:
    truth = truth_of(20_000, region=37)
    (ours,) = choose(["smp[l-grr]"])
    exact, published = evaluate(truth, [ours, ours.as_published()], [1.0], KEYRING, runs=20)
    assert isinstance(exact, Score) and isinstance(published, Score)
    assert published.expected / exact.expected > 25
    assert published.mse["raw"].value / exact.mse["raw"].value == pytest.approx(
        published.expected / exact.expected, rel=0.25
    )
    assert exact.guarantees.per_report.whole == pytest.approx(0.5)
    assert published.guarantees.per_report.whole == pytest.approx(0.09, abs=0.005)


@pytest.mark.long(part="statistics")
def test_norm_sub_beats_clipping_and_the_raw_estimate_on_the_festival_week() -> None:
    week = scenario("virtual-humans")
    truth = Truth(
        {name: len(values) for name, values in week.attributes.items()},
        [everybody_once(week.presences(day) for day in range(week.periods))],
    )
    for score in scored(truth, "smp[allomfree]", "smp[l-osue]", "smp[l-sue]", "rs+fd[grr]"):
        assert score.mse["norm-sub"].value < score.mse["raw"].value
        assert 1.07 < score.mse["clip"].value / score.mse["norm-sub"].value < 1.6


def test_allomfree_is_as_good_as_the_better_of_its_parts_for_every_attribute() -> None:
    truth = truth_of(4000, few=3, many=30)
    both, grr, osue = scored(truth, "smp[allomfree]", "smp[l-grr]", "smp[l-osue]", runs=40)
    assert both.mechanisms == {"few": "l-grr", "many": "l-osue"}
    # The same mechanism with other draws, because each method is a survey of its own.
    assert both.by_attribute["few"]["raw"] == pytest.approx(grr.by_attribute["few"]["raw"], rel=0.5)
    assert both.by_attribute["many"]["raw"] == pytest.approx(osue.by_attribute["many"]["raw"], rel=0.15)
    assert both.expected < min(grr.expected, osue.expected)


def test_a_budget_out_of_reach_is_reported_with_its_range() -> None:
    (outcome,) = evaluate(truth_of(50, a=3), choose(["smp[l-oue]"]), [1.0], KEYRING, alpha=0.9, runs=1)
    assert isinstance(outcome, Infeasible)
    assert outcome.reason == (
        "l-oue cannot reach eps_1 = 0.9 with eps_inf = 1 (choose eps_1 below 0.763383, or another mechanism)"
    )


@pytest.mark.parametrize("name", ["many", "a1", "a77"])
def test_a_refused_attribute_is_called_by_its_own_name(name: str) -> None:
    truth = truth_of(3, few=2, **{name: 70_000})
    (outcome,) = evaluate(truth, choose(["rs+fd[grr]"]), [1.0], KEYRING, runs=1)
    assert isinstance(outcome, Infeasible) and outcome.reason.startswith(f"attribute '{name}': grr takes at most")
    (outcome,) = evaluate(truth, choose(["geo-grid"], placed=True), [1.0], KEYRING, runs=1)
    assert isinstance(outcome, Infeasible) and "has no grid" in outcome.reason


def test_a_single_attribute_cannot_hide_among_others() -> None:
    (outcome,) = evaluate(truth_of(50, a=3), choose(["rs+fd[grr]"]), [1.0], KEYRING, runs=1)
    assert isinstance(outcome, Infeasible) and "hides one attribute among several" in outcome.reason


@pytest.mark.parametrize(
    ("eps", "alpha", "reason"),
    [
        (30.0, 0.5, "eps_inf: 30 protects nothing; choose 0.001 to 20"),
        (1e-4, 0.5, "eps_inf = 0.0001: should be greater than or equal to 0.001 ("),
        (1.0, 0.9999, "eps_1: 0.9999 must be below eps_inf = 1, by 0.001 or more; leave it out to send the memo"),
    ],
)
def test_a_budget_that_no_survey_takes_is_reported_with_what_one_would_take(
    eps: float, alpha: float, reason: str
) -> None:
    (outcome,) = evaluate(truth_of(50, a=3), choose(["smp[l-grr]"]), [eps], KEYRING, alpha=alpha, runs=1)
    assert isinstance(outcome, Infeasible) and outcome.reason.startswith(reason)
    assert "\n" not in outcome.reason


def test_a_prior_of_a_large_census_is_one_that_a_survey_takes() -> None:
    """Half a person among two millions is less than a survey's smallest share."""
    people = 2_000_000
    day = Snapshot(
        0, np.arange(people, dtype=np.uint64), {"a": np.zeros(people, dtype=int), "b": np.arange(people) % 2}
    )
    truth = Truth({"a": 3, "b": 2}, [day])
    priors = noisy_priors(truth, 10.0, np.random.default_rng(1))
    (method,) = choose(["rs+rfd[grr]"])
    survey = method.survey(Truth(truth.sizes, truth.moments, priors), 1.0, 0.5)
    assert survey.attributes[0].prior == pytest.approx({"0": 1, "1": 2e-6, "2": 2e-6}, abs=1e-5)


def test_runs_differ_and_the_same_keyring_gives_the_same_figures() -> None:
    truth = truth_of(500, a=3, b=4)
    once, again = (scored(truth, "smp[oue]", runs=3)[0] for _ in range(2))
    assert once.record() == again.record()
    assert once.mse["raw"].error > 0


def test_figures_do_not_depend_on_how_many_devices_are_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = truth_of(500, a=3, b=4)
    at_once = scored(truth, "spl[l-osue]", "rs+fd[l-grr]", runs=2)
    monkeypatch.setattr(measuring, "ROWS", 64)
    assert [score.record() for score in scored(truth, "spl[l-osue]", "rs+fd[l-grr]", runs=2)] == [
        score.record() for score in at_once
    ]
