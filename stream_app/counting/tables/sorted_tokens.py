"""The tokens seen in one period, as sorted arrays: 8 bytes for each, by numpy alone.

Each batch becomes an array, and is merged with the one before it unless that is much larger. So there are few arrays:
at most seven with a million tokens. Tokens are looked up in order, and what is next to each other is in the processor's
cache.
"""

import numpy as np

from protocols.arrays import Mask, Tokens

MERGED = 8
"""An array is merged with the next one unless it has more than this many times as many tokens."""


class SortedTokens:
    """A growing set of tokens.

    >>> seen = SortedTokens()
    >>> seen.insert(np.array([5, 5, 9], dtype=np.uint64)).tolist()
    [True, False, True]
    >>> seen.insert(np.array([9, 7], dtype=np.uint64)).tolist(), len(seen)
    ([False, True], 3)
    """

    def __init__(self) -> None:
        self._arrays: list[Tokens] = []  # each sorted, without repeats; large ones first

    def __len__(self) -> int:
        return sum(len(array) for array in self._arrays)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays)

    def insert(self, tokens: Tokens) -> Mask:
        """Add tokens, and return which of them are new. Of equal tokens in a batch only the first is new."""
        once, firsts = np.unique(tokens, return_index=True)
        unseen = np.ones(len(once), dtype=np.bool_)
        for array in self._arrays:
            places = np.searchsorted(array, once)
            unseen &= array[np.minimum(places, len(array) - 1)] != once
        new = np.zeros(len(tokens), dtype=np.bool_)
        new[firsts[unseen]] = True
        self._add(once[unseen])
        return new

    def reserve(self, more: int) -> None:
        """Nothing is gained by it."""

    def _add(self, tokens: Tokens) -> None:
        if not len(tokens):
            return
        self._arrays.append(tokens)
        while len(self._arrays) > 1 and len(self._arrays[-2]) <= MERGED * len(self._arrays[-1]):
            last = self._arrays.pop()
            both = np.concatenate([self._arrays.pop(), last])
            both.sort(kind="stable")  # finds what is sorted already, and merges it
            self._arrays.append(both)
