"""The tokens seen in one period: a set of non-zero 64-bit numbers at 11 to 19 bytes each, 15 on the average.

Open addressing in a plain array of words, 0 for an empty slot, at most 7/10 full, and 5/3 as large whenever it would be
fuller. Slots are filled line by line of the processor's cache, each from its beginning: a token is in its own line, or
in the next if that is full, and so on. Tokens are the sender's to choose, and those of one partition share their
remainder, so a line comes from a mix with keys that are random in every process: nobody outside can make tokens
collide.

`insert` runs the compiled kernel; `insert_plainly` is its twin in numpy, which a test holds it equal to.
"""

from __future__ import annotations

import secrets

import numpy as np
from numpy.typing import NDArray

from protocols.arrays import frozen
from stream_app.counting.cache_lines import SLOTS_PER_LINE

Tokens = NDArray[np.uint64]
Mask = NDArray[np.bool_]

SMALLEST = 8  # lines
FULL = (7, 10)  # grow beyond this load
GROWTH = (5, 3)
EMPTY = np.uint64(0)
HALF = np.uint64(32)


class TokenSet:
    """A growing set of tokens.

    >>> seen = TokenSet()
    >>> seen.insert(np.array([5, 5, 9], dtype=np.uint64)).tolist()
    [True, False, True]
    >>> seen.insert(np.array([9, 7], dtype=np.uint64)).tolist(), len(seen)
    ([False, True], 3)
    """

    def __init__(self) -> None:
        self._keys = np.frombuffer(secrets.token_bytes(24), dtype=np.uint64) | np.uint64(1)
        self._slots = _empty(SMALLEST)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        return self._slots.nbytes

    def insert(self, tokens: Tokens) -> Mask:
        """Add tokens, and say which were not there before. Of equal ones in a batch only the first is new."""
        from stream_app.counting.loops import insert

        self.reserve(len(tokens))
        new = np.empty(len(tokens), dtype=np.bool_)
        insert(self._slots, self._keys, frozen(tokens), new)
        self._count += int(np.count_nonzero(new))
        return new

    def insert_plainly(self, tokens: Tokens) -> Mask:
        """The same, in numpy."""
        self.reserve(len(tokens))
        distinct, first = np.unique(tokens, return_index=True)
        new = np.zeros(len(tokens), dtype=np.bool_)
        table = self._slots.reshape(-1, SLOTS_PER_LINE)
        lines = _lines(distinct, self._keys, len(table))
        while len(distinct):
            found = table[lines]
            seen, full = (found == distinct[:, None]).any(axis=1), found.all(axis=1)
            room = np.flatnonzero(~seen & ~full)
            room = room[np.unique(lines[room], return_index=True)[1]]  # of several that want one line, one gets it
            table[lines[room], (found[room] != EMPTY).sum(axis=1)] = distinct[room]
            new[first[room]] = True
            lines = (lines + (full & ~seen)) % len(table)
            seen[room] = True
            distinct, first, lines = distinct[~seen], first[~seen], lines[~seen]
        self._count += int(new.sum())
        return new

    def expect(self, more: int) -> None:
        """Make room for so many more, and for others that will follow: growing just then would cost as much again."""
        self.reserve(more * GROWTH[0] // GROWTH[1])

    def reserve(self, more: int) -> None:
        """Make room for so many more at once."""
        from stream_app.counting.loops import move

        needed = -(-(self._count + more) * FULL[1] // (FULL[0] * SLOTS_PER_LINE))
        lines = len(self._slots) // SLOTS_PER_LINE
        if needed > lines:
            held, self._slots = self._slots, _empty(max(needed, lines * GROWTH[0] // GROWTH[1]))
            move(held, self._slots, self._keys)


def load_loops() -> None:
    """Load the compiled loops, or compile them, which takes a second or several."""
    TokenSet().insert(np.arange(1, SMALLEST * SLOTS_PER_LINE + 1, dtype=np.uint64))


def _empty(lines: int) -> Tokens:
    """Slots of which each eight are one line of the cache."""
    words = np.zeros((lines + 1) * SLOTS_PER_LINE, dtype=np.uint64)
    start = -words.ctypes.data // words.itemsize % SLOTS_PER_LINE
    return words[start : start + lines * SLOTS_PER_LINE]


def _lines(tokens: Tokens, keys: Tokens, count: int) -> NDArray[np.int64]:
    """Where each token's search begins: two keyed multiplications, then the upper half scaled to the table."""
    mixed = (tokens ^ keys[0]) * keys[1]
    mixed = (mixed ^ (mixed >> HALF)) * keys[2]
    return np.asarray(((mixed >> HALF) * np.uint64(count)) >> HALF, dtype=np.int64)
