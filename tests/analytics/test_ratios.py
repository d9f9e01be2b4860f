"""Products and ratios of noisy numbers, and noise on counts, reach as far as they say."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.estimation.estimates import Estimates, exact, product, quantile, ratio
from analytics.windows import first_reports
from analytics.windows.first_reports import MANY, noise_error, noise_quantile

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
    assert noise.std() == pytest.approx(noise_error(cells, scale), rel=0.03)
    half_width = noise_quantile(cells, scale, 0.95)
    assert np.mean(np.abs(noise) <= half_width) >= 0.945
    assert np.mean(np.abs(noise) <= half_width - 1) < 0.955


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("scale", [300.0, 3.0, 0.15])
def test_the_noise_of_many_cells_reaches_as_far_as_its_exact_distribution_says(
    scale: float, confidence: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = noise_quantile.__wrapped__(MANY, scale, confidence)
    monkeypatch.setattr(first_reports, "MANY", MANY + 1)
    assert many == pytest.approx(noise_quantile.__wrapped__(MANY, scale, confidence), rel=5e-4, abs=1)


def test_the_longest_window_under_the_smallest_budget_has_a_reach() -> None:
    """Its exact distribution would take 64 GiB."""
    cells = 65_535 * 65_536 // 2
    assert noise_quantile(cells, 9000.0, 0.95) == pytest.approx(1.96 * noise_error(cells, 9000.0), rel=1e-4)
