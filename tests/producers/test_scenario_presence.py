"""Combinations of days from unions of days. A failure here would be a count that the combinations do not reproduce, a
combination that the counts forbid, or an answer that assumes more than the counts say."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from producers.scenarios.aggregates import read_aggregates
from producers.scenarios.presence import combinations_from_unions, maximum_entropy, people_seen
from protocols.errors import ScenarioError


def consecutive(days: int) -> list[int]:
    return [sum(1 << day for day in range(first, last + 1)) for first in range(days) for last in range(first, days)]


def counts_of(people: NDArray[np.int64], unions: list[int]) -> dict[int, int]:
    """By brute force: the people of every combination that shares a day with the union."""
    return {union: sum(int(n) for combination, n in enumerate(people) if combination & union) for union in unions}


def festival() -> NDArray[np.int64]:
    return read_aggregates().people_per_combination()


def random_table(days: int, people: int, concentration: float, seed: int) -> NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    return np.concatenate([[0], rng.multinomial(people, rng.dirichlet(np.full(2**days - 1, concentration)))])


def as_a_markov_chain(days: int, counts: dict[int, int]) -> NDArray[np.float64]:
    """The maximum-entropy solution of a full table of consecutive days, in closed form.

    The counts fix how many people go straight from day i to day j (present on both, absent between; day 0 is before
    all, day D + 1 after all). Given these steps, the least informative way to join them is a Markov chain.
    """
    everyone = counts[2**days - 1]

    def absent(first: int, last: int) -> int:
        if first > last:
            return everyone
        return 0 if first < 1 or last > days else everyone - counts[sum(1 << day - 1 for day in range(first, last + 1))]

    def step(i: int, j: int) -> int:
        return absent(i + 1, j - 1) - absent(i, j - 1) - absent(i + 1, j) + absent(i, j)

    people = np.zeros(2**days)
    for combination in range(1, 2**days):
        path = [0, *(day for day in range(1, days + 1) if combination >> day - 1 & 1), days + 1]
        steps = np.prod([float(step(i, j)) for i, j in pairwise(path)])
        people[combination] = steps / np.prod([float(counts[1 << day - 1]) for day in path[1:-1]])
    return people


@pytest.mark.parametrize(
    ("days", "table"),
    [
        pytest.param(7, festival(), id="festival"),
        pytest.param(10, random_table(10, 100_000, 0.3, seed=1), id="ten days"),
        pytest.param(10, random_table(10, 1_000, 0.02, seed=2), id="ten days, most combinations empty"),
        pytest.param(4, random_table(4, 5, 1.0, seed=3), id="five people"),
        pytest.param(1, np.array([0, 12]), id="one day"),
        pytest.param(3, np.zeros(8, dtype=np.int64), id="nobody"),
    ],
)
def test_every_count_of_consecutive_days_comes_out_exactly(days: int, table: NDArray[np.int64]) -> None:
    counts = counts_of(table, consecutive(days))
    found = combinations_from_unions(days, counts)
    assert found.min() >= 0
    assert found[0] == 0
    assert counts_of(found, consecutive(days)) == counts


@pytest.mark.parametrize("table", [festival(), random_table(7, 50_000, 1.0, seed=4)], ids=["festival", "random"])
def test_the_solution_is_the_markov_chain_that_maximum_entropy_demands(table: NDArray[np.int64]) -> None:
    counts = counts_of(table, consecutive(7))
    expected = as_a_markov_chain(7, counts)
    solved = maximum_entropy(people_seen(7, list(counts)).astype(float), np.array(list(counts.values()), dtype=float))
    np.testing.assert_allclose(solved, expected[1:], rtol=1e-6)
    assert np.abs(combinations_from_unions(7, counts) - expected).max() < 1  # rounded down or up, no farther


def test_any_unions_will_do_not_only_consecutive_ones() -> None:
    table = random_table(6, 20_000, 0.3, seed=5)
    unions = [*(1 << day for day in range(6)), 0b111111, 0b100001, 0b010101, 0b101010, 0b110011]
    counts = counts_of(table, unions)
    assert counts_of(combinations_from_unions(6, counts), unions) == counts


def test_nothing_ties_days_together_but_the_counts() -> None:
    """Three fair coins per person, all tails never seen: every combination is equally likely."""
    found = combinations_from_unions(3, {0b001: 500, 0b010: 500, 0b100: 500, 0b111: 875})
    assert found[1:].tolist() == [125] * 7


def test_combinations_that_the_counts_rule_out_stay_empty() -> None:
    """Whoever came on day 2 or day 3 also came on day 1."""
    found = combinations_from_unions(3, {0b001: 80, 0b010: 32, 0b100: 20, 0b111: 80})
    assert found.tolist() == [0, 36, 0, 24, 0, 12, 0, 8]


def test_a_table_with_fractional_solutions_only_gives_way_by_less_than_a_thousandth() -> None:
    # Half of 1001 people in each of four combinations is the one solution of these counts.
    halves = {1: 1, 3: 1, 6: 1, 8: 1, 13: 2, 14: 2, 15: 2, 18: 1, 20: 1, 21: 2, 23: 2, 24: 1, 29: 2, 30: 2, 31: 2}
    counts = {union: 1001 * n for union, n in halves.items()}
    found = counts_of(combinations_from_unions(5, counts), list(counts))
    assert sum(abs(found[union] - n) for union, n in counts.items()) == 1


def test_counts_that_contradict_one_another_are_named_with_what_would_do() -> None:
    counts = counts_of(festival(), consecutive(7))
    counts[0b0001110] = 60_000  # days 2-4 were 50,991; days 1-4 are 57,274
    with pytest.raises(ScenarioError, match=r"another: days 2-4 cannot be 60000 \(5\d\d\d\d would do\)$"):
        combinations_from_unions(7, counts)


def test_without_a_count_of_everyone_the_table_is_refused() -> None:
    with pytest.raises(ScenarioError, match="days 1-2 is missing"):
        combinations_from_unions(2, {0b01: 5, 0b10: 5})


def test_more_than_ten_days_are_refused() -> None:
    with pytest.raises(ScenarioError, match="11 days"):
        combinations_from_unions(11, {2**11 - 1: 5})
