"""Noise on places, once and with a memo: a place on a grid is protected by distance (PROTOCOLS 10)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from protocols.errors import InfeasibleError
from protocols.mechanisms.encodings import Direct
from protocols.mechanisms.mechanism import Budget, Mechanism
from protocols.mechanisms.places.area import Area
from protocols.mechanisms.places.displacement import PlanarRound
from protocols.mechanisms.places.rounds import LEAST_RATE, MOST_RATE, PlaceRound
from protocols.mechanisms.places.weighing import SPARE, WeighedRound, weighed
from protocols.mechanisms.record import MechanismRecord


@dataclass(frozen=True)
class Plane(Direct):
    """k cells of a grid, row by row from its first corner: the cell is the symbol."""

    columns: int
    rows: int
    detail: str = ""
    kind = "plane"
    parameters = ("columns", "rows")


ENUMERATED = 256  # cells of a whole grid up to which the second round is calibrated by going through the channel
MOST_WEIGHED = 400  # cells of geo-tight: its tables have the square of that
SECONDS = 8  # bisections of the rate of a second round


def build_geo_grid(area: Area, budget: Budget, parameter: int | None = None) -> Mechanism:
    """Budgets are per cell side.

    On small grids a second round at the rate of one report would leave much of it unused: there it has the largest rate
    with which the whole channel keeps that of one report.
    """
    _check(area, budget)
    if area.inside is not None:
        raise InfeasibleError(
            "geo-grid moves places over the whole grid, and only some of its cells are inside",
            "use mechanism: auto or geo-tight, or leave inside out",
        )
    columns, rows = area.columns, area.rows
    first, second = PlanarRound(columns, rows, budget.inf), None
    if budget.one is not None:
        rate = budget.one
        if area.k <= ENUMERATED:
            rate = largest_second(first, budget.one, lambda rate: PlanarRound(columns, rows, rate))
        second = PlanarRound(columns, rows, rate, through=budget.one)
    return Mechanism("geo-grid", Plane(area.k, columns, rows, f"{columns} x {rows} cells"), first, second)


def build_geo_tight(area: Area, budget: Budget, parameter: int | None = None) -> Mechanism:
    """Budgets are per cell side. Round 2 is the largest of its family with which the whole channel keeps the budget."""
    _check(area, budget)
    first, second = weighed(area, budget.inf), None
    if budget.one is not None:
        found = weighed(area, largest_second(first, budget.one, lambda rate: weighed(area, rate)))
        second = WeighedRound(area, found.slope, found.masses, found.rate, through=budget.one)
    detail = f"{area.k} cells, {', then '.join(map(_kind, [first, *([second] if second else [])]))}"
    return Mechanism("geo-tight", Plane(area.k, area.columns, area.rows, detail), first, second)


def _kind(noise: WeighedRound) -> str:
    return "tight" if noise.tight else f"exponential at {noise.slope / noise.rate:.0%} of the rate"


def largest_second(first: PlaceRound, one: float, make: Callable[[float], PlaceRound]) -> float:
    """The largest rate of a second round with which one report keeps `one`, up to a 250th part; all are enumerated."""

    def keeps(rate: float) -> bool:
        return composed(first, make(rate)) <= one * SPARE

    low = one
    while not keeps(low):
        low /= 2  # ends: a report is never worth more than its own rate times the widest distance
    high = 2 * low
    while high < MOST_RATE and keeps(high):
        low, high = high, 2 * high
    for _ in range(SECONDS):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def composed(first: PlaceRound, second: PlaceRound) -> float:
    """What a cell side costs in one report of both rounds: the largest over any two cells and all reports.

    >>> round(composed(PlanarRound(8, 6, 1.0), PlanarRound(8, 6, 0.5)), 4)
    0.4433
    """
    logs, worst = np.log(first.matrix @ second.matrix), 0.0
    apart = first.area.distances + np.diag(np.full(first.k, np.inf))
    room = np.empty_like(logs)
    for cell, far in enumerate(apart):
        np.subtract(logs, logs[cell], out=room)
        worst = max(worst, float((room.max(axis=1) / far).max()))
    return worst


def _check(area: Area, budget: Budget) -> None:
    for rate in (budget.inf, budget.one):
        if rate is not None and not LEAST_RATE <= rate <= MOST_RATE:
            raise InfeasibleError(
                f"a cell side of distance costs {rate:.3g}; possible are {LEAST_RATE} to {MOST_RATE:g}",
                "choose larger cells, or a higher level" if rate < LEAST_RATE else "choose smaller cells or more noise",
            )


GEO_GRID = MechanismRecord(
    "geo-grid",
    "a place on a grid is moved: near places are confused, far ones less",
    one_round=build_geo_grid,
    two_rounds=build_geo_grid,
    needs_grid=True,
)
GEO_TIGHT = MechanismRecord(
    "geo-tight",
    "the same inside an area of any shape: no report is outside of it, and the whole budget is used; where the tight "
    "mechanism does not exist, because cells are small against the noise, the exponential mechanism with weights",
    one_round=build_geo_tight,
    two_rounds=build_geo_tight,
    needs_grid=True,
    max_values=MOST_WEIGHED,
)
