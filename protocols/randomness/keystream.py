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
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np

from protocols.arrays.aliases import Bytes, Devices, Places, ShortWords, Whole, Words
from protocols.arrays.counting import frozen
from protocols.errors import SettingsError
from protocols.randomness.drawing import (
    NEIGHBOURS,
    Starts,
    blocks_alone,
    counter_blocks,
    extremes,
    further_blocks,
)
from protocols.randomness.memory import memory

BLOCK = 16
KEY = 16  # bytes: AES-256 would take half as long again
MOST = (1 << 63) - 1
MIN_SECRET = 16
PART = 1 << 20  # bytes of blocks at a time: they stay in a core's cache, and the memory is reused
LANE = 1 << 24  # block numbers per lane: independent draws of one purpose use different lanes
WHOLE, SHARED, FURTHER = range(3)  # the lanes of `blocks`, `parts` and `extra`


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
        tweaks = frozen(tweak) if isinstance(tweak, np.ndarray) else _repeated(tweak, len(devices))
        return Draws(self.key(purpose), frozen(np.asarray(devices, dtype=np.uint64)), tweaks)


@dataclass(frozen=True)
class Draws:
    """A keystream bound to devices and tweaks, row by row. Read it through `blocks`, `parts` or `extra`."""

    key: bytes = field(repr=False)
    devices: Devices
    tweaks: Whole
    """Non-negative and below 2^32."""
    lane: int = 0

    def __len__(self) -> int:
        return len(self.devices)

    @cached_property
    def extremes(self) -> tuple[int, int, bool]:
        """The lowest and the highest device, and whether they are numbered in a row."""
        return extremes(self.devices)

    def fork(self, lane: int) -> Draws:
        """The same rows, fresh bits: each lane is independent of every other."""
        return replace(self, lane=self.lane + 3 * lane)

    def blocks(self, count: int) -> Bytes:
        """`count` blocks of 16 bytes for each row."""
        counters = counter_blocks(self.devices, self.tweaks, self._from(WHOLE), count)
        return self._encrypt(counters).reshape(len(self), count * BLOCK)

    def parts(self, count: int) -> Iterator[tuple[int, ShortWords, Starts]]:
        """`count` uniform 16-bit words for each row, some rows at a time: the first, their words, where these begin.

        The words are there until the thread asks for others.
        """
        one_tweak = self.tweaks.strides == (0,) and len(self) > 0
        low, _, in_a_row = self.extremes if one_tweak else (0, MOST, False)
        step = max(NEIGHBOURS, PART // (2 * count if in_a_row else BLOCK * blocks_alone(count)))
        for first in range(0, len(self), step):
            rows = slice(first, first + step)
            devices, tweaks = self.devices[rows], self.tweaks[rows]
            if in_a_row:
                yield (
                    first,
                    *self._whole_streams(devices, tweaks, count, low + first, low + first + len(devices) - 1, True),
                )
            else:
                yield first, *self._words(devices, tweaks, count, one_tweak)

    def _words(self, devices: Devices, tweaks: Whole, count: int, one_tweak: bool) -> tuple[ShortWords, Starts]:
        """Words of these devices: whole streams where many neighbours are present, else only the blocks they need."""
        blocks = blocks_alone(count)
        low, high, _ = extremes(devices) if one_tweak else (0, MOST, False)
        if (high // NEIGHBOURS - low // NEIGHBOURS + 1) * count <= len(devices) * blocks:
            return self._whole_streams(devices, tweaks, count, low, high, False)
        room = memory.array("counters", 2 * len(devices) * blocks, "<u8")
        counters = counter_blocks(devices, tweaks, self._from(SHARED), blocks, count, room)
        return self._short_words(counters), Starts(devices, 0, NEIGHBOURS * blocks, NEIGHBOURS - 1)

    def _whole_streams(
        self, devices: Devices, tweaks: Whole, count: int, low: int, high: int, in_a_row: bool
    ) -> tuple[ShortWords, Starts]:
        """The words of all devices from `low` to `high`; where these are numbered in a row, only theirs."""
        group, groups = low // NEIGHBOURS, high // NEIGHBOURS - low // NEIGHBOURS + 1
        numbers, one = np.uint64(group) + np.arange(groups, dtype=np.uint64), np.broadcast_to(tweaks[:1], groups)
        room = memory.array("counters", 2 * groups * count, "<u8")
        words = self._short_words(counter_blocks(numbers, one, self._from(SHARED), count, 0, room))
        if not in_a_row:
            return words, Starts(devices, NEIGHBOURS * group, 0, MOST)
        start = low % NEIGHBOURS * count
        return words[start : start + len(devices) * count], Starts(devices, 0, count, 0)

    def _short_words(self, counters: Words) -> ShortWords:
        return self._encrypt(counters, memory.array("words", counters.nbytes + BLOCK - 1, np.uint8)).view("<u2")

    def extra(self, left: Places, count: int) -> Words:
        """64 further bits for some words, each named by its place among the `count` words of all rows."""
        counters = further_blocks(self.devices, self.tweaks, self._from(FURTHER), left, count)
        return self._encrypt(counters).view("<u8")[::2]

    def _from(self, lane: int) -> int:
        return (self.lane + lane) * LANE

    def _encrypt(self, counters: Words, room: Bytes | None = None) -> Bytes:
        # ECB over distinct counter blocks *is* the CTR keystream, read in any order.
        flat = counters.reshape(-1)
        out = np.empty(flat.nbytes + BLOCK - 1, dtype=np.uint8) if room is None else room  # as OpenSSL asks for
        memory.cipher(self.key[:KEY]).update_into(flat.view(np.uint8).data, out.data)
        return out[: flat.nbytes]


@lru_cache(maxsize=64)
def _repeated(tweak: int, rows: int) -> Whole:
    """One tweak for all rows, stored once, as by numpy's `broadcast_to`; read-only."""
    return np.ndarray((rows,), np.dtype("<u4"), int(tweak).to_bytes(4, "little"), strides=(0,))
