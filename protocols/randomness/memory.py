"""Memory that a thread uses again and again: new memory costs more than the AES that is written to it."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import DTypeLike

CIPHERS = 64


class Memory(threading.local):
    """The memory of a thread. What is in it is there until the thread asks for the same again."""

    def __init__(self) -> None:
        self._arrays: dict[str, Any] = {}
        self._ciphers: dict[bytes, CipherContext] = {}

    def array(self, use: str, size: int, dtype: DTypeLike) -> Any:
        """An array of this size, for this use."""
        if use not in self._arrays or len(self._arrays[use]) < size:
            self._arrays[use] = np.empty(size, dtype)
        return self._arrays[use][:size]

    def cipher(self, key: bytes) -> CipherContext:
        """AES under this key, block by block. To set one up takes longer than to encrypt a thousand blocks."""
        if key not in self._ciphers:
            if len(self._ciphers) == CIPHERS:
                self._ciphers.clear()
            self._ciphers[key] = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
        return self._ciphers[key]


memory = Memory()
