"""Places on a grid or inside an area: the table, a report, the estimate of a period, and how each grows with cells."""

from __future__ import annotations

from time import process_time

import numpy as np

from analytics.estimation.places import fit_places
from bench._tables import Table
from hearsay.running.seeded_keyrings import seeded_keyring
from protocols.mechanisms import RECORDS, Area, Budget, PlaceRound, PlanarChannel

SIDES = (16, 32, 64, 128, 256)  # four times as many cells each
INSIDE = (100, 400)  # cells of an area, of which a grid has a third more
RATE, DEVICES, REPORTS = 1.0, 200_000, 100_000


def run() -> Table:
    columns = ("noise", "cells", "table, s", "report, ns", "estimate with intervals, s", "steps")
    found = Table(f"Places, rate {RATE:g}, {REPORTS:,} reports, on one core", columns)
    for side in SIDES:
        found.row("geo-grid", f"{side} x {side}", *_measured("geo-grid", Area(side, side)))
    for cells in INSIDE:
        found.row("geo-tight", f"{cells} inside", *_measured("geo-tight", _area(cells)))
    found.remarks.append("the table includes loading compiled loops, for the first row")
    return found


def _measured(name: str, area: Area) -> tuple[str, ...]:
    """Seconds for the table, nanoseconds for a report, seconds for an estimate, and its steps."""
    before, build = process_time(), RECORDS[name].on_grid
    assert build is not None, "mechanisms of places are built on grids"
    noise = build(area, Budget(RATE)).first
    assert isinstance(noise, PlaceRound)
    devices = np.arange(DEVICES, dtype=np.uint64)
    cells = devices.astype(np.int64) % noise.cells
    noise.sample(cells[:4096], seeded_keyring(0).draws(("bench",), devices[:4096]))
    table = process_time() - before
    before = process_time()
    noise.sample(cells, seeded_keyring(1).draws(("bench",), devices))
    report = (process_time() - before) / DEVICES
    channel = PlanarChannel((noise,))
    counts = np.random.default_rng(0).multinomial(REPORTS, channel.support(_towns(noise.area)))
    before = process_time()
    fit = fit_places(counts, channel)
    return f"{table:.2f}", f"{1e9 * report:.0f}", f"{process_time() - before:.2f}", str(fit.steps)


def _area(cells: int) -> Area:
    """A grid without the cells that are furthest from its middle."""
    side = round((cells * 4 / 3) ** 0.5)
    positions = Area(side, side).positions
    order = np.square(positions - (side - 1) / 2).sum(axis=1).argsort(kind="stable")
    return Area(side, side, tuple(np.sort(order[:cells]).tolist()))


def _towns(area: Area) -> np.ndarray:
    y, x = (area.positions / area.rows).T
    shares = np.full(area.k, 0.1 / area.k)
    for place, size in ((0.3, 0.05), (0.6, 0.1), (0.7, 0.02)):
        bell = np.exp(-((x - place) ** 2 + (y - 1 + place) ** 2) / 2 / size**2)
        shares += 0.3 * bell / bell.sum()
    return np.asarray(shares / shares.sum())
