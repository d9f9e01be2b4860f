"""Memory that a thread uses again and again: new memory costs more than the AES that is written to it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from protocols.arrays.aliases import Bytes, Places, Words

STREAMS = 4
CIPHERS = 64


class Memory(threading.local):
    """The memory of a thread. What is in it is there until the thread asks for the same again."""

    def __init__(self) -> None:
        self._keystream: Bytes = np.empty(0, dtype=np.uint8)
        self._counters: Words = np.empty(0, dtype="<u8")
        self._left: Places = np.empty(0, dtype=np.intp)
        self._streams: dict[tuple[int, ...], Words] = {}
        self._ciphers: dict[bytes, CipherContext] = {}

    def keystream(self, size: int) -> Bytes:
        """So many bytes for a keystream."""
        if len(self._keystream) < size:
            self._keystream = np.empty(size, dtype=np.uint8)
        return self._keystream[:size]

    def counters(self, blocks: int) -> Words:
        """Room for so many counter blocks."""
        if len(self._counters) < 2 * blocks:
            self._counters = np.empty(2 * blocks, dtype="<u8")
        return self._counters[: 2 * blocks]

    def left(self, size: int) -> Places:
        """Room for so many places."""
        if len(self._left) < size:
            self._left = np.empty(size, dtype=np.intp)
        return self._left[:size]

    def streams(self, size: int, asked: tuple[int, ...], fill: Callable[..., Words]) -> Words:
        """The counter blocks of streams, `size` numbers. The last few are kept: all attributes have the same ones."""
        if asked not in self._streams:
            room: Words = np.empty(0, dtype="<u8")
            if len(self._streams) == STREAMS:
                room = self._streams.pop(next(iter(self._streams))).reshape(-1)
            room = room[:size] if len(room) >= size else np.empty(size, dtype="<u8")
            self._streams[asked] = fill(*asked, room)
        return self._streams[asked]

    def cipher(self, key: bytes) -> CipherContext:
        """AES under this key, block by block. To set one up takes longer than to encrypt a thousand blocks."""
        if key not in self._ciphers:
            if len(self._ciphers) == CIPHERS:
                self._ciphers.clear()
            self._ciphers[key] = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
        return self._ciphers[key]


memory = Memory()
