"""A line to a process, and the line that it writes back."""

from __future__ import annotations

import os
import subprocess
from select import select


def answer(process: subprocess.Popen[bytes], line: bytes, seconds: float) -> bytes:
    """The line that a process writes for a line; without its end if the process ended or is silent for so long."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(line + b"\n")
    process.stdin.flush()
    read = b""
    while not read.endswith(b"\n") and select([process.stdout], [], [], seconds)[0]:
        part = os.read(process.stdout.fileno(), 1 << 20)
        if not part:
            break
        read += part
    return read
