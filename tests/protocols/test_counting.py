"""Symbols and bits are counted by group, and what cannot be counted is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.arrays.columns import count_bits, count_ones, count_symbols


@given(st.integers(0, 300), st.integers(1, 70), st.integers(1, 5), st.integers(0, 1 << 30))
def test_symbols_and_bits_are_counted_as_one_by_one(n: int, k: int, size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    symbols, groups, bits = rng.integers(0, k, n), rng.integers(0, size, n), rng.random((n, k)) < 0.3
    counts, ones, widths = np.zeros((size, k)), np.zeros((size, k)), np.zeros(k + 1)
    for symbol, group, row in zip(symbols, groups, bits, strict=True):
        counts[group, symbol] += 1
        ones[group] += row
        widths[row.sum()] += 1
    packed = np.packbits(bits, axis=1, bitorder="little")
    assert np.array_equal(count_symbols(symbols.astype(np.uint16), groups.astype(np.uint8), size, k), counts)
    assert np.array_equal(count_bits(packed, groups.astype(np.uint16), size, k), ones)
    assert np.array_equal(count_ones(packed, k), widths)


def test_vectors_with_bits_beyond_their_length_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 3 bits"):
        count_ones(np.array([[0xFF]], dtype=np.uint8), 3)


@pytest.mark.parametrize(
    ("symbols", "groups"), [([0, 3], [0, 0]), ([0, -1], [0, 0]), ([0, 0], [0, 2]), ([0, 0], [-1, 0]), ([0, 0], [0])]
)
def test_what_is_out_of_range_is_refused(symbols: list[int], groups: list[int]) -> None:
    with pytest.raises(ValueError, match=r"one symbol of 0\.\.2 and one group of 0\.\.1"):
        count_symbols(np.array(symbols), np.array(groups), 2, 3)


@pytest.mark.parametrize("groups", [[0, 2], [-1, 0], [0]])
def test_bits_of_a_group_that_does_not_exist_are_refused(groups: list[int]) -> None:
    with pytest.raises(ValueError, match=r"one group of 0\.\.1"):
        count_bits(np.zeros((2, 1), dtype=np.uint8), np.array(groups), 2, 8)
