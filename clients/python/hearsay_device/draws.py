"""Derived randomness, and exact sampling with it (docs/device-protocol.md, "Draws" and "Tables").

Bits are AES-128 on counter blocks, keyed by HMAC-SHA256; tables are integers. No float is compared.
"""

from __future__ import annotations

import hmac
from bisect import bisect_right
from collections.abc import Sequence
from hashlib import sha256
from itertools import accumulate
from struct import pack, unpack

SLOTS, WORD = 1 << 16, 1 << 64


def parts(*texts: str) -> bytes:
    """Texts without ambiguity: of each the length in UTF-8 (4 bytes, little-endian), then its bytes."""
    return b"".join(pack("<I", len(text)) + text for text in map(str.encode, texts))


def hashed(*texts: str) -> str:
    return sha256(parts(*texts)).hexdigest()


def bits_of(number: float) -> str:
    """A double as 16 hexadecimal digits: its IEEE 754 bits, big-endian."""
    return pack(">d", number).hex()


def derived(key: bytes, *purpose: str) -> bytes:
    """The AES key of a purpose."""
    return hmac.digest(key, parts(*purpose), "sha256")[:16]


def next_key(key: bytes) -> bytes:
    """The key of the next period, from which this one's cannot be computed."""
    return hmac.digest(key, b"hearsay next", "sha256")


class Draws:
    """The random bits of one AES key and one tweak; other lanes have other bits."""

    def __init__(self, key: bytes, tweak: int = 0, lane: int = 0) -> None:
        self._key, self._tweak, self._lane = key, tweak, lane

    def fork(self, lane: int) -> Draws:
        return Draws(self._key, self._tweak, lane)

    def longs(self, count: int) -> tuple[int, ...]:
        """Numbers of 64 bits, two to a block."""
        return unpack(f"<{count}Q", self._blocks(0, 0, -(-count // 2))[: 8 * count])

    def words(self, count: int) -> tuple[int, ...]:
        """Numbers of 16 bits, eight to a block."""
        return unpack(f"<{count}H", self._blocks(1, 0, -(-count // 8))[: 2 * count])

    def further(self, place: int) -> int:
        """64 further bits for the word at a place."""
        return int.from_bytes(self._blocks(2, place, 1)[:8], "little")

    def _blocks(self, kind: int, first: int, count: int) -> bytes:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # when it is first needed

        start = ((3 * self._lane + kind) << 24) + first
        counters = b"".join(pack("<QII", 0, self._tweak, start + i) for i in range(count))
        # ECB over counters that all differ is AES-CTR, read in any order.
        cipher = Cipher(algorithms.AES(self._key), modes.ECB()).encryptor()
        return cipher.update(counters) + cipher.finalize()


class Table:
    """One distribution over symbols, or a few of them (kinds) that are drawn with the same words.

    >>> Table([0.75, 0.25]).digest() == Table([3.0, 1.0]).digest()
    True
    """

    def __init__(self, *distributions: Sequence[float]) -> None:
        weights = [whole_numbers(each) for each in distributions]
        totals = [sum(each) for each in weights]
        owned = [[weight * SLOTS // total for weight in each] for each, total in zip(weights, totals)]
        self._filled = min(map(sum, owned))  # the same for all kinds, so that it does not depend on the kind
        self._ends = [[min(end, self._filled) for end in accumulate(each)] for each in owned]
        self._slots = [[end - begin for begin, end in zip([0, *ends], ends)] for ends in self._ends]
        self._cuts = [
            cuts([weight * SLOTS - kept * total for weight, kept in zip(each, slots)])
            for each, slots, total in zip(weights, self._slots, totals)
        ]

    def digest(self) -> str:
        return digest([[*slots, *cut] for slots, cut in zip(self._slots, self._cuts)])

    def sample(self, draws: Draws, count: int, exempt: tuple[int, int] = (0, 0)) -> list[int]:
        """A symbol for each of `count` words; at the place exempt[0] from the distribution of kind exempt[1]."""
        found = []
        for place, word in enumerate(draws.words(count)):
            kind = exempt[1] if place == exempt[0] else 0
            inside = word < self._filled
            ends, drawn = (self._ends, word) if inside else (self._cuts, draws.further(place))
            found.append(bisect_right(ends[kind], drawn))
        return found

    def one(self, draws: Draws, kind: int = 0) -> int:
        return self.sample(draws, 1, (0, kind))[0]


def uniform(count: int) -> Table:
    return Table([1.0] * count)


def digest(rows: Sequence[Sequence[int]], flat: bool = False) -> str:
    """A hash of integers and of their shape; `flat`: of one row, which is a list."""
    found = sha256(f"({len(rows[0])},)".encode() if flat else f"({len(rows)}, {len(rows[0])})".encode())
    for row in rows:
        found.update(pack(f"<{len(row)}Q", *row))
    return found.hexdigest()


def whole_numbers(floats: Sequence[float]) -> list[int]:
    """The same proportions in whole numbers: a float is a whole number over a power of two."""
    ratios = [float(each).as_integer_ratio() for each in floats]
    scale = max(denominator for _, denominator in ratios)
    return [numerator * (scale // denominator) for numerator, denominator in ratios]


def cuts(weights: Sequence[int]) -> list[int]:
    """Where [0, 2^64) is cut so that piece i has weights[i] of it."""
    total = sum(weights) or WORD
    return [min(WORD - 1, (2 * running * WORD + total) // (2 * total)) for running in accumulate(weights[:-1])]
