"""A ranking that claims to be right with some probability is right that often."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from analytics.mobility.attributes import rank


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


def test_areas_that_cannot_be_told_apart_are_ranked_by_chance() -> None:
    _, probabilities, whole = rank(np.full(4, 0.25), among(np.eye(4) * 0.01), places=4)
    assert probabilities == pytest.approx(np.full(4, 0.25), abs=0.05)
    assert whole == pytest.approx(1 / 24, abs=0.02)


def test_areas_known_to_move_together_are_told_apart_better() -> None:
    apart, together = np.eye(2) * 0.01, np.full((2, 2), 0.0099) + np.eye(2) * 0.0001
    values = np.array([0.55, 0.45])
    assert rank(values, among(together), 1)[2] > 0.99 > rank(values, among(apart), 1)[2]
