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

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from protocols.arrays.aliases import Bytes, Devices, Places, ShortWords, Tweaks, Whole, Words
from protocols.errors import SettingsError
from protocols.randomness.drawing import counter_blocks, extremes, shared_blocks
from protocols.randomness.few_rows import blocks_alone

BLOCK = 16
KEY = 16  # bytes: AES-256 would take half as long again
MOST = (1 << 64) - 1
NEIGHBOURS = 8  # as many as a block has words of 16 bits
MIN_SECRET = 16
PART = 1 << 20  # bytes of blocks at a time: they stay in a core's cache, and the memory is reused
LANE = 1 << 24  # block numbers per lane: independent draws of one purpose use different lanes
WHOLE, SHARED, FURTHER = range(3)  # the lanes of `blocks`, `parts` and `extra`


class _Memory(threading.local):
    """Memory that a thread uses again and again: new memory costs more than the AES that is written to it."""

    def __init__(self) -> None:
        self._room: Bytes = np.empty(0, dtype=np.uint8)
        self._counters: Words = np.empty(0, dtype="<u8")
        self._asked: tuple[int, ...] = ()
        self._streams: Words = np.empty(0, dtype="<u8")

    def room(self, size: int) -> Bytes:
        """So many bytes for a keystream."""
        if len(self._room) < size:
            self._room = np.empty(size, dtype=np.uint8)
        return self._room[:size]

    def counters(self, size: int) -> Words:
        """So many words for counters."""
        if len(self._counters) < size:
            self._counters = np.empty(size, dtype="<u8")
        return self._counters

    def streams(self, group: int, groups: int, tweak: int, first: int, count: int) -> Words:
        """The counter blocks of neighbouring streams. All attributes of a report have the same ones."""
        asked = (group, groups, tweak, first, count)
        if asked != self._asked:
            numbers = np.uint64(group) + np.arange(groups, dtype=np.uint64)
            tweaks = np.broadcast_to(np.uint32(tweak), numbers.shape)
            self._streams, self._asked = counter_blocks(numbers, tweaks, first, count), asked
        return self._streams


_memory = _Memory()


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
        self._keys: dict[tuple[str, ...], bytes] = {}

    @classmethod
    def generate(cls) -> Keyring:
        """A new secret from the operating system."""
        return cls(secrets.token_bytes(32))

    def __repr__(self) -> str:
        return "Keyring(…)"

    def key(self, purpose: tuple[str, ...]) -> bytes:
        """The 32-byte key of one purpose."""
        if purpose not in self._keys:
            message = b"".join(len(part.encode()).to_bytes(4, "little") + part.encode() for part in purpose)
            self._keys[purpose] = hmac.digest(self._secret, message, "sha256")
        return self._keys[purpose]

    def draws(self, purpose: tuple[str, ...], devices: Devices, tweak: int | Whole = 0) -> Draws:
        """The draws of one purpose for these devices, each at its tweak (a period, or one cell per device)."""
        tweaks = np.asarray(tweak, dtype=np.uint32)
        tweaks = tweaks if tweaks.ndim else np.broadcast_to(tweaks, devices.shape)
        return Draws(self.key(purpose), np.ascontiguousarray(devices, dtype=np.uint64), tweaks)


@dataclass(frozen=True)
class Draws:
    """A keystream bound to devices and tweaks, row by row. Read it through `blocks`, `parts` or `extra`."""

    key: bytes = field(repr=False)
    devices: Devices
    tweaks: Tweaks
    lane: int = 0

    def __len__(self) -> int:
        return len(self.devices)

    def fork(self, lane: int) -> Draws:
        """The same rows, fresh bits: each lane is independent of every other."""
        return replace(self, lane=self.lane + 3 * lane)

    def blocks(self, count: int) -> Bytes:
        """`count` blocks of 16 bytes for each row."""
        counters = counter_blocks(self.devices, self.tweaks, self._from(WHOLE), count)
        return self._encrypt(counters).reshape(len(self), count * BLOCK)

    def parts(self, count: int) -> Iterator[tuple[slice, ShortWords, Words | None]]:
        """`count` uniform 16-bit words for each row, some rows at a time: which, their words, and where these begin.

        Without starts, one row's words follow the other's. The words are there until the thread asks for others.
        """
        step = max(1, PART // (BLOCK * blocks_alone(count)))
        for first in range(0, len(self), step):
            rows = slice(first, first + step)
            yield rows, *self._words(self.devices[rows], self.tweaks[rows], count)

    def _words(self, devices: Devices, tweaks: Tweaks, count: int) -> tuple[ShortWords, Words | None]:
        """Words of these devices: whole streams where many neighbours are present, else only the blocks they need."""
        first = self._from(SHARED)
        low, high, in_a_row = extremes(devices) if tweaks.strides == (0,) else (0, MOST, False)
        group, groups = low // NEIGHBOURS, high // NEIGHBOURS - low // NEIGHBOURS + 1
        if groups * count > len(devices) * blocks_alone(count):
            blocks = len(devices) * blocks_alone(count)
            counters, starts = shared_blocks(devices, tweaks, first, count, _memory.counters(2 * blocks))
            return self._encrypt(counters, _memory.room(counters.nbytes + BLOCK - 1)).view("<u2"), starts
        counters = _memory.streams(group, groups, int(tweaks[0]), first, count)
        words = self._encrypt(counters, _memory.room(counters.nbytes + BLOCK - 1)).view("<u2")
        if not in_a_row:
            return words, (devices - np.uint64(NEIGHBOURS * group)) * np.uint64(count)
        start = low % NEIGHBOURS * count
        return words[start : start + len(devices) * count], None

    def extra(self, rows: Places, places: Places) -> Words:
        """64 further bits for some (row, word) pairs."""
        counters = np.empty((len(rows), 2), dtype="<u8")
        counters[:, 0] = self.devices[rows]
        numbers = (places.astype(np.uint64) + np.uint64(self._from(FURTHER))) << np.uint64(32)
        counters[:, 1] = self.tweaks[rows] | numbers
        return self._encrypt(counters).view("<u8")[::2]

    def _from(self, lane: int) -> int:
        return (self.lane + lane) * LANE

    def _encrypt(self, counters: Words, room: Bytes | None = None) -> Bytes:
        flat = counters.reshape(-1).view(np.uint8)
        out = np.empty(len(flat) + BLOCK - 1, dtype=np.uint8) if room is None else room
        # ECB over distinct counter blocks *is* the CTR keystream, read in any order.
        self._cipher.update_into(flat.data, out.data)
        return out[: len(flat)]

    @cached_property
    def _cipher(self) -> CipherContext:
        return Cipher(algorithms.AES(self.key[:KEY]), modes.ECB()).encryptor()
