"""The least time that work can take on this machine: each thing it must do, at the rate measured for that thing alone.

Counted while the work runs: bytes of keystream (AES), counters that are written for it, words that become symbols,
those looked up in the table of their own kind, and those that need further bits. The bytes of the columns that it reads
and writes are given.
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

from bench._tables import best_of
from protocols.arrays import frozen
from protocols.randomness import BLOCK, Draws, at_once, counter_loops, drawing_loops, keystream
from protocols.randomness.drawing import NO_EXEMPT, Lookup

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
    """Seconds for a byte of keystream, a counter, a word that becomes a symbol (looked up or searched for, whichever is
    quicker), one of a kind of its own, one that needs further bits, and a byte copied.
    """

    aes: float
    counting: float
    looking: float
    own: float
    resolving: float
    copying: float

    def or_less(self, other: Rates) -> Rates:
        """The better of two measurements of each."""
        return Rates(*map(min, astuple(self), astuple(other)))


@dataclass(frozen=True)
class Needs:
    """Bytes of keystream, counters, words, those of a kind of their own, and those that need further bits."""

    aes: int
    counters: int
    words: int
    own: int
    further: int

    def seconds(self, rates: Rates, traffic: int) -> float:
        """The least time for them and for `traffic` bytes of columns."""
        looked = self.words * rates.looking + self.own * rates.own + self.further * rates.resolving
        return self.aes * rates.aes + self.counters * rates.counting + looked + traffic * rates.copying


def measure() -> Rates:
    draws = Draws(bytes(32), np.zeros(1, dtype=np.uint64), np.zeros(1, dtype=np.uint32))
    counters, room = np.zeros((BLOCKS, 1, 2), dtype="<u8"), np.empty(BLOCKS * BLOCK + BLOCK - 1, dtype=np.uint8)
    devices, cells = frozen(np.arange(BLOCKS, dtype=np.uint64)), frozen(np.arange(BLOCKS) % 100)
    rng = np.random.default_rng(1)
    filled, words = SLOTS - 1, rng.integers(0, SLOTS - 1, ROWS * BYTES, dtype=np.uint16)
    slots = np.sort(rng.integers(0, 256, (9, SLOTS), dtype=np.uint8))
    symbols, left = np.empty((ROWS, BYTES), dtype=np.uint8), np.arange(ROWS * BYTES)[:: ROWS // 16]
    flat, keep, every = symbols.reshape(-1), drawing_loops.kept_bits(symbols, 0), frozen(np.ones(ROWS, dtype=np.bool_))
    table = Lookup(slots, filled, np.sort(rng.integers(0, 1 << 64, (9, 255), dtype=np.uint64)))
    further, none = rng.integers(0, 1 << 64, 2 * len(left), dtype=np.uint64)[::2], np.empty(0, dtype=np.intp)
    target = np.empty(SLOTS * 8, dtype=np.uint8)
    source = frozen(np.ones_like(target))

    def rate(work: Work, size: int) -> float:
        return best_of(60, work, process_time) / size

    def search() -> None:
        at_once.search(words, slots, filled, table.tree, keep, 0, flat, none, 0)

    return Rates(
        rate(lambda: draws._encrypt(counters, room), counters.nbytes),
        rate(lambda: counter_loops.fill_shared(devices, cells, 0, 1, counters), BLOCKS),
        min(
            rate(lambda: drawing_loops.look_up(words, slots, SLOTS, 0, flat, none, 0), len(words)),
            rate(search, len(words)),
        ),
        rate(lambda: drawing_loops.look_up_own(cells, every, words, 0, slots, keep, 0, ROWS, flat), ROWS),
        rate(lambda: drawing_loops.resolve(table.cuts, left, further, *NO_EXEMPT, 0, symbols), len(left)),
        rate(lambda: np.copyto(target, source), 2 * len(target)),
    )


def needs(work: Work) -> Needs:
    """What the work needs, counted while it runs. It has run before: what it keeps is not made again."""
    counts = dict.fromkeys(("aes", "counters", "words", "own", "further"), 0)

    def counted(owner: Any, name: str, what: str, size: Callable[..., int]) -> Any:
        whole = getattr(owner, name)

        def count(*arguments: Any) -> Any:
            counts[what] += size(*arguments)
            return whole(*arguments)

        return patch.object(owner, name, count)

    with ExitStack() as patched:
        patched.enter_context(patch.object(keystream, "wide_aes", lambda: None))  # step by step: the same work
        patched.enter_context(counted(Draws, "_encrypt", "aes", lambda _, counters, *room: counters.nbytes))
        patched.enter_context(counted(counter_loops, "fill_shared", "counters", lambda *a: a[-1].size // 2))
        for name, size in LOOK_UPS.items():
            patched.enter_context(counted(drawing_loops, name, "words", size))
        patched.enter_context(counted(drawing_loops, "look_up_bits", "own", _there))
        patched.enter_context(counted(drawing_loops, "resolve", "further", lambda cuts, left, *_: len(left)))
        work()
    return Needs(**counts)


def _there(
    cells: Any, there: Any, words: Any, slots: Any, filled: int, first: int, symbols: Any, left: Any, found: int
) -> int:
    """How many cells are there, as `look_up_bits` is told."""
    return int(there[first : first + len(words) // symbols.shape[1]].sum())
