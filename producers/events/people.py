"""Persons become devices as soon as they are read, by a hash under the operator's key."""

import hashlib

import numpy as np
import pyarrow as pa

from protocols.arrays import Devices, Words
from protocols.randomness import Keyring

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

    def add(self, numbers: Words) -> None:
        if not self.exact:
            numbers = numbers[numbers < self._smallest[-1]]
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
        """The device of each person, from the text of the identifier, which is not empty."""
        coded = persons.dictionary_encode()  # people return: each is hashed once in a batch
        persons, key = coded.dictionary.to_pylist(), self._key
        digests = [hashlib.blake2b(person.encode(), key=key, digest_size=8).digest() for person in persons]
        devices = np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
        self.seen.add(devices)
        found: Devices = devices[np.asarray(coded.indices)]
        return found
