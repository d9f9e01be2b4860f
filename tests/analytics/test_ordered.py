"""The early-stopped histogram of ordered attributes: it pays, its intervals cover, and its work is bounded."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from analytics.estimation import consistent_shares, estimate
from lab.evaluation.measuring import Score, evaluate
from lab.evaluation.methods import choose
from lab.evaluation.truth import one_period
from protocols.arrays import Floats
from protocols.mechanisms import MatrixRound
from protocols.mechanisms.rounds import geometric

PAGE = Path(__file__).parents[2] / "docs" / "evaluation.md"
PEOPLE, K = 4509, 50
SMOOTH = ("bell", "two bells", "even", "falling", "zipf", "steps", "daily wave")
ROUGH = ("comb", "spike")
CHANNELS = {
    "geometric": MatrixRound(geometric(K, 0.5).matrix),
    "l-geometric": MatrixRound(geometric(K, 1.0).then(geometric(K, 0.8)).matrix),
    "narrow range": MatrixRound(geometric(10, 1.0).then(geometric(10, 0.6)).matrix),
}


def kind_of_truth(kind: str, k: int) -> Floats:
    """Shares of k values."""
    x = np.arange(k)

    def bell(middle: float, width: float) -> Floats:
        return np.asarray(np.exp(-(((x - middle * k) / (width * k)) ** 2) / 2))

    weights = {
        "bell": bell(0.4, 0.1),
        "two bells": bell(0.2, 0.06) + 0.6 * bell(0.7, 0.08),
        "even": np.ones(k),
        "falling": np.exp(-5 * x / k),
        "zipf": (1.0 + x) ** -1.2,
        "steps": np.where(x < k // 3, 3, np.where(x < 2 * k // 3, 1, 0.3)),
        "daily wave": 1 + np.sin(4 * np.pi * x / k),
        "comb": 1 + 9.0 * (x % 7 == 3),
        "spike": np.eye(k)[k // 3],
    }[kind]
    return np.asarray(weights / weights.sum())


def collected(kind: str, channel: MatrixRound, people: int, seed: int) -> Iterator[tuple[Floats, np.ndarray]]:
    """Shares among so many people, and how many of their reports name each value; without end."""
    random = np.random.default_rng(seed)
    while True:
        values = random.multinomial(people, kind_of_truth(kind, channel.k))
        yield values / people, random.multinomial(values, channel.matrix).sum(axis=0)


@pytest.mark.long(part="statistics")
def test_it_pays_on_every_kind_of_smooth_truth_and_the_page_has_the_figures() -> None:
    """The devices' own code answers; MSE with Norm-Sub and early-stopped, in the table of docs/evaluation.md."""
    methods = choose(["smp[geometric]", "smp[l-geometric]"])
    for kind in SMOOTH + ROUGH:
        values = np.random.default_rng(1).choice(K, PEOPLE, p=kind_of_truth(kind, K))
        truth = one_period({"hours": K}, {"hours": values})
        figures = []
        for method, eps in zip(methods, (1.0, 0.5), strict=True):  # l-geometric first: eps_inf 1, eps_1 0.5
            (score,) = evaluate(truth, [method], [eps], seed=6, runs=10, corrections=["norm-sub", "ibu"])
            assert isinstance(score, Score) and score.headline == "ibu"
            mse = {name: mean.value for name, mean in score.mse.items()}
            if kind in SMOOTH:
                assert mse["ibu"] < mse["norm-sub"] / 3, (kind, method.name, mse)
            else:
                assert mse["ibu"] < mse["norm-sub"] * 2, (kind, method.name, mse)
            figures += [mse["norm-sub"], mse["ibu"]]
        row = re.search(rf"^\| {kind} \|(.*)\|$", PAGE.read_text("utf-8"), re.M)
        assert row, f"docs/evaluation.md has no row for {kind}"
        shown = [float(cell) for cell in row[1].split("|")]
        assert figures[2:] + figures[:2] == pytest.approx(shown, rel=0.01), kind


@pytest.mark.long(part="statistics")
def test_intervals_cover_each_kind_of_truth_and_its_highest_value() -> None:
    """Smoothing is part of the half width. Coverage is an average over values and repetitions."""
    coverage, peaks, widths = {}, [], []
    for name, channel in CHANNELS.items():
        for kind in SMOOTH + ROUGH:
            inside = []
            highest = kind_of_truth(kind, channel.k).argmax()
            for _, (truth, counts) in zip(range(8), collected(kind, channel, 3000, seed=2), strict=False):
                shares, unbiased = consistent_shares(counts, 3000, channel), estimate(counts, 3000, channel)
                assert shares.low is not None and shares.high is not None
                inside.append((shares.low <= truth + 1e-12) & (truth <= shares.high + 1e-12))
                widths.append((shares.high - shares.low).mean() / (unbiased.high - unbiased.low).mean())
            coverage[name, kind] = float(np.mean(inside))
            peaks += [row[highest] for row in inside]
    assert np.mean(list(coverage.values())) >= 0.95, coverage
    assert min(coverage.values()) >= 0.85, coverage
    assert np.mean(peaks) >= 0.9
    assert np.mean(widths) < 0.8


@pytest.mark.parametrize("counts", [[1, 0, 0], [0, 2, 0], [5, 0, 5]], ids=str)
def test_a_handful_of_reports_gives_a_histogram_too(counts: list[int]) -> None:
    shares = consistent_shares(counts, sum(counts), MatrixRound(geometric(3, 1.0).matrix))
    assert shares.low is not None and shares.high is not None
    assert shares.value.sum() == pytest.approx(1)
    assert (shares.low >= 0).all() and (shares.low <= shares.value).all()
    assert (shares.value <= shares.high).all() and (shares.high <= 1).all()
