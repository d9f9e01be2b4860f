"""The least time that work can take on this machine: its AES, its look-ups and its columns, each at a measured rate.

What the work needs is counted while it runs: bytes of keystream, and words looked up in a sampler's table. The bytes of
the columns that it reads and writes are given. Rates are measured in the same process, on data that fits a core's
cache, so nothing that moves the same data can be faster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np

from bench.tables import best_of
from protocols.arrays import frozen
from protocols.randomness import BLOCK, Draws, drawing
from protocols.randomness.drawing_loops import look_up

Work = Callable[[], object]
BLOCKS, SLOTS = 1 << 15, 1 << 16
LOOK_UP = "protocols.randomness.sampling.look_up"


@dataclass(frozen=True)
class Rates:
    """Seconds for a byte of keystream, for a word looked up, and for a byte that is copied."""

    aes: float
    looking: float
    copying: float


@dataclass(frozen=True)
class Needs:
    """Bytes of keystream, and words looked up."""

    aes: int
    words: int

    def seconds(self, rates: Rates, traffic: int) -> float:
        """The least time for them and for `traffic` bytes of columns."""
        return self.aes * rates.aes + self.words * rates.looking + traffic * rates.copying


def measure() -> Rates:
    draws = Draws(bytes(32), np.zeros(1, dtype=np.uint64), np.zeros(1, dtype=np.uint32))
    counters, room = np.zeros((BLOCKS, 2), dtype="<u8"), np.empty(BLOCKS * BLOCK + BLOCK - 1, dtype=np.uint8)
    rng = np.random.default_rng(1)
    words, slots = rng.integers(0, SLOTS, SLOTS, dtype=np.uint16), rng.integers(0, 256, SLOTS, dtype=np.uint8)
    symbols, left = np.empty(SLOTS, dtype=np.uint8), np.empty(SLOTS, dtype=np.intp)
    target = np.empty(SLOTS * 8, dtype=np.uint8)
    source = frozen(np.ones_like(target))
    return Rates(
        best_of(60, lambda: draws._encrypt(counters, room), process_time) / counters.nbytes,
        best_of(60, lambda: look_up(words, slots, SLOTS, symbols, left), process_time) / len(words),
        best_of(60, lambda: np.copyto(target, source), process_time) / (2 * len(target)),
    )


def needs(work: Work) -> Needs:
    """What the work needs, counted while it runs."""
    encrypt, looking = Draws._encrypt, drawing.look_up
    encrypted, looked = 0, 0

    def counted_encrypt(draws: Draws, counters: Any, room: Any = None) -> Any:
        nonlocal encrypted
        encrypted += counters.nbytes
        return encrypt(draws, counters, room)

    def counted_look_up(*arguments: Any) -> Any:
        nonlocal looked
        looked += arguments[-1].size
        return looking(*arguments)

    with patch.object(Draws, "_encrypt", counted_encrypt), patch(LOOK_UP, counted_look_up):
        work()
    return Needs(encrypted, looked)
