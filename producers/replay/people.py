"""Persons become devices as soon as they are read, by a hash under the operator's key."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from protocols.randomness import Devices, Keyring

SKETCH = 1 << 16


class Distinct:
    """Counts the different ones of many random 64-bit numbers, in bounded memory.

    The count is exact below `size`, and beyond has a relative standard error of one over the root of `size`: numbers
    are uniform, so how many there are follows from the largest of the `size` smallest ones.

    >>> few = Distinct(4)
    >>> few.add(np.array([7, 9, 7], dtype=np.uint64))
    >>> few.count(), few.exact
    (2, True)
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._smallest = np.empty(0, dtype=np.uint64)

    def add(self, numbers: NDArray[np.uint64]) -> None:
        self._smallest = np.unique(np.concatenate([self._smallest, numbers]))[: self._size]

    @property
    def exact(self) -> bool:
        return len(self._smallest) < self._size

    def count(self) -> int:
        return len(self._smallest) if self.exact else round((self._size - 1) * 2**64 / int(self._smallest[-1]))


class People:
    """Turns identifiers into device indices, and counts how many different ones there were."""

    def __init__(self, keyring: Keyring) -> None:
        self._key = keyring.key(("person",))
        self.seen = Distinct(SKETCH)

    def devices(self, persons: pa.Array) -> Devices:
        """The device of each person, from the text of the identifier."""
        encoded = persons.dictionary_encode()
        indices = np.array([self._index(person) for person in encoded.dictionary.to_pylist()], dtype=np.uint64)
        self.seen.add(indices)
        return np.asarray(indices[encoded.indices.to_numpy(zero_copy_only=False)])

    def _index(self, person: str) -> int:
        return int.from_bytes(hashlib.blake2b(person.encode(), key=self._key, digest_size=8).digest(), "little")
