"""Shares of places: near the truth, with intervals that cover areas, and the same for the same counts."""

from itertools import product

import numpy as np
import pytest

from analytics.estimation import estimate
from analytics.estimation.places import fit_places
from protocols.arrays import Floats, Mask
from protocols.mechanisms import Area, PlanarChannel, PlanarRound
from protocols.mechanisms.places.weighing import weighed

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


def blocks(side: int, area: Area) -> Mask:
    """Areas: squares of so many cells a side."""
    y, x = area.positions.T
    square = y // side * area.columns + x // side
    return np.asarray(square == np.unique(square)[:, None])


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


def covers(shares: Floats, how: PlanarChannel, people: int, answering: float, seed: int) -> tuple[float, float, float]:
    """The part of the occupied cells, and of occupied areas, whose intervals cover; and of cells those of the control.

    The estimate is biased. The control has no part of that: intervals from the spread of refits alone.
    """
    random = np.random.default_rng(seed)
    places = random.multinomial(round(people / answering), shares)
    some = places if answering == 1 else random.multivariate_hypergeometric(places, people)
    counts = random.multinomial(some, how.matrix / how.matrix.sum(axis=1, keepdims=True)).sum(axis=0)
    true, everybody = places / places.sum(), places.sum()
    found, fit = estimate(counts, people, how, population=everybody), fit_places(counts, how)
    near = np.abs(found.value - true) <= 1.96 * fit.refits.std(axis=0)
    areas = np.concatenate([blocks(side, how.rounds[0].area) for side in (2, 4)])
    joined = estimate(counts, people, how, population=everybody, groups=areas)
    assert joined.value.sum() == pytest.approx(2)
    cells, parts = ((one.low <= share) & (share <= one.high) for one, share in ((found, true), (joined, areas @ true)))
    return float(cells[true > 0].mean()), float(parts[areas @ true > 0].mean()), float(near[true > 0].mean())


def of_kinds(held: dict[str, list[tuple[float, float, float]]]) -> tuple[dict[str, float], float, float]:
    """By kind of town, how many cells are covered; how many areas, and cells by the control."""
    _, areas, control = np.mean(list(held.values()), axis=(0, 1))
    return {kind: float(np.mean(runs, axis=0)[0]) for kind, runs in held.items()}, float(areas), float(control)


@pytest.mark.long(part="statistics")
def test_intervals_of_occupied_cells_and_of_areas_cover() -> None:
    """Smooth, rough and sparse towns, on a grid or a part of it, of everybody or of three in ten."""
    held: dict[str, list[tuple[float, float, float]]] = {kind: [] for kind in KINDS}
    for (rates, answering, whole), seed in product(SETTINGS, range(6)):
        shares = town(seed, KINDS[seed % 3])[range(CELLS) if whole else INSIDE]
        how = channel(*rates) if whole else inside_area(*rates)
        people = (3_000, 20_000)[seed % 2]
        held[KINDS[seed % 3]].append(covers(shares / shares.sum(), how, people, answering, seed))
    cells, areas, control = of_kinds(held)
    assert 0.93 <= np.mean([*cells.values()]) <= 0.97 and 0.93 <= areas <= 0.97, (cells, areas)
    assert min(cells.values()) >= 0.93 and control < 0.9, (cells, control)


def other_town(seed: int, kind: str, area: Area) -> Floats:
    """Shares of towns of other shapes, on which nothing was chosen."""
    random, (y, x) = np.random.default_rng([77, seed]), area.positions.T
    if kind == "valley":
        turn, width, wave = random.uniform(0, np.pi), random.uniform(1.5, 3), random.uniform(2, 4)
        across = (x - area.columns / 2) * np.cos(turn) + (y - area.rows / 2) * np.sin(turn) - random.uniform(-2, 2)
        shares = np.exp(-np.abs(across) / width) * (1 + 0.5 * np.sin(x / wave)) + 0.02
    elif kind == "streets":
        ways = (random.choice(size, size // 4, replace=False) for size in (area.columns, area.rows))
        on = np.logical_or(*(np.isin(at, way) for at, way in zip((x, y), ways, strict=True)))
        shares = on * random.lognormal(0, 0.8, area.k) + 0.02 * random.random(area.k)
    elif kind == "villages":
        shares = np.zeros(area.k)
        for _ in range(7):
            away = np.hypot(x - random.uniform(0, area.columns), y - random.uniform(0, area.rows))
            shares += random.lognormal(0, 0.7) * (away < random.uniform(0.6, 2.2))
    else:
        shares = np.zeros(area.k)
        at = random.choice(area.k, area.k // 10, replace=False)
        shares[at] = random.pareto(1.5, len(at)) + 0.3
    return np.asarray(shares / shares.sum())


OTHER_KINDS = ("valley", "streets", "villages", "dots")
OTHER_GRIDS = [((20, 15), (0.7,)), ((13, 13), (1.4,)), ((24, 10), (2.0, 0.9))]


@pytest.mark.long(part="statistics")
def test_they_cover_on_towns_that_nothing_was_chosen_on() -> None:
    """Other shapes, grids, rates and numbers of devices."""
    held: dict[str, list[tuple[float, float, float]]] = {kind: [] for kind in OTHER_KINDS}
    for ((columns, rows), rates), people, kind in product(OTHER_GRIDS, (1_500, 8_000, 50_000), OTHER_KINDS):
        how = PlanarChannel(tuple(PlanarRound(columns, rows, rate) for rate in rates))
        for seed in range(2):
            shares = other_town(seed, kind, how.rounds[0].area)
            held[kind].append(covers(shares, how, people, 1.0, people + seed))
    cells, areas, control = of_kinds(held)
    assert 0.93 <= np.mean([*cells.values()]) <= 0.97 and 0.92 <= areas <= 0.97, (cells, areas)
    assert min(cells.values()) >= 0.93 and control < 0.9, (cells, control)


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
