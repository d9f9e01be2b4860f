"""The tokens seen in one period, as a table with compiled loops: 11 to 19 bytes for each, 15 on the average.

Open addressing in an array of words, 0 for an empty slot. It is at most 7/10 full, and grows by 5/3 before it would be
fuller. To grow costs more than to insert: all tokens are moved, to memory that the system clears first. So room is made
for as many tokens as the period before had, or as a record names.

Slots are grouped by lines of the processor's cache, each filled from its beginning: a token is in the line that it
hashes to, or in the next one if that is full, and so on. Senders choose tokens, and those of one partition have the
same remainder, so the hash has keys that are random in every process: a sender cannot make tokens collide.

Import this module at the first use and not before: importing numba takes longer than most commands do.
"""

import secrets

import numpy as np

from protocols.arrays import Mask, Tokens
from protocols.arrays.compiling import frozen
from stream_app.counting.tables import SLOTS_PER_LINE
from stream_app.counting.tables.compiled_loops import insert, move

SMALLEST = 8  # lines
FULL = (7, 10)  # grow beyond this load
GROWTH = (5, 3)


class TokenTable:
    """A growing set of tokens.

    >>> seen = TokenTable()
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
        """Add tokens, and return which of them are new. Of equal tokens in a batch only the first is new."""
        self.reserve(len(tokens))
        new = np.empty(len(tokens), dtype=np.bool_)
        insert(self._slots, self._keys, frozen(tokens), new)
        self._count += int(np.count_nonzero(new))
        return new

    def reserve(self, more: int) -> None:
        """Make room for more."""
        needed, lines = _lines(self._count + more), len(self._slots) // SLOTS_PER_LINE
        if needed > lines:
            held, self._slots = self._slots, _empty(max(needed, lines * GROWTH[0] // GROWTH[1]))
            move(held, self._slots, self._keys)


def _lines(tokens: int) -> int:
    """How many lines so many tokens take."""
    return -(-tokens * FULL[1] // (FULL[0] * SLOTS_PER_LINE))


def _empty(lines: int) -> Tokens:
    """Empty slots, aligned so that the slots of a line share a line of the cache."""
    words = np.zeros((lines + 1) * SLOTS_PER_LINE, dtype=np.uint64)
    start = -words.ctypes.data // words.itemsize % SLOTS_PER_LINE
    return words[start : start + lines * SLOTS_PER_LINE]
