"""The tokens seen in one period: a set of non-zero 64-bit numbers at 11 to 19 bytes each, 15 on the average.

Open addressing in an array of words, 0 for an empty slot: a token is in the slot that it hashes to, or in the next one
that is free. It is at most 7/10 full, and grows by 5/3 before it would be fuller. To grow costs more than to insert:
all tokens are moved, to memory that the system clears first. So room is made for as many tokens as the period before
had, or as a record names.

Senders choose tokens, and those of one partition have the same remainder, so the hash has keys that are random in every
process: a sender cannot make tokens collide.

The loops are compiled, in `loops`.
"""

from __future__ import annotations

import secrets

import numpy as np

from protocols.arrays import Mask, Tokens, frozen

SMALLEST = 64
FULL = (7, 10)  # grow beyond this load
GROWTH = (5, 3)


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
        self._slots = np.zeros(SMALLEST, dtype=np.uint64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        return self._slots.nbytes

    def insert(self, tokens: Tokens) -> Mask:
        """Add tokens, and return which of them are new. Of equal tokens in a batch only the first is new."""
        from stream_app.counting.loops import insert

        self.reserve(len(tokens))
        new = np.empty(len(tokens), dtype=np.bool_)
        insert(self._slots, self._keys, frozen(tokens), new)
        self._count += int(np.count_nonzero(new))
        return new

    def reserve(self, more: int) -> None:
        """Make room for more."""
        from stream_app.counting.loops import move

        needed = -(-(self._count + more) * FULL[1] // FULL[0])
        if needed > len(self._slots):
            size = max(needed, len(self._slots) * GROWTH[0] // GROWTH[1])
            held, self._slots = self._slots, np.zeros(size, dtype=np.uint64)
            move(held, self._slots, self._keys)


def load_loops() -> None:
    """Load the compiled loops, or compile them, which takes a few seconds."""
    TokenSet().insert(np.arange(1, SMALLEST + 1, dtype=np.uint64))
