"""The least time that work can take on this machine: each thing it must do, at the rate measured for that thing alone.

Counted while the work runs: bytes of keystream (AES), counters that are written for it, words looked up in a sampler's
table, and those looked up in the table of their own kind. The bytes of the columns that it reads and writes are given.
Rates are measured in the same process, by the same loops, on data that fits a core's cache.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import astuple, dataclass
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np

from bench.tables import best_of
from protocols.arrays import frozen
from protocols.randomness import BLOCK, Draws, drawing_loops, keystream

Work = Callable[[], object]
BLOCKS, SLOTS, BYTES, ROWS = 1 << 15, 1 << 16, 13, 1 << 14
LOOK_UPS: dict[str, Callable[..., int]] = {
    "look_up": lambda words, *_: len(words),
    "look_up_either": lambda words, *_: len(words),
    "look_up_from": lambda devices, *rest: len(devices) * rest[-3].shape[1],
    "look_up_bits": lambda cells, there, words, *_: len(words),
}


@dataclass(frozen=True)
class Rates:
    """Seconds for a byte of keystream, a counter, a word looked up, one of a kind of its own, and a byte copied."""

    aes: float
    counting: float
    looking: float
    own: float
    copying: float

    def or_less(self, other: Rates) -> Rates:
        """The better of two measurements of each."""
        return Rates(*map(min, astuple(self), astuple(other)))


@dataclass(frozen=True)
class Needs:
    """Bytes of keystream, counters, words looked up, and those of a kind of their own."""

    aes: int
    counters: int
    words: int
    own: int

    def seconds(self, rates: Rates, traffic: int) -> float:
        """The least time for them and for `traffic` bytes of columns."""
        looked = self.words * rates.looking + self.own * rates.own
        return self.aes * rates.aes + self.counters * rates.counting + looked + traffic * rates.copying


def measure() -> Rates:
    draws = Draws(bytes(32), np.zeros(1, dtype=np.uint64), np.zeros(1, dtype=np.uint32))
    counters, room = np.zeros((BLOCKS, 1, 2), dtype="<u8"), np.empty(BLOCKS * BLOCK + BLOCK - 1, dtype=np.uint8)
    devices, cells = frozen(np.arange(BLOCKS, dtype=np.uint64)), frozen(np.arange(BLOCKS) % 100)
    rng = np.random.default_rng(1)
    words, slots = rng.integers(0, SLOTS, SLOTS, dtype=np.uint16), rng.integers(0, 256, (9, SLOTS), dtype=np.uint8)
    symbols, left = np.empty(SLOTS, dtype=np.uint8), np.empty(SLOTS, dtype=np.intp)
    bits, every = rng.integers(0, SLOTS, ROWS * BYTES, dtype=np.uint16), frozen(np.ones(ROWS, dtype=np.bool_))
    found = np.empty((ROWS, BYTES), dtype=np.uint8)
    start = devices[:ROWS], 0, BYTES, 0
    target = np.empty(SLOTS * 8, dtype=np.uint8)
    source = frozen(np.ones_like(target))

    def rate(work: Work, size: int) -> float:
        return best_of(60, work, process_time) / size

    return Rates(
        rate(lambda: draws._encrypt(counters, room), counters.nbytes),
        rate(lambda: drawing_loops.fill_shared(devices, cells, 0, 1, counters), BLOCKS),
        rate(lambda: drawing_loops.look_up(words, slots, SLOTS, 0, symbols, left, 0), len(words)),
        rate(lambda: drawing_loops.look_up_again(cells[:ROWS], every, *start, bits, slots, 0, found), ROWS),
        rate(lambda: np.copyto(target, source), 2 * len(target)),
    )


def needs(work: Work) -> Needs:
    """What the work needs, counted while it runs. It has run before: what it keeps is not made again."""
    counts = dict.fromkeys(("aes", "counters", "words", "own"), 0)

    def counted(owner: Any, name: str, what: str, size: Callable[..., int]) -> Any:
        whole = getattr(owner, name)

        def count(*arguments: Any) -> Any:
            counts[what] += size(*arguments)
            return whole(*arguments)

        return patch.object(owner, name, count)

    with ExitStack() as patched:
        patched.enter_context(patch.object(keystream, "wide_aes", lambda: None))  # step by step: the same work
        patched.enter_context(counted(Draws, "_encrypt", "aes", lambda _, counters, *room: counters.nbytes))
        patched.enter_context(counted(drawing_loops, "fill_shared", "counters", lambda *a: a[-1].size // 2))
        for name, size in LOOK_UPS.items():
            patched.enter_context(counted(drawing_loops, name, "words", size))
        patched.enter_context(counted(drawing_loops, "look_up_bits", "own", _there))
        work()
    return Needs(**counts)


def _there(
    cells: Any, there: Any, words: Any, slots: Any, filled: int, first: int, symbols: Any, left: Any, found: int
) -> int:
    """How many cells are there, as `look_up_bits` is told."""
    return int(there[first : first + len(words) // symbols.shape[1]].sum())
