"""What is made once and kept in the user's cache: a directory appears complete or not at all."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Callable
from pathlib import Path

from servers.kafka_jars import cache_directory


def place_of(name: str) -> Path:
    """Where something is kept, whether it is there or not. Its name has its version."""
    return cache_directory() / name


def kept(name: str, make: Callable[[Path], Path]) -> Path:
    """A directory of the cache; `make` makes it below a directory of its own, if it is not there yet."""
    directory = place_of(name)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with (directory.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.is_dir():
            with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
                make(Path(scratch)).rename(directory)
    return directory
