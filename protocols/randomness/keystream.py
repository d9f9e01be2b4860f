"""Derived randomness: every draw is a function of one secret (PROTOCOLS 8).

Each draw is a pseudorandom function of a secret, a purpose, a device and a tweak (the memoised cell, or the period). So
losing a store loses no randomness, and a retry makes the same report.

The function is AES-128 on a counter block, which is an AES-CTR keystream with random access:

    key   = HMAC-SHA256(secret, purpose)[:16]                 one per purpose
    block = AES(key, device: u64 | tweak: u32 | number: u32)  16 bytes each, little-endian counters

Most draws need only a few 16-bit words. There eight neighbouring devices share a stream of blocks, that of device // 8
under numbers of its own: the first device has the stream's first words, the second the next, and so on. A fleet's
keystream is then computed without waste, and a device alone computes the few blocks that hold its words.

A fleet is one secret and many device indices; a real device is its own secret and index 0. Both take the same path,
so a device computed alone and the same device computed among a million give the same draws.
"""

import hmac
from dataclasses import dataclass, field, replace
from math import gcd

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from hearsay_device.draws import parts
from protocols.arrays.aliases import Bytes, Devices, Places, ShortWords, Whole, Words
from protocols.errors import SettingsError

BLOCK = 16
KEY = 16  # bytes: AES-256 would take half as long again
MIN_SECRET = 16
NEIGHBOURS = 8
"""Devices whose words share blocks: as many as a block has words of 16 bits."""
LANE = 1 << 24  # block numbers per lane: independent draws of one purpose use different lanes
WHOLE, SHARED, FURTHER = range(3)  # the lanes of `blocks`, `words` and `further`


def later_key(key: bytes, steps: int) -> bytes:
    """The key that is later by some steps in a chain of keys: a key gives the next one, and not the one before.

    >>> later_key(later_key(bytes(32), 2), 3) == later_key(bytes(32), 5)
    True
    """
    for _ in range(steps):
        key = hmac.digest(key, b"hearsay next", "sha256")
    return key


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

    def __repr__(self) -> str:
        return "Keyring(…)"

    def key(self, purpose: tuple[str, ...]) -> bytes:
        """The 32-byte key of one purpose."""
        return hmac.digest(self._secret, parts(*purpose), "sha256")

    def draws(self, purpose: tuple[str, ...], devices: Devices, tweak: int | Whole = 0) -> "Draws":
        """The draws of one purpose for these devices, each at its tweak (a period, or one cell per device)."""
        tweaks = np.broadcast_to(np.asarray(tweak, dtype=np.uint32), len(devices))
        return Draws(self.key(purpose), np.asarray(devices, dtype=np.uint64), tweaks)


@dataclass(frozen=True)
class Draws:
    """A keystream bound to devices and tweaks, row by row. Read it through `blocks`, `words` or `further`."""

    key: bytes = field(repr=False)
    devices: Devices
    tweaks: Whole
    """Non-negative and below 2^32."""
    lane: int = 0

    def __len__(self) -> int:
        return len(self.devices)

    def __getitem__(self, rows: slice) -> "Draws":
        return replace(self, devices=self.devices[rows], tweaks=self.tweaks[rows])

    def fork(self, lane: int) -> "Draws":
        """The same rows, fresh bits: each lane is independent of every other."""
        return replace(self, lane=self.lane + 3 * lane)

    def blocks(self, count: int) -> Bytes:
        """`count` blocks of 16 bytes for each row."""
        return self._encrypt(WHOLE, self.devices, self.tweaks, 0, count)

    def words(self, count: int) -> ShortWords:
        """`count` uniform 16-bit words for each row.

        Where many neighbours are present, their whole streams are encrypted; otherwise only the blocks that each needs.
        """
        groups, blocks = self.devices >> np.uint64(3), blocks_alone(count)
        if len(self) and self.tweaks.strides == (0,):  # the same tweak for all
            low, high = int(groups.min()), int(groups.max())
            if (high - low + 1) * count <= len(self) * blocks:
                streams = np.uint64(low) + np.arange(high - low + 1, dtype=np.uint64)
                whole = self._encrypt(SHARED, streams, self.tweaks[:1], 0, count)
                return _cut(whole, count, (self.devices - np.uint64(NEIGHBOURS * low)).astype(np.intp) * count)
        first = (self.devices & np.uint64(7)).astype(np.int64) * count  # of the device's words in the stream
        own = self._encrypt(SHARED, groups, self.tweaks, first >> 3, blocks)
        return _cut(own, count, np.arange(len(self)) * (NEIGHBOURS * blocks) + (first & 7))

    def further(self, rows: Places, places: Places) -> Words:
        """64 further bits for some words, each named by its row and its place among the words of the row."""
        return self._encrypt(FURTHER, self.devices[rows], self.tweaks[rows], places, 1).view("<u8")[:, 0]

    def _encrypt(self, lane: int, devices: Devices, tweaks: Whole, first: Places | int, count: int) -> Bytes:
        """Of a lane, the blocks of counters (device, tweak | number << 32): for each device `count` from its first."""
        numbers = np.asarray(first + (self.lane + lane) * LANE, dtype=np.uint64)
        counters = np.empty((len(devices), count, 2), dtype="<u8")
        counters[..., 0] = devices[:, None]
        start = tweaks.astype(np.uint64) | numbers << np.uint64(32)
        np.add(start[:, None], np.arange(count, dtype=np.uint64) << np.uint64(32), out=counters[..., 1])
        # ECB over distinct counter blocks *is* the CTR keystream, read in any order.
        cipher = Cipher(algorithms.AES(self.key[:KEY]), modes.ECB()).encryptor()
        stream = cipher.update(counters.reshape(-1).view(np.uint8).data)
        return np.frombuffer(stream, dtype=np.uint8).reshape(len(devices), BLOCK * count)


def _cut(stream: Bytes, count: int, starts: Places) -> ShortWords:
    """Rows of `count` words of 16 bits, from where each starts in the stream: each row is one item, copied at once."""
    rows = max(stream.size // 2 - count + 1, 0)
    items = np.ndarray(rows, np.dtype((np.void, 2 * count)), np.ascontiguousarray(stream), strides=(2,))
    return items[starts].view("<u2").reshape(len(starts), count)


def blocks_alone(count: int) -> int:
    """How many blocks hold `count` words in a row, whichever of the neighbours they belong to.

    >>> blocks_alone(1), blocks_alone(4), blocks_alone(13)
    (1, 1, 3)
    """
    return -(-(NEIGHBOURS - gcd(NEIGHBOURS, count) + count) // NEIGHBOURS)
