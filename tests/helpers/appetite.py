"""What a parser of strangers' bytes may take: 64 MiB, and 64 bytes and a microsecond for each byte received.

Memory is that of the process, whoever allocated it. Times are those of the processor, and ten times as much is let
pass: machines are slow and busy. Failure of what these tests are about is a thousand times as much.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SPARE_BYTES, BYTES_PER_BYTE = 64 << 20, 64
SPARE_SECONDS, SECONDS_PER_BYTE = 0.1, 1e-6
SLOW = 10


@contextmanager
def within_the_rule(received: int, what: object) -> Iterator[None]:
    """Do something with so many bytes."""
    before = _peak_since_now()
    began = time.process_time()
    yield
    seconds = time.process_time() - began
    taken = _peak() - before
    assert taken <= SPARE_BYTES + BYTES_PER_BYTE * received, f"{taken:,} bytes for {received:,}: {what}"
    allowed = SPARE_SECONDS + SLOW * SECONDS_PER_BYTE * received
    assert seconds <= allowed, f"{seconds:.2f} seconds for {received:,} bytes: {what}"


def _peak_since_now() -> int:
    """Begin to look for the peak anew. The memory of this process now, in bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))
