"""Losses between any two histories, held against going through every history, memo and answer."""

from itertools import product
from math import log, prod

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


@pytest.mark.parametrize("k", [2, 3])
def test_hashes_to_more_symbols_than_there_are_values_have_a_bound(k: int) -> None:
    mechanism = build("loloha", k, Budget(6.0, 4.0))
    assert mechanism.encoding.memo.count > k
    found, exact = any_loss(mechanism, 2)
    assert not exact
    scheme = scheme_with(of_size(k, mechanism="loloha"), eps_inf=6.0, eps_1=4.0)
    assert whole_loss(history_distribution(scheme, 2)) <= found + 1e-12
