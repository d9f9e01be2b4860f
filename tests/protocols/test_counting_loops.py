"""The compiled counting loops count what the reference implementation counts, and refuse what neither can count."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from protocols.arrays.counting import MANY, count_bits, count_ones, count_symbols
from protocols.arrays.counting_loops import BLOCK
from tests.protocols import reference_counting as reference

dtypes = st.sampled_from([np.uint8, np.uint16])
rows = st.integers(0, 2000)


@given(rows, st.integers(2, 300), st.integers(1, 40), dtypes, st.integers(0, 1 << 30))
def test_symbols_are_counted_as_numpy_counts_them(n: int, k: int, size: int, dtype: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    symbols = rng.integers(0, k, n).astype(np.uint16)
    groups = rng.integers(0, size, n).astype(dtype)
    assert np.array_equal(count_symbols(symbols, groups, size, k), reference.count_symbols(symbols, groups, size, k))


@given(
    rows, st.integers(1, 300), st.integers(1, 40), dtypes, st.sampled_from([0.02, 0.5, 1.0]), st.integers(0, 1 << 30)
)
@example(7, 1, 1, np.uint8, 1.0, 0)  # less than a block, less than a byte
@example(2048, 64, 1, np.uint8, 1.0, 0)  # rows that are whole words
@example(65_535, 65, 2, np.uint8, 1.0, 0)  # every level of the adder carries
def test_bits_are_counted_as_numpy_counts_them(n: int, k: int, size: int, dtype: Any, share: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    packed = np.packbits(rng.random((n, k)) < share, axis=1, bitorder="little")
    groups = rng.integers(0, size, n).astype(dtype)
    assert np.array_equal(count_bits(packed, groups, size, k), reference.count_bits(packed, groups, size, k))
    assert np.array_equal(count_ones(packed, k), reference.count_ones(packed, k))


@pytest.mark.parametrize("n", [MANY - 1, MANY, MANY + BLOCK - 1, 65_536 + 64])
@pytest.mark.parametrize("k", [1, 8, 9, 64, 100])
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_bits_of_many_rows_of_one_group_are_counted_as_numpy_counts_them(n: int, k: int, share: float) -> None:
    rng = np.random.default_rng(n)
    packed = np.packbits(rng.random((n, k)) < share, axis=1, bitorder="little")
    groups = np.full(n, 1, dtype=np.uint16)
    assert np.array_equal(count_bits(packed, groups, 3, k), reference.count_bits(packed, groups, 3, k))


def test_vectors_with_bits_beyond_their_length_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 3 bits"):
        count_ones(np.array([[0xFF]], dtype=np.uint8), 3)


def test_columns_that_may_not_be_changed_are_counted_and_not_changed() -> None:
    packed = np.frombuffer(bytes(range(26)), dtype=np.uint8).reshape(2, 13)
    groups = np.frombuffer(bytes([0, 0, 1, 0]), dtype=np.uint16)
    assert np.array_equal(count_bits(packed, groups, 2, 100), reference.count_bits(packed, groups, 2, 100))
    assert count_symbols(packed[:, 1], groups, 2, 15).sum() == 2


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


def test_nothing_is_compiled_until_something_is_counted() -> None:
    """Importing numba takes longer than `--help` should."""
    code = "import sys, protocols.wire; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=240).returncode == 0
