"""What a process keeps of the memory that it frees, where the C library can be told (glibc)."""

import ctypes
import gc

MALLOC = {"M_ARENA_MAX": (-8, 1), "M_MMAP_THRESHOLD": (-3, 32 << 20), "M_TRIM_THRESHOLD": (-1, 256 << 20)}
"""Numbers and values for mallopt: one heap for all threads, for requests of any usual size, which is not trimmed."""
_library = ctypes.CDLL(None)
_glibc = _library if hasattr(_library, "malloc_trim") else None


def keep_memory() -> None:
    """Keep what is freed until `release_memory`. Call it before anything has made threads.

    Requests of megabytes are copied several times on their way. Without this the system clears new pages for each copy:
    for a worker that counts a backlog, three times the page faults and 1.1 times the CPU.
    """
    if _glibc is not None:
        for parameter, value in MALLOC.values():
            _glibc.mallopt(parameter, value)


def release_memory() -> None:
    """Return free memory of this process to the operating system."""
    import pyarrow as pa

    gc.collect()
    pa.default_memory_pool().release_unused()
    if _glibc is not None:
        _glibc.malloc_trim(0)
