"""Noise on places, once and with a memo: a place on a grid is protected by distance (PROTOCOLS 10)."""

from __future__ import annotations

from protocols.errors import InfeasibleError
from protocols.mechanisms.mechanism import Budget, Mechanism
from protocols.mechanisms.places.displacement import PlanarRound
from protocols.mechanisms.places.encoding import Plane
from protocols.mechanisms.places.law import LEAST_RATE, MOST_RATE
from protocols.mechanisms.record import MechanismRecord


def build_geo_grid(k: int, budget: Budget, parameter: int | None = None) -> Mechanism:
    """Budgets are per cell side; `parameter` is the number of columns.

    The second round is displaced at the rate of one report. Moving to the nearest cell inside brings no two cells
    further apart, so whatever the memo is, a report keeps that rate, and no rate above it would on a large grid.
    """
    columns = parameter or k
    rows = k // columns
    if columns * rows != k or min(columns, rows) < 2:
        raise ValueError(f"{k} cells in {columns} columns are no grid")
    for rate in (budget.inf, budget.one):
        if rate is not None and not LEAST_RATE <= rate <= MOST_RATE:
            raise InfeasibleError(
                f"a cell side of distance costs {rate:.3g}; possible are {LEAST_RATE} to {MOST_RATE:g}",
                "choose larger cells, or a higher level" if rate < LEAST_RATE else "choose smaller cells or more noise",
            )
    second = None if budget.one is None else PlanarRound(columns, rows, budget.one)
    return Mechanism("geo-grid", Plane(columns, rows), PlanarRound(columns, rows, budget.inf), second)


GEO_GRID = MechanismRecord(
    "geo-grid",
    "a place on a grid is moved: near places are confused, far ones less",
    one_round=build_geo_grid,
    two_rounds=build_geo_grid,
    needs_grid=True,
)
