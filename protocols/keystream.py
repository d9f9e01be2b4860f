"""Derived randomness: one secret, every draw (PROTOCOLS 8).

Nothing on the privacy path is drawn twice, so nothing is drawn at all: each draw is a pseudorandom function of a
secret, a purpose, a device and a tweak (the memoised cell, or the period). Losing a store loses no randomness, and a
retry makes the same report.

The function is AES-256 on a counter block, which is an AES-CTR keystream with random access:

    key   = HMAC-SHA256(secret, purpose)                      one per purpose
    block = AES(key, device: u64 | tweak: u32 | number: u32)  16 bytes each, little-endian counters

Draws of up to four 16-bit words leave most of a block unused, so there 8, 4 or 2 neighbouring devices share one: it is
that of device // 8, under a number of its own, and device % 8 says which words of it.

A fleet is one secret and many device indices; a real device is its own secret and index 0. Both take the same path,
so a device computed alone and the same device computed among a million give the same draws.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field, replace

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from protocols.errors import SettingsError
from protocols.kernels import counter_blocks, shared_blocks

BLOCK = 16
WORDS = 8  # of 16 bits, in a block
MIN_SECRET = 16
LANE = 1 << 24  # block numbers per lane: independent draws of one purpose use different lanes

Devices = NDArray[np.uint64]


class Keyring:
    """A secret from which all draws of a device, or of a fleet of them, derive.

    >>> ring = Keyring(bytes(32))
    >>> draws = ring.draws(("demo",), np.arange(3, dtype=np.uint64))
    >>> alone = ring.draws(("demo",), np.array([2], dtype=np.uint64))
    >>> bool((draws.blocks(1)[2] == alone.blocks(1)[0]).all())
    True
    """

    def __init__(self, secret: bytes) -> None:
        if len(secret) < MIN_SECRET:
            raise SettingsError(
                f"a secret of {len(secret)} bytes is too short", f"use at least {MIN_SECRET}, better 32 random bytes"
            )
        self._secret = bytes(secret)

    @classmethod
    def generate(cls) -> Keyring:
        """A new secret from the operating system."""
        return cls(secrets.token_bytes(32))

    def __repr__(self) -> str:
        return "Keyring(…)"

    def key(self, purpose: tuple[str, ...]) -> bytes:
        """The 32-byte key of one purpose."""
        message = b"".join(len(part.encode()).to_bytes(4, "little") + part.encode() for part in purpose)
        return hmac.new(self._secret, message, hashlib.sha256).digest()

    def draws(self, purpose: tuple[str, ...], devices: Devices, tweak: int | NDArray[np.integer] = 0) -> Draws:
        """The draws of one purpose for these devices, each at its tweak (a period, or one cell per device)."""
        tweaks = np.broadcast_to(np.asarray(tweak, dtype=np.uint32), devices.shape)
        return Draws(self.key(purpose), np.ascontiguousarray(devices, dtype=np.uint64), tweaks)


@dataclass(frozen=True)
class Draws:
    """A keystream bound to devices and tweaks, row by row. Read it through `blocks`, `words` or `extra`."""

    key: bytes = field(repr=False)
    devices: Devices
    tweaks: NDArray[np.uint32]
    lane: int = 0

    def __len__(self) -> int:
        return len(self.devices)

    def fork(self, lane: int) -> Draws:
        """The same rows, fresh bits: each lane is independent of every other."""
        return replace(self, lane=self.lane + 2 * lane)

    def only(self, rows: NDArray[np.intp]) -> Draws:
        """The draws of some rows."""
        return replace(self, devices=self.devices[rows], tweaks=self.tweaks[rows])

    def blocks(self, count: int) -> NDArray[np.uint8]:
        """`count` blocks of 16 bytes for each row."""
        counters = counter_blocks(self.devices, self.tweaks, self.lane * LANE, count)
        return self._encrypt(counters).reshape(len(self), count * BLOCK)

    def words(self, count: int) -> NDArray[np.uint16]:
        """`count` uniform 16-bit words for each row. Where a few will do, neighbouring devices share a block."""
        if count > WORDS // 2:
            return self.blocks(-(-count // WORDS)).view("<u2")[:, :count]
        size = 1 << (count - 1).bit_length()
        share = WORDS // size
        counters, places = shared_blocks(self.devices, self.tweaks, (self.lane + 1) * LANE - share, share)
        return self._encrypt(counters).view("<u2").reshape(-1, size).take(places, axis=0)[:, :count]

    def extra(self, rows: NDArray[np.intp], places: NDArray[np.intp]) -> NDArray[np.uint64]:
        """64 further bits for some (row, word) pairs, from the lane's partner, which `words` never reads."""
        counters = np.empty((len(rows), 2), dtype="<u8")
        counters[:, 0] = self.devices[rows]
        numbers = (places.astype(np.uint64) + np.uint64((self.lane + 1) * LANE)) << np.uint64(32)
        counters[:, 1] = self.tweaks[rows] | numbers
        return self._encrypt(counters).view("<u8")[::2]

    def _encrypt(self, counters: NDArray[np.uint64]) -> NDArray[np.uint8]:
        flat = counters.reshape(-1).view(np.uint8)
        out = np.empty(len(flat) + BLOCK - 1, dtype=np.uint8)
        # ECB over distinct counter blocks *is* the CTR keystream, read in any order.
        Cipher(algorithms.AES(self.key), modes.ECB()).encryptor().update_into(flat.data, out.data)
        return out[: len(flat)]
