"""The compiled loops of drawing do for many rows what numpy does for few, and both draw the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest

from lab.seeded_keyrings import seeded_keyring
from protocols.randomness import drawing
from protocols.randomness.drawing import (
    MANY,
    Starts,
    blocks_alone,
    clear,
    counter_blocks,
    extremes,
    further_blocks,
    invert,
    look_up,
    resolve,
    shift,
)
from protocols.randomness.keystream import MOST
from protocols.randomness.sampling import Table

SIZES = pytest.mark.parametrize("n", [1, MANY - 1, MANY, MANY + 1])


def same(found: Any, defined: Any) -> bool:
    return bool(found.dtype == defined.dtype and np.array_equal(found, defined))


def in_numpy(work: Callable[..., Any], *arguments: Any) -> Any:
    """The same work as for few rows, however many there are."""
    with mock.patch.object(drawing, "MANY", 1 << 62):
        return work(*arguments)


def some_devices(n: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Devices, and ways to have tweaks: one for all, and one each."""
    rng = np.random.default_rng(n)
    each = rng.integers(0, 1 << 32, n)
    tweaks = [np.broadcast_to(np.uint32(7), n), each, each.astype(np.uint32)]
    return rng.integers(0, 1 << 64, n, dtype=np.uint64), tweaks


@SIZES
def test_counter_blocks_are_as_defined(n: int) -> None:
    devices, ways = some_devices(n)
    left = np.flatnonzero(np.random.default_rng(n).random(3 * n) < 0.3)
    for tweaks in ways:
        for first, blocks, count in ((0, 1, 0), (3 << 24, 3, 0), (3 << 24, blocks_alone(13), 13)):
            asked = devices, tweaks, first, blocks, count
            assert same(counter_blocks(*asked), in_numpy(counter_blocks, *asked))
        further = devices, tweaks, 3 << 24, left, 3
        assert same(further_blocks(*further), in_numpy(further_blocks, *further))


