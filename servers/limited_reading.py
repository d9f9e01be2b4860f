"""Reading small files that others may have written: up to a limit, and not beyond."""

from __future__ import annotations

import errno
import os
from pathlib import Path

NOTE_BYTES = 1 << 20
"""More than any key, password or note has."""


def read_limited(path: Path, most: int = NOTE_BYTES) -> bytes:
    """What is in a file of at most so many bytes. Raises OSError for a larger one, which may have no end.

    >>> read_limited(Path("/dev/zero"))
    Traceback (most recent call last):
    OSError: [Errno 27] File too large: '/dev/zero'
    """
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return data
