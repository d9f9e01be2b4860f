"""The tokens seen in one period: a set of non-zero 64-bit numbers at 10 to 16 bytes each.

Open addressing with linear probing in a plain array of words, 0 for an empty slot, at most 5/6 full, and 5/3 as large
whenever it would be fuller. Tokens are the sender's to choose, and those of one partition share their remainder, so a
slot comes from a mix with keys that are random in every process: nobody outside can make tokens collide.

`insert` runs the compiled kernel; `insert_plainly` is its twin in numpy, which a test holds it equal to.
"""

from __future__ import annotations

import secrets

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[np.uint64]
Mask = NDArray[np.bool_]

SMALLEST = 64
FULL = (5, 6)  # grow beyond this load
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
        self._slots: Tokens = np.zeros(SMALLEST, dtype=np.uint64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        return self._slots.nbytes

    def insert(self, tokens: Tokens) -> Mask:
        """Add tokens, and say which were not there before. Of equal ones in a batch only the first is new."""
        from stream_app.loops import insert

        self.reserve(len(tokens))
        view = np.ascontiguousarray(tokens).view()
        view.flags.writeable = False  # one compiled loop serves columns that may and may not be written to
        new = np.empty(len(tokens), dtype=np.bool_)
        insert(self._slots, self._keys, view, new)
        self._count += int(np.count_nonzero(new))
        return new

    def insert_plainly(self, tokens: Tokens) -> Mask:
        """The same, in numpy."""
        self.reserve(len(tokens))
        distinct, first = np.unique(tokens, return_index=True)
        new = np.zeros(len(tokens), dtype=np.bool_)
        places = _places(distinct, self._keys, len(self._slots))
        while len(distinct):
            empty = self._slots[places] == EMPTY
            self._slots[places[empty]] = distinct[empty]  # of several that want one slot, the last gets it
            here = self._slots[places] == distinct
            new[first[here & empty]] = True
            distinct, first = distinct[~here], first[~here]
            places = (places[~here] + 1) % len(self._slots)
        self._count += int(new.sum())
        return new

    def expect(self, more: int) -> None:
        """Make room for so many more, and for others that will follow: growing just then would cost as much again."""
        self.reserve(more * GROWTH[0] // GROWTH[1])

    def reserve(self, more: int) -> None:
        """Make room for so many more at once."""
        from stream_app.loops import move

        needed = -(-(self._count + more) * FULL[1] // FULL[0])
        if needed > len(self._slots):
            held = self._slots
            self._slots = np.zeros(max(needed, len(held) * GROWTH[0] // GROWTH[1]), dtype=np.uint64)
            move(held, self._slots, self._keys)


def load_loops() -> None:
    """Load the compiled loops, or compile them, which takes a second or several."""
    TokenSet().insert(np.arange(1, SMALLEST + 1, dtype=np.uint64))


def _places(tokens: Tokens, keys: Tokens, size: int) -> NDArray[np.int64]:
    """Where each token's search begins: two keyed multiplications, then the upper half scaled to the table."""
    mixed = (tokens ^ keys[0]) * keys[1]
    mixed = (mixed ^ (mixed >> HALF)) * keys[2]
    return np.asarray(((mixed >> HALF) * np.uint64(size)) >> HALF, dtype=np.int64)
