"""Counts with noise made to agree: the nearest ones that some visitors could have caused."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from analytics.windows import agree
from analytics.windows.agreement import project
from analytics.windows.first_reports import by_gap, first_reports


@pytest.mark.parametrize("seed", range(60))
def test_no_other_whole_numbers_with_the_total_are_nearer(seed: int) -> None:
    random = np.random.default_rng(seed)
    numbers, most = random.integers(-4, 8, 4), random.integers(0, 6, 4)
    total = int(random.integers(0, most.sum() + 1))
    found = project(numbers, most, total)
    assert (found >= 0).all() and (found <= most).all() and found.sum() == total
    others = [np.array(row) for row in product(*(range(m + 1) for m in most)) if sum(row) == total]
    assert ((found - numbers) ** 2).sum() == min(((other - numbers) ** 2).sum() for other in others)


def test_cells_that_agree_stay_as_they_are() -> None:
    random, horizon = np.random.default_rng(5), 4
    last, before = np.full(200, -horizon), None
    for period in range(12):
        there = np.flatnonzero(random.random(200) < 0.4)
        cells = np.bincount(np.minimum(period - last[there], horizon) - 1, minlength=horizon)
        last[there] = period
        agreed = agree(cells, int(cells.sum()), before)
        assert agreed.cells.tolist() == cells.tolist()
        before = agreed.left


@pytest.mark.parametrize("seed", range(10))
def test_a_window_has_at_least_the_visitors_of_every_window_inside_it(seed: int) -> None:
    random, horizon, before, rows = np.random.default_rng(seed), 5, None, []
    for _ in range(15):
        noised = random.integers(-30, 40, horizon)
        agreed = agree(noised, max(0, int(noised.sum())), before)
        rows.append(agreed.cells)
        before = agreed.left
    periods = by_gap(np.array(rows))
    for start, length in product(range(14), range(1, horizon)):
        if start + length < 15:
            longer = first_reports(periods, start, length + 1)
            assert longer >= first_reports(periods, start, length), "the same beginning"
            assert longer >= first_reports(periods, start + 1, length), "the same end"
