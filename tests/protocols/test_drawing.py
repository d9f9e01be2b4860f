"""A device draws the same in any selection of devices, and the same words as are defined."""

from __future__ import annotations

import numpy as np
import pytest

from lab.seeded_keyrings import seeded_keyring
from protocols.randomness.keystream import blocks_alone
from protocols.randomness.sampling import Table, eight_bits, invert


@pytest.mark.parametrize("count", range(1, 30))
def test_a_device_alone_takes_as_many_blocks_as_its_words_can_touch(count: int) -> None:
    touched = [(first + count - 1) // 8 - first // 8 + 1 for first in range(0, 8 * count, count)]
    assert blocks_alone(count) == max(touched)


def test_the_spare_bits_of_the_last_byte_are_cleared_and_no_others() -> None:
    draws = seeded_keyring(1).draws(("a",), np.arange(500, dtype=np.uint64))
    every, cleared = (eight_bits(0.4, 0.9).sample(draws, 3, spare=spare) for spare in (0, 0xF0))
    assert (cleared == every & np.array([255, 255, 15], dtype=np.uint8)).all() and (every[:, 2] > 15).any()


def test_cuts_are_inverted_as_defined() -> None:
    rng = np.random.default_rng(1)
    cuts = np.sort(rng.integers(0, 1 << 64, (5, 300), dtype=np.uint64))
    rows, words = rng.integers(0, 5, 4000), rng.integers(0, 1 << 64, 4000, dtype=np.uint64)
    words[:300] = cuts[rows[:300], np.arange(300)]  # exactly on a cut
    found = invert(cuts, rows, words)
    assert found.tolist() == [int((cuts[row] <= word).sum()) for row, word in zip(rows, words, strict=True)]


@pytest.mark.parametrize("count", [1, 2, 5, 13])
@pytest.mark.parametrize("cells", [False, True], ids=["one tweak", "a tweak each"])
def test_any_selection_of_devices_in_any_order_draws_what_each_draws_alone(count: int, cells: bool) -> None:
    rng = np.random.default_rng(2)
    table = Table(rng.random(50), rng.random(50))  # leaves many words that need further bits
    low = np.uint64(1 << 40)
    selections = [
        np.arange(3, 3 * 2048, dtype=np.uint64),  # in a row
        np.arange(2048, dtype=np.uint64) + np.uint64((1 << 63) + 5),
        np.arange(2048, dtype=np.uint64)[::-1] + np.uint64((1 << 63) + 5),
        np.arange(3, 3 * 2048, dtype=np.uint64)[rng.random(3 * 2048 - 3) < 0.7],  # many neighbours
        rng.permutation(np.arange(2 * 2048, dtype=np.uint64)),
        rng.integers(0, 1 << 64, 2048, dtype=np.uint64),  # no neighbours
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
