"""What a process holds: descriptors, threads and memory."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MORE_BYTES = 8 << 20
"""A thousand leaked threads or sockets would take more memory than this."""

A_FEW = 50
"""Far less than what a thousand attempts would leave, and more than what earlier tests in the process may open."""
SECONDS = 10.0


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
    deadline = time.monotonic() + SECONDS
    while any(now > then + A_FEW for now, then in zip(held(), before, strict=True)):  # a last thread may be ending
        assert time.monotonic() < deadline, f"held before: {before}, and {SECONDS:g} s after: {held()}"
        time.sleep(0.1)
    assert resident_bytes() - memory < MORE_BYTES
