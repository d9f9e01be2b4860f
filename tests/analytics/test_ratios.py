"""Products, ratios and rankings of noisy numbers, and noise on counts, are as sure as they say."""

from collections.abc import Callable

import numpy as np
import pytest

from analytics.estimation.estimates import Estimates, exact, product, quantile, ratio
from analytics.mobility.attributes import rank
from protocols.privacy import geometric
from protocols.privacy.geometric import MANY, noise_error, noise_quantile

TRIALS = 20_000


def _measured(truth: float, error: float, random: np.random.Generator) -> Estimates:
    value = random.normal(truth, error, TRIALS)
    half_width = quantile(0.95) * error
    return Estimates(value, np.full(TRIALS, error), value - half_width, value + half_width)


def _held(intervals: Estimates, truth: float) -> float:
    known = np.isfinite(intervals.low)
    return float(((intervals.low <= truth) & (truth <= intervals.high))[known].mean())


@pytest.mark.parametrize(("now", "then", "error"), [(100, 100, 5), (30, 100, 8), (300, 100, 20), (5, 60, 4)])
def test_intervals_of_ratios_hold_the_true_ratio(now: float, then: float, error: float) -> None:
    random = np.random.default_rng(1)
    by = ratio(_measured(now, error, random), _measured(then, error, random))
    assert _held(by, now / then) == pytest.approx(0.95, abs=0.01)


def test_a_ratio_to_what_may_be_nothing_is_not_told() -> None:
    nothing = ratio(exact(np.array([5.0])), Estimates(*np.array([[2.0], [3.0], [-4.0], [8.0]])))
    assert np.isnan([nothing.value, nothing.low, nothing.high]).all()


@pytest.mark.parametrize(
    ("left", "right"), [((0.3, 0.05), (1000, 30)), ((0.02, 0.03), (1000, 0)), ((0.9, 0), (50, 10))]
)
def test_intervals_of_products_hold_the_true_product(left: tuple[float, float], right: tuple[float, float]) -> None:
    random = np.random.default_rng(2)
    both = product(_measured(*left, random), _measured(*right, random))
    assert _held(both, left[0] * right[0]) == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize("cells", [1, 7, 300])
def test_noise_on_a_sum_of_cells_reaches_no_further_than_said(cells: int) -> None:
    scale = 3 / 0.9
    chance = 1 - np.exp(-1 / scale)
    random = np.random.default_rng(cells)
    draws = random.geometric(chance, (TRIALS, cells, 2)).astype(np.int32)
    noise = (draws[..., 0] - draws[..., 1]).sum(axis=1)
    assert noise.std() == pytest.approx(noise_error([scale] * cells), rel=0.03)
    half_width = noise_quantile((scale,) * cells, 0.95)
    assert np.mean(np.abs(noise) <= half_width) >= 0.945
    assert np.mean(np.abs(noise) <= half_width - 1) < 0.955


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("scale", [300.0, 3.0, 0.15])
def test_the_noise_of_many_cells_reaches_as_far_as_its_exact_distribution_says(
    scale: float, confidence: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = noise_quantile.__wrapped__((scale,) * MANY, confidence)
    monkeypatch.setattr(geometric, "MANY", MANY + 1)
    assert many == pytest.approx(noise_quantile.__wrapped__((scale,) * MANY, confidence), rel=5e-4, abs=1)


def among(spread: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    return lambda places: spread[np.ix_(places, places)]


def test_the_probability_of_a_ranking_is_how_often_it_is_right() -> None:
    """Truths drawn from a wide prior and measured with noise: among rankings claimed at p, a share of p are right."""
    random = np.random.default_rng(3)
    error, claimed, right = 0.03, [], []
    for _ in range(1500):
        truth = random.normal(0.2, 0.3, 4)
        order, probabilities, whole = rank(truth + random.normal(0, error, 4), among(np.eye(4) * error**2), places=2)
        best = np.argsort(-truth)[:2]
        claimed.append([*probabilities, whole])
        right.append([order[0] == best[0], order[1] == best[1], (order == best).all()])
    assert np.mean(claimed, axis=0) == pytest.approx(np.mean(right, axis=0), abs=0.03)
    doubtful = np.array(claimed)[:, 2] < 0.8
    assert doubtful.sum() > 50
    assert np.array(right)[doubtful, 2].mean() == pytest.approx(np.array(claimed)[doubtful, 2].mean(), abs=0.1)


def test_areas_that_cannot_be_told_apart_are_ranked_by_chance_and_those_that_move_together_better() -> None:
    _, probabilities, whole = rank(np.full(4, 0.25), among(np.eye(4) * 0.01), places=4)
    assert probabilities == pytest.approx(np.full(4, 0.25), abs=0.05)
    assert whole == pytest.approx(1 / 24, abs=0.02)
    apart, together = np.eye(2) * 0.01, np.full((2, 2), 0.0099) + np.eye(2) * 0.0001
    values = np.array([0.55, 0.45])
    assert rank(values, among(together), 1)[2] > 0.99 > rank(values, among(apart), 1)[2]


def test_a_ranking_does_not_depend_on_the_axes_that_a_processor_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    values, spread = np.array([0.4, 0.35, 0.25]), among(np.eye(3) * 0.01)
    found = rank(values, spread, 3)
    monkeypatch.setattr(np.linalg, "eigh", lambda covariance: (np.full(3, 0.01), -np.eye(3)[::-1]))
    assert rank(values, spread, 3)[1].tolist() == found[1].tolist()
