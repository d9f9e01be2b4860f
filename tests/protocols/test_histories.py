"""Losses between any two histories, held against going through every history, memo and answer."""

from __future__ import annotations

from itertools import product
from math import log, prod

import numpy as np
import pytest

from protocols.mechanisms.catalogue import build
from protocols.mechanisms.mechanism import Budget, Mechanism
from protocols.mechanisms.rounds import Flip
from protocols.privacy.histories import any_loss, held, second_round_loss
from protocols.privacy.linked import loss, loss_of_values
from tests.helpers.enumeration import history_distribution, whole_loss
from tests.helpers.surveys import of_size, scheme_with

BUDGET = Budget(1.0, 0.5)


def symbol_chance(mechanism: Mechanism, answers: tuple[int, ...], history: tuple[int, ...]) -> float:
    """The chance of answers under a history of cells: memos of different cells are independent."""
    first, second = mechanism.first, mechanism.second
    assert isinstance(first, Flip) and isinstance(second, Flip)
    k = mechanism.encoding.memo.count
    total = 0.0
    cells = sorted(set(history))
    for memos in product(range(k), repeat=len(cells)):
        memo = dict(zip(cells, memos, strict=True))
        drawn = prod(first.p if memo[cell] == cell else first.q for cell in cells)
        sent = prod(second.p if a == memo[c] else second.q for a, c in zip(answers, history, strict=True))
        total += drawn * sent
    return total


@pytest.mark.parametrize("name", ["l-grr", "l-osue", "l-sue", "loloha", "l-geometric"])
def test_the_bound_for_many_reports_lies_above_every_exact_figure(name: str) -> None:
    mechanism = build(name, 5, Budget(2.0, 1.0))
    for t in (2, 3):
        found, _ = any_loss(mechanism, t)
        assert loss(mechanism, t) - 1e-12 <= found <= t * second_round_loss(mechanism) + 1e-12


def test_histories_that_return_at_other_times_are_further_apart_than_a_renaming() -> None:
    """x, y, x against x, y, z with n linked reports a segment: what c * eps_inf does not bound."""
    mechanism = build("l-grr", 3, BUDGET)

    def apart(n: int) -> float:
        back, on = (0,) * n + (1,) * n + (0,) * n, (0,) * n + (1,) * n + (2,) * n
        return log(symbol_chance(mechanism, on, on) / symbol_chance(mechanism, on, back))

    assert loss_of_values(mechanism, 3) == pytest.approx(3.0)
    assert [round(apart(n), 1) for n in (5, 20)] == [5.9, 26.2]
    assert apart(20) < any_loss(mechanism, 60)[0]


@pytest.mark.parametrize("cap", [None, 2])
def test_a_renaming_of_cells_loses_eps_inf_for_each_cell_even_if_values_return(cap: int | None) -> None:
    mechanism = build("l-grr", 3, BUDGET)
    for history in product(range(3), repeat=3):
        cells = len(set(held(history, cap)))
        for renamed in ((1, 2, 0), (1, 0, 2), (0, 2, 1)):
            other = tuple(renamed[cell] for cell in history)
            for answers in product(range(3), repeat=3):
                one, two = (symbol_chance(mechanism, answers, held(h, cap)) for h in (history, other))
                assert log(one / two) <= loss_of_values(mechanism, cells) + 1e-12


def test_a_renaming_of_values_whose_hashes_collide_loses_more_than_a_renaming_of_cells() -> None:
    """Two values each, 20 reports a segment: one hash keeps the first two apart and sends the others to one cell."""
    mechanism = build("loloha", 8, Budget(1.0, 0.5))
    hashes = mechanism.encoding.cells
    apart = joined = (0, 0)
    for trait in range(mechanism.encoding.family):
        cells = [int(hashes(np.array([value]), np.array([trait]))[0]) for value in range(4)]
        if cells[0] != cells[1] and cells[2] == cells[3]:
            apart, joined = (cells[0], cells[1]), (cells[2], cells[3])
    assert apart[0] != apart[1] and joined[0] == joined[1]
    reports = [cell for cell in apart for _ in range(20)]
    other = [cell for cell in joined for _ in range(20)]
    ratio = log(
        symbol_chance(mechanism, tuple(reports), tuple(reports))
        / symbol_chance(mechanism, tuple(reports), tuple(other))
    )
    assert loss_of_values(mechanism, 2) == pytest.approx(2.0)
    assert 10 * loss_of_values(mechanism, 2) < ratio < any_loss(mechanism, 40)[0]


@pytest.mark.parametrize("k", [2, 3])
def test_hashes_to_more_symbols_than_there_are_values_have_a_bound(k: int) -> None:
    mechanism = build("loloha", k, Budget(6.0, 4.0))
    assert mechanism.encoding.memo.count > k
    found, exact = any_loss(mechanism, 2)
    assert not exact
    scheme = scheme_with(of_size(k, mechanism="loloha"), eps_inf=6.0, eps_1=4.0)
    assert whole_loss(history_distribution(scheme, 2)) <= found + 1e-12
