"""Noise on places, once and with a memo: a place on a grid is protected by distance (PROTOCOLS 10)."""

from dataclasses import dataclass

from protocols.errors import InfeasibleError
from protocols.mechanisms.encodings import Direct
from protocols.mechanisms.mechanism import Budget, Mechanism
from protocols.mechanisms.places.area import Area
from protocols.mechanisms.places.displacement import PlanarRound
from protocols.mechanisms.places.fitting import is_tight, largest_second, weighed
from protocols.mechanisms.places.law import LEAST_RATE, MOST_RATE
from protocols.mechanisms.places.weighing import WeighedRound
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


def build_geo_grid(area: Area, budget: Budget) -> Mechanism:
    """Budgets are per cell side.

    A second round that is displaced at the rate of one report keeps it: moving to the nearest cell inside brings no two
    cells further apart, so whatever the memo is, a report keeps that rate. On small grids that would leave much of it
    unused, so the second rate is the largest one with which the whole channel still keeps it.
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


def build_geo_tight(area: Area, budget: Budget) -> Mechanism:
    """Budgets are per cell side. Round 2 is the largest of its family with which the whole channel keeps the budget."""
    _check(area, budget)
    first, second = weighed(area, budget.inf), None
    if budget.one is not None:
        found = weighed(area, largest_second(first, budget.one, lambda rate: weighed(area, rate)))
        second = WeighedRound(area, found.slope, found.masses, found.rate, through=budget.one)
    detail = f"{area.k} cells, {', then '.join(map(_kind, [first, *([second] if second else [])]))}"
    return Mechanism("geo-tight", Plane(area.k, area.columns, area.rows, detail), first, second)


def _kind(noise: WeighedRound) -> str:
    return "tight" if is_tight(noise) else f"exponential at {noise.slope / noise.rate:.0%} of the rate"


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
    on_grid=build_geo_grid,
)
GEO_TIGHT = MechanismRecord(
    "geo-tight",
    "the same inside an area of any shape: no report is outside of it, and the whole budget is used; where the tight "
    "mechanism does not exist, because cells are small against the noise, the exponential mechanism with weights",
    on_grid=build_geo_tight,
    max_values=MOST_WEIGHED,
)
