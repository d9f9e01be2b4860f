"""Derived randomness (docs/device-protocol.md, "Draws"): AES-128 on counter blocks, keyed by HMAC-SHA256."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field, replace
from struct import pack, unpack

LANE = 1 << 24  # block numbers of a lane
WHOLE, SHARED, FURTHER = range(3)


def parts(*texts: str) -> bytes:
    """Texts without ambiguity: of each the length in UTF-8 (4 bytes, little-endian), then its bytes."""
    return b"".join(pack("<I", len(text.encode())) + text.encode() for text in texts)


def derived(key: bytes, *purpose: str) -> bytes:
    """HMAC-SHA256 of a purpose."""
    return hmac.digest(key, parts(*purpose), "sha256")


def next_key(key: bytes) -> bytes:
    """The key of the next period, from which this one's cannot be computed."""
    return hmac.digest(key, b"hearsay next", "sha256")


@dataclass(frozen=True)
class Draws:
    """The random bits of one AES key and one tweak."""

    key: bytes = field(repr=False)
    tweak: int = 0
    lane: int = 0

    def fork(self, lane: int) -> Draws:
        """The same key and tweak, other bits."""
        return replace(self, lane=self.lane + 3 * lane)

    def longs(self, count: int) -> tuple[int, ...]:
        """Numbers of 64 bits, two to a block."""
        return unpack(f"<{count}Q", self._blocks(WHOLE, 0, -(-count // 2))[: 8 * count])

    def words(self, count: int) -> tuple[int, ...]:
        """Numbers of 16 bits, eight to a block."""
        return unpack(f"<{count}H", self._blocks(SHARED, 0, -(-count // 8))[: 2 * count])

    def further(self, place: int) -> int:
        """64 further bits for the word at a place."""
        return int.from_bytes(self._blocks(FURTHER, place, 1)[:8], "little")

    def _blocks(self, lane: int, first: int, count: int) -> bytes:
        start = (self.lane + lane) * LANE + first
        counters = b"".join(pack("<QII", 0, self.tweak, start + i) for i in range(count))
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # when it is first needed

        # ECB over counters that all differ is AES-CTR, read in any order.
        cipher = Cipher(algorithms.AES(self.key), modes.ECB()).encryptor()
        return cipher.update(counters) + cipher.finalize()
