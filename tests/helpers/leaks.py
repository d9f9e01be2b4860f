"""What a process holds: descriptors, threads and memory."""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MORE_BYTES = 8 << 20
"""A thousand leaked threads or sockets would take more memory than this."""

A_FEW = 5
"""Less than what four attempts would leave."""
SECONDS = 60.0
PROCESS_SECONDS = 500.0


def alone(check: Callable[..., None], *arguments: Any) -> None:
    """Run this check in a process of its own: what other tests keep, such as what was logged, is not held there."""
    process = multiprocessing.get_context("spawn").Process(target=check, args=arguments)
    process.start()
    process.join(PROCESS_SECONDS)
    if process.exitcode is None:
        process.kill()
    assert process.exitcode == 0, f"ended with {process.exitcode} within {PROCESS_SECONDS:g} s (None: it did not end)"


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
    more = resident_bytes() - memory
    assert more < MORE_BYTES, f"{more} bytes more than before"
