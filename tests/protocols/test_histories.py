"""Losses between any two histories, held against going through every history, memo and answer."""

from __future__ import annotations

from itertools import product
from math import inf, isinf, log, prod

import pytest

from protocols.mechanisms.catalogue import build
from protocols.mechanisms.mechanism import Budget, Mechanism
from protocols.mechanisms.rounds import Flip
from protocols.privacy.histories import any_loss, held, second_round_loss
from protocols.privacy.linked import loss, loss_of_values

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


def bits_chance(mechanism: Mechanism, answers: tuple[tuple[int, ...], ...], history: tuple[int, ...]) -> float:
    first, second = mechanism.first, mechanism.second
    assert isinstance(first, Flip) and isinstance(second, Flip)
    k = mechanism.k
    cells, total = sorted(set(history)), 1.0
    for bit in range(k):
        of_bit = 0.0
        for memos in product((0, 1), repeat=len(cells)):
            memo = dict(zip(cells, memos, strict=True))
            drawn = prod(_bit(first, cell == bit, memo[cell]) for cell in cells)
            sent = prod(_bit(second, bool(memo[c]), a[bit]) for a, c in zip(answers, history, strict=True))
            of_bit += drawn * sent
        total *= of_bit
    return total


def _bit(flip: Flip, up: bool, seen: int) -> float:
    one = flip.p if up else flip.q
    return one if seen else 1 - one


@pytest.mark.parametrize("cap", [None, 1, 2])
@pytest.mark.parametrize("t", [1, 2, 3])
@pytest.mark.parametrize("k", [2, 3])
def test_symbols_lose_exactly_what_going_through_every_history_finds(k: int, t: int, cap: int | None) -> None:
    mechanism = build("l-grr", k, BUDGET)
    histories = {held(history, cap) for history in product(range(k), repeat=t)}
    worst = max(
        log(max(chances) / min(chances))
        for answers in product(range(k), repeat=t)
        if (chances := [symbol_chance(mechanism, answers, history) for history in histories])
    )
    found, exact = any_loss(mechanism, t, cap)
    assert exact
    assert found == pytest.approx(worst, abs=1e-12)


@pytest.mark.parametrize("cap", [None, 1, 2])
@pytest.mark.parametrize("name", ["l-osue", "l-sue", "l-oue"])
@pytest.mark.parametrize("t", [1, 2])
def test_bits_lose_exactly_what_going_through_every_history_finds(name: str, t: int, cap: int | None) -> None:
    mechanism = build(name, 3, BUDGET)
    histories = {held(history, cap) for history in product(range(3), repeat=t)}
    worst = 0.0
    for answers in product(product((0, 1), repeat=3), repeat=t):
        chances = [bits_chance(mechanism, answers, history) for history in histories]
        worst = max(worst, log(max(chances) / min(chances)))
    found, exact = any_loss(mechanism, t, cap)
    assert exact
    assert found == pytest.approx(worst, abs=1e-12)


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


def test_a_cap_of_one_is_eps_inf_between_any_two_histories() -> None:
    for name in ("l-grr", "l-osue", "l-sue"):
        assert any_loss(build(name, 4, BUDGET), 10_000, cap=1)[0] == pytest.approx(1.0, abs=1e-6)
    for name in ("grr", "oue", "sue"):
        assert any_loss(build(name, 4, Budget(1.0)), 10_000, cap=1) == (pytest.approx(1.0), True)


@pytest.mark.parametrize("name", ["grr", "oue", "loloha", "dbitflip"])
def test_where_the_memo_is_sent_a_change_shows_for_certain(name: str) -> None:
    found, exact = any_loss(build(name, 4, Budget(1.0)), 2)
    assert isinf(found) and exact
    assert any_loss(build(name, 4, Budget(1.0)), 2, cap=3)[0] == inf


def test_a_device_at_its_cap_holds_for_good() -> None:
    assert held((4, 4, 7, 4, 9, 7), cap=2) == (4, 4, 7, 7, 7, 7)
    assert held((4, 7, 4), cap=1) == (4, 4, 4)
    assert held((4, 7, 4), cap=None) == (4, 7, 4)
