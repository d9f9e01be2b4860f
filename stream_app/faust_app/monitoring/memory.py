"""Giving memory back to the operating system after a backlog was read."""

from __future__ import annotations

import ctypes
import gc

import pyarrow as pa


class MemoryReleaser:
    """Releases memory once after each time in which records were read, as soon as no more are."""

    def __init__(self) -> None:
        self._seen = self._released_at = 0

    def check(self, progress: int) -> bool:
        """`progress` changes with every record that is read; call this every few seconds. True if it released."""
        idle, self._seen = progress == self._seen, progress
        if not idle or progress == self._released_at:
            return False
        self._released_at = progress
        release()
        return True


def release() -> None:
    """Return free memory of this process to the operating system, as far as the C library can."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it
    if trim is not None:
        trim(0)
