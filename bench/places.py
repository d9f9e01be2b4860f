"""Places on a grid: the table, a report, and the estimate of a period, and how each grows with the cells."""

from __future__ import annotations

from time import process_time

import numpy as np

from analytics.estimation.places import fit_places
from bench.tables import Table
from hearsay.running.seeded_keyrings import seeded_keyring
from protocols.mechanisms import PlanarChannel, PlanarRound

SIDES = (16, 32, 64, 128, 256)  # four times as many cells each
RATE, DEVICES, REPORTS = 1.0, 200_000, 100_000


def run() -> Table:
    columns = ("cells", "table, s", "report, ns", "estimate with intervals, s", "steps")
    found = Table(f"Places, rate {RATE:g}, {REPORTS:,} reports, on one core", columns)
    for side in SIDES:
        before = process_time()
        noise = PlanarRound(side, side, RATE)
        devices = np.arange(DEVICES, dtype=np.uint64)
        cells = devices.astype(np.int64) % noise.cells
        noise.sample(cells[:4096], seeded_keyring(0).draws(("bench",), devices[:4096]))
        table = process_time() - before
        before = process_time()
        noise.sample(cells, seeded_keyring(1).draws(("bench",), devices))
        report = (process_time() - before) / DEVICES
        channel = PlanarChannel((noise,))
        counts = np.random.default_rng(0).multinomial(REPORTS, channel.support(_towns(side)))
        before = process_time()
        fit = fit_places(counts, channel)
        seconds = process_time() - before
        found.row(f"{side} x {side}", f"{table:.2f}", f"{1e9 * report:.0f}", f"{seconds:.2f}", str(fit.steps))
    found.remarks.append("the table includes loading compiled loops, for the first row")
    return found


def _towns(side: int) -> np.ndarray:
    y, x = np.divmod(np.arange(side * side), side)
    shares = np.full(side * side, 0.1 / side**2)
    for place, size in ((0.3, 0.05), (0.6, 0.1), (0.7, 0.02)):
        bell = np.exp(-((x / side - place) ** 2 + (y / side - 1 + place) ** 2) / 2 / size**2)
        shares += 0.3 * bell / bell.sum()
    return np.asarray(shares / shares.sum())
