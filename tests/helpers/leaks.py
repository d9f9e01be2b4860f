"""What a process holds: descriptors, threads and memory."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MORE_BYTES = 8 << 20
"""A thousand leaked threads or sockets would take more memory than this."""

A_FEW = 10


def held() -> tuple[int, int]:
    """How many descriptors and threads this process has."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def leaves_nothing() -> Iterator[None]:
    before, memory = held(), resident_bytes()
    yield
    # What earlier tests left behind may end meanwhile, or one of the last threads may still be ending.
    assert all(now <= then + A_FEW for now, then in zip(held(), before, strict=True)), (before, held())
    assert resident_bytes() - memory < MORE_BYTES
