"""Consistent histograms are what they claim: the nearest, or the likeliest, distribution."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize

from analytics.estimation import CellNoise, estimate, exact, norm_sub
from analytics.estimation.consistent_shares import most_likely, project
from analytics.estimation.votes import covariance
from analytics.mobility import Answers
from lab.evaluation.measuring import clip_renormalise
from protocols.mechanisms import MatrixRound, SupportChannel
from protocols.mechanisms.catalogue import build
from protocols.mechanisms.mechanism import Budget
from protocols.mechanisms.rounds import geometric, grr, oue
from tests.analytics.test_coverage import FAMILIES
from tests.helpers.crowd import counts_of, scheme_of

SETS, LETTERS = ("grr", "sue", "oue"), ", ".join("abcdefghij")
vectors = hnp.arrays(np.float64, st.integers(2, 8), elements=st.floats(-2, 2, width=16))


def _nearest(point: np.ndarray, metric: np.ndarray) -> np.ndarray:
    """The quadratic program, by a general solver that knows nothing of ours."""
    k = len(point)
    solution = minimize(
        lambda x: (x - point) @ metric @ (x - point),
        np.full(k, 1 / k),
        jac=lambda x: 2 * metric @ (x - point),
        bounds=[(0, 1)] * k,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1, "jac": lambda x: np.ones(k)},
        options={"maxiter": 500, "ftol": 1e-14},
    )
    return np.asarray(solution.x)


@given(vectors)
def test_norm_sub_is_the_projection_onto_the_simplex(point: np.ndarray) -> None:
    ours = norm_sub(point)
    assert ours.min() >= 0 and ours.sum() == pytest.approx(1)
    assert ours == pytest.approx(_nearest(point, np.eye(len(point))), abs=1e-5)


@given(vectors, st.integers(0, 1000))
def test_the_weighted_projection_solves_its_quadratic_program(point: np.ndarray, seed: int) -> None:
    root = np.random.default_rng(seed).normal(size=(len(point), len(point)))
    spread = root @ root.T + 0.1 * np.eye(len(point))
    ours = project(point, spread, SupportChannel(len(point), oue(1.0), exclusive=False))
    assert ours.min() >= 0 and ours.sum() == pytest.approx(1)
    theirs = _nearest(point, np.linalg.inv(spread))
    distance = [(x - point) @ np.linalg.solve(spread, x - point) for x in (ours, theirs)]
    assert distance[0] <= distance[1] + 1e-6


def test_the_likeliest_histogram_is_likelier_than_its_neighbours_with_a_prior_too() -> None:
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    channel = SupportChannel(4, grr(4, 1.0), exclusive=True, share=0.5, fake=prior)
    counts = np.array([30, 50, 10, 10])
    peak = most_likely(counts, 100, channel)
    random = np.random.default_rng(1)
    for other in 0.98 * peak + 0.02 * random.dirichlet(np.ones(4), size=200):
        assert (counts * np.log(channel.support(other))).sum() <= (counts * np.log(channel.support(peak))).sum()


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize(
    ("mechanism", "terms"),
    [
        ("l-osue", "eps_inf: 2, eps_1: 1"),
        ("sue", "eps: 0.5"),
        ("grr", "eps: 1"),
        ("l-geometric", "eps_inf: 1, eps_1: 0.5"),
        ("oue-z", "eps: 2, solution: rs+fd"),
    ],
)
def test_the_likeliest_histogram_is_nearer_the_truth_than_the_papers(mechanism: str, terms: str) -> None:
    other = ", {name: b, values: [x, y]}" if "rs+fd" in terms else ""
    scheme = scheme_of(f"{{name: a, range: {{last: 29}}, mechanism: {mechanism}}}{other}", terms)
    truth = 1 / np.arange(1, 31) ** 1.3
    truth /= truth.sum()
    trial = np.repeat(np.arange(150), 5000)
    values = np.random.default_rng(2).choice(30, size=len(trial), p=truth)
    counts, n = counts_of(scheme, "a", values, trial)
    channel = scheme.question("a").channel
    raw = estimate(counts, n, channel).value
    likeliest, papers = most_likely(counts, n, channel), clip_renormalise(raw)
    assert likeliest.min() >= 0 and likeliest.sum(axis=1) == pytest.approx(1)
    losses = [((histograms - truth) ** 2).mean() for histograms in (likeliest, papers, raw)]
    assert losses[0] < 0.93 * losses[1] < losses[2]


GRID = "{name: a, grid: {at: [47, 6], cell: 100m, columns: 5, rows: 2}, geo: {level: 3, radius: 100m}}"
EVERY = {
    **FAMILIES,
    "places": (GRID, "grace: 1h"),
    **{f"sets {name}": (f"{{name: a, values: [{LETTERS}], several: 3, mechanism: {name}}}", "eps: 2") for name in SETS},
}


@pytest.mark.parametrize("family", EVERY)
def test_the_likeliest_of_counts_without_noise_is_the_truth_for_every_mechanism(family: str) -> None:
    """Published as `consistent` where an attribute asks for it, with noised counts too."""
    attributes, terms = EVERY[family]
    scheme = scheme_of(attributes.replace("name: a,", "name: a, correction: likeliest,"), terms)
    question, n = scheme.question("a"), 1_000_000
    truth = np.array([0.3, 0.2, 0.2, 0.1, 0.05, 0.05, 0.04, 0.03, 0.02, 0.01])
    if "sets" in family:
        truth = np.concatenate([truth, [0.9, 0.7, 0.4]])
    counts = np.rint(n * question.channel.support(truth)).astype(np.int64)
    for noise in [None] if family == "places" else [None, CellNoise(9.0, 9.0, 1)]:
        answers = Answers(question, n, counts, exact(np.array(n)), noise)
        assert answers.fitted()["consistent"] == pytest.approx(truth[:10], abs=2e-3)
        other = replace(answers, counts=counts[::-1]).fitted()["consistent"]
        assert other != pytest.approx(truth[:10], abs=2e-3), "other counts, another histogram"


def test_without_reports_the_likeliest_histogram_is_even_and_counts_of_no_crowd_have_one_too() -> None:
    for channel in (
        SupportChannel(4, grr(4, 1.0), exclusive=True),
        SupportChannel(4, oue(1.0), exclusive=False),
        MatrixRound(geometric(4, 1.0).matrix),
    ):
        assert most_likely(np.zeros((2, 4)), np.zeros(2), channel) == pytest.approx(np.full((2, 4), 0.25))
    # At a large budget all of it may go to one value, and then votes no longer vary in every direction.
    counts = [1, 4, 3, 5, 5, 4, 8, 4, 5, 5, 8, 3, 5, 4, 5, 3, 3, 1, 2, 5, 3, 5, 4, 3, 5, 2, 3, 3, 4, 0, 4]
    histogram = most_likely(counts, 10, build("loloha", 31, Budget(20.0), 3).channel())
    assert histogram.min() >= 0 and histogram.sum() == pytest.approx(1, abs=1e-5)


def test_the_covariance_of_votes_is_what_simulated_votes_show() -> None:
    scheme = scheme_of(
        "{name: a, range: {last: 3}, mechanism: oue-r}, {name: b, values: [x, y]}", "eps: 2, solution: rs+fd"
    )
    truth = np.array([0.6, 0.3, 0.1, 0.0])
    trial = np.repeat(np.arange(20_000), 50)  # a standard error of 0.04
    counts, n = counts_of(scheme, "a", np.random.default_rng(8).choice(4, size=len(trial), p=truth), trial)
    channel = scheme.question("a").channel
    shown = np.cov(estimate(counts, n, channel).value.T) * 50
    assert shown == pytest.approx(covariance(channel, truth), abs=0.25)
