"""Shares of places: near the truth, with intervals that cover areas, and the same for the same counts."""

import numpy as np
import pytest

from analytics.estimation import estimate
from analytics.estimation.places import fit_places
from protocols.arrays import Floats
from protocols.mechanisms import Area, PlanarChannel, PlanarRound
from protocols.mechanisms.places.fitting import weighed

COLUMNS, ROWS = 16, 12
CELLS = COLUMNS * ROWS


def town(seed: int, kind: str = "smooth") -> Floats:
    """Shares of cells: a few centres of different sizes, and some people everywhere; or rougher."""
    random, (y, x) = np.random.default_rng(seed), np.divmod(np.arange(CELLS), COLUMNS)
    shares = np.full(CELLS, 0.05 / CELLS)
    for _ in range(6):
        size = random.uniform(0.5, 3)
        centre = np.exp(-((x - random.uniform(0, COLUMNS)) ** 2 + (y - random.uniform(0, ROWS)) ** 2) / 2 / size**2)
        shares += random.uniform(0.2, 1) * centre / centre.sum()
    if kind == "rough":
        shares *= random.lognormal(size=CELLS) * (random.random(CELLS) > 0.35)
    if kind == "sparse":
        shares = random.permutation(np.where(np.arange(CELLS) < CELLS // 8, 1 / (1.0 + np.arange(CELLS)), 0))
    return np.asarray(shares / shares.sum())


def blocks(side: int) -> np.ndarray:
    """Areas: squares of so many cells a side."""
    y, x = np.divmod(np.arange(CELLS), COLUMNS)
    area = y // side * (-(-COLUMNS // side)) + x // side
    return np.asarray(area == np.unique(area)[:, None])


def channel(*rates: float) -> PlanarChannel:
    return PlanarChannel(tuple(PlanarRound(COLUMNS, ROWS, rate) for rate in rates))


def reported(shares: Floats, how: PlanarChannel, people: int, seed: int) -> tuple[Floats, np.ndarray]:
    """The shares among so many people, and how many of their reports name each cell."""
    random = np.random.default_rng(seed)
    places = random.multinomial(people, shares)
    return places / people, random.multinomial(places, how.matrix / how.matrix.sum(axis=1, keepdims=True)).sum(axis=0)


INSIDE = [cell for cell in range(CELLS) if not (cell % COLUMNS > 9 and cell // COLUMNS < 5)]


def inside_area(*rates: float) -> PlanarChannel:
    """A grid without one of its corners."""
    return PlanarChannel(tuple(weighed(Area(COLUMNS, ROWS, tuple(INSIDE)), rate) for rate in rates))


KINDS = ("smooth", "rough", "sparse")
GRIDS = [(rates, 1.0, True) for rates in ((0.5,), (1.0,), (2.75, 1.375))]
SETTINGS = [*GRIDS, ((1.0,), 1.0, False), ((1.0,), 0.3, True)]


@pytest.mark.long(part="statistics")
def test_intervals_of_occupied_cells_and_of_areas_cover() -> None:
    """Smooth, rough and sparse towns, on a grid or a part of it, of everybody or of three in ten; areas of two sizes.

    The estimate is biased. The control has no part of that: intervals from the spread of refits alone.
    """
    held: dict[str, list[float]] = {each: [] for each in (*KINDS, "areas", "control")}
    for rates, answering, whole in SETTINGS:
        how, inside = channel(*rates) if whole else inside_area(*rates), range(CELLS) if whole else INSIDE
        for seed in range(6):
            random, people = np.random.default_rng(seed), (3_000, 20_000)[seed % 2]
            shares = town(seed, KINDS[seed % 3])[inside]
            places = random.multinomial(round(people / answering), shares / shares.sum())
            some = places if answering == 1 else random.multivariate_hypergeometric(places, people)
            counts = random.multinomial(some, how.matrix / how.matrix.sum(axis=1, keepdims=True)).sum(axis=0)
            true, everybody = places / places.sum(), places.sum()
            found, fit = estimate(counts, people, how, population=everybody), fit_places(counts, how)
            held[KINDS[seed % 3]].append(float(np.mean(((found.low <= true) & (true <= found.high))[places > 0])))
            near = np.abs(found.value - true) <= 1.96 * fit.refits.std(axis=0)
            held["control"].append(float(np.mean(near[places > 0])))
            areas = np.concatenate([blocks(side) for side in (2, 4)])[:, inside]
            found, true = estimate(counts, people, how, population=everybody, groups=areas), areas @ true
            held["areas"].append(float(np.mean(((found.low <= true) & (true <= found.high))[true > 0])))
            assert found.value[-12:].sum() == pytest.approx(1)
    mean = {kind: float(np.mean(runs)) for kind, runs in held.items()}
    assert 0.93 <= np.mean([mean[kind] for kind in KINDS]) <= 0.97 and 0.93 <= mean["areas"] <= 0.97, mean
    assert min(mean[kind] for kind in KINDS) >= 0.88, mean  # of sparse towns
    assert mean["control"] < 0.9, mean


def test_stopping_early_is_nearer_to_the_truth_than_the_reports_and_than_going_on() -> None:
    how = channel(1.0)
    for seed in range(3):
        truth, counts = reported(town(seed), how, 20_000, seed)
        fit = fit_places(counts, how)
        off = np.abs(fit.shares - truth).sum()
        assert off < 0.8 * np.abs(counts / counts.sum() - truth).sum()
        assert off < np.abs(estimate_after(counts, how, 30 * fit.steps) - truth).sum()


def estimate_after(counts: np.ndarray, how: PlanarChannel, steps: int) -> Floats:
    """Expectation-maximisation written out, with the whole matrix."""
    shares, matrix = np.full(how.k, 1 / how.k), how.matrix
    for _ in range(steps):
        shares = shares * (matrix @ (counts / counts.sum() / (shares @ matrix)))
    return np.asarray(shares)


@pytest.mark.parametrize("how", [channel(1.2, 0.6), inside_area(1.2)], ids=["whole", "inside"])
def test_steps_by_transforms_and_inside_an_area_are_steps_by_the_matrix(how: PlanarChannel) -> None:
    _, counts = reported(np.full(how.k, 1 / how.k), how, 5000, 1)
    fit = fit_places(counts, how)
    assert fit.shares == pytest.approx(estimate_after(counts, how, fit.steps), abs=1e-10)