@pytest.mark.parametrize("count", range(1, 30))
def test_a_device_alone_takes_as_many_blocks_as_its_words_can_touch(count: int) -> None:
    touched = [(first + count - 1) // 8 - first // 8 + 1 for first in range(0, 8 * count, count)]
    assert blocks_alone(count) == max(touched)


@SIZES
def test_extremes_are_as_defined(n: int) -> None:
    row = np.arange(n, dtype=np.uint64) + np.uint64(1 << 63)
    for devices in (row, row[::-1], np.append(row, row[0]), some_devices(n)[0]):
        assert extremes(devices) == in_numpy(extremes, devices)
    assert extremes(row) == (1 << 63, (1 << 63) + n - 1, True)


@SIZES
@pytest.mark.parametrize("width", [1, 13])
@pytest.mark.parametrize(("symbols", "filled"), [(200, 65_000), (300, 65_536), (70_000, 0)])
def test_words_are_looked_up_as_defined(n: int, width: int, symbols: int, filled: int) -> None:
    rng = np.random.default_rng(n)
    slots = np.sort(rng.integers(0, symbols, (3, 1 << 16))).astype(np.min_scalar_type(symbols))
    in_order = rng.integers(0, 1 << 16, n * width).astype(np.uint16)
    devices = rng.integers(100, 100 + n, n).astype(np.uint64)
    cells, there = 8 * rng.integers(0, width, n), rng.random(n) < 0.5
    cells += rng.integers(0, 2, n) if width > 1 else 0
    among = rng.integers(0, 1 << 16, n * 8 * blocks_alone(width)).astype(np.uint16)
    for words, starts in (
        (in_order, Starts(devices, 0, width, 0)),
        (in_order, Starts(devices, 100, 0, MOST)),
        (among, Starts(devices, 0, 8 * blocks_alone(width), 7)),
    ):
        for exempt in (None, (cells, there)):
            found, defined = np.zeros((2, n, width), dtype=slots.dtype)
            left, listed = np.zeros((2, found.size), dtype=np.intp)
            size = look_up(slots, filled, words, starts, exempt, 0, found, left, 0)
            assert size == in_numpy(look_up, slots, filled, words, starts, exempt, 0, defined, listed, 0)
            assert same(left[:size], listed[:size]) and same(found, defined)
            cuts, further = np.sort(rng.integers(0, 9, (3, 5))).astype(np.uint64), rng.integers(0, 9, size)
            resolve(cuts, left[:size], further.astype(np.uint64), exempt, found)
            in_numpy(resolve, cuts, left[:size], further.astype(np.uint64), exempt, defined)
            assert same(found, defined)


@pytest.mark.parametrize("count", [1, 3, 13, 200])
@pytest.mark.parametrize("exempt", [False, True])
@pytest.mark.parametrize(
    "chances",
    [
        [1.0, 3.0],  # all slots are filled
        [0.0, 0.0, 1.0, 0.0, 1.5, 1e-9],  # symbols without a slot
        [1e-6, *[1.0] * 99],
        [0.3 ** byte.bit_count() for byte in range(256)],
        [0.999 ** (255 - byte) if byte % 3 else 0.0 for byte in range(256)],
        [1.0] * 300,  # symbols of two bytes
    ],
)
def test_many_rows_draw_what_few_rows_draw_without_the_spare_bits(
    chances: list[float], exempt: bool, count: int
) -> None:
    rng, n, spare = np.random.default_rng(7), MANY + 203, 0b11000000
    own = 8 * rng.integers(0, count, n) + rng.integers(0, 8 if count > 1 else 1, n), rng.random(n) < 0.3
    kinds = 9 if count > 1 else 2
    table = Table(chances, *([*reversed(chances)] for _ in range(kinds - 1)) if exempt else ())
    draws = seeded_keyring(1).draws(("a",), np.arange(5, 5 + n, dtype=np.uint64), 4)
    found = table.sample(draws, count, own if exempt else None, spare)
    defined = in_numpy(table.sample, draws, count, own if exempt else None)
    defined[:, -1] &= ~defined.dtype.type(spare)
    assert same(found, defined)


@SIZES
def test_bits_are_cleared_in_the_last_byte_of_each_row(n: int) -> None:
    column = np.random.default_rng(n).integers(0, 256, (n, 3)).astype(np.uint8)
    kept = column & np.array([255, 255, 15], dtype=np.uint8)
    clear(column, 0xF0)
    assert same(column, kept)


@SIZES
@pytest.mark.parametrize("k", [2, 255, 256, 257, 70_000])
def test_symbols_are_shifted_as_defined(n: int, k: int) -> None:
    rng = np.random.default_rng(n)
    cells, shifts = rng.integers(0, k, n), rng.integers(0, k, n).astype(np.min_scalar_type(k - 1))
    defined = in_numpy(shift, cells, shifts, k)
    assert same(shift(cells, shifts, k), defined)


def test_cuts_are_inverted_as_defined() -> None:
    rng = np.random.default_rng(1)
    cuts = np.sort(rng.integers(0, 1 << 64, (5, 300), dtype=np.uint64))
    rows, words = rng.integers(0, 5, 2 * MANY), rng.integers(0, 1 << 64, 2 * MANY, dtype=np.uint64)
    words[:300] = cuts[rows[:300], np.arange(300)]  # exactly on a cut
    assert same(invert(cuts, rows, words), in_numpy(invert, cuts, rows, words))


@pytest.mark.parametrize("count", [1, 2, 5, 13])
@pytest.mark.parametrize("cells", [False, True], ids=["one tweak", "a tweak each"])
def test_any_selection_of_devices_in_any_order_draws_what_each_draws_alone(count: int, cells: bool) -> None:
    rng = np.random.default_rng(2)
    table = Table(rng.random(50), rng.random(50))  # leaves many words that need further bits
    low = np.uint64(1 << 40)
    selections = [
        np.arange(3, 3 * MANY, dtype=np.uint64),  # in a row
        np.arange(MANY, dtype=np.uint64) + np.uint64((1 << 63) + 5),
        np.arange(MANY, dtype=np.uint64)[::-1] + np.uint64((1 << 63) + 5),
        np.arange(3, 3 * MANY, dtype=np.uint64)[rng.random(3 * MANY - 3) < 0.7],  # many neighbours
        rng.permutation(np.arange(2 * MANY, dtype=np.uint64)),
        rng.integers(0, 1 << 64, MANY, dtype=np.uint64),  # no neighbours
        np.repeat(low, 5),
    ]
    ring = seeded_keyring(9)
    for devices in selections:
        tweaks = (devices % np.uint64(11)).astype(np.int64) if cells else 4
        own, there = 8 * (devices % np.uint64(count)).astype(np.int64), devices % np.uint64(2) == 1
        together = table.sample(ring.draws(("a",), devices, tweaks), count, (own, there))
        for row in (0, 1, len(devices) // 2, len(devices) - 1):
            one = slice(row, row + 1)
            tweak = tweaks[one] if isinstance(tweaks, np.ndarray) else tweaks
            alone = table.sample(ring.draws(("a",), devices[one], tweak), count, (own[one], there[one]))
            assert np.array_equal(alone[0], together[row])
