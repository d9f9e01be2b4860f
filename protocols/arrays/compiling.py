"""Loops compiled by numba at their first call and cached for the next process, by one process at a time.

numba numbers its cache files by looking which exist. Two processes that compile different types of one loop at the same
moment can take the same number, and then load each other's code (numba's issue 4807). So compiling a loop, and looking
for its compiled code, takes a lock that all processes of this user on this machine share: one for each loop, so that
processes compile different ones at the same time. It is in a directory where others cannot write: another user who held
it would stop every process for ever.

The first loop of a process that is not in the cache is logged: somebody may be waiting for it.
"""

import fcntl
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from protocols.arrays.aliases import Mask, Whole
from protocols.arrays.without_scipy import numba_without_scipy

with numba_without_scipy():
    import numba
    from llvmlite import ir
    from numba.core import cgutils, event

Loop = TypeVar("Loop", bound=Callable[..., Any])
_array: Any = cgutils.create_struct_proxy


def compiled(loop: Loop) -> Loop:
    """The loop, compiled when it is first called with arguments of some types."""
    try:
        lock = _locks() / f"{loop.__module__}.{loop.__name__}.lock"
        dispatcher: Any = numba.njit(nogil=True, cache=True)(loop)
    except (RuntimeError, OSError):  # no place for a cache, as in a read-only container
        return cast(Loop, numba.njit(nogil=True)(loop))
    compile_for = dispatcher.compile

    def compile_alone(signature: Any) -> Any:
        with _alone(lock), event.install_listener("numba:compile", _first):
            return compile_for(signature)

    dispatcher.compile = compile_alone
    return cast(Loop, dispatcher)


def address_of(context: Any, builder: Any, signature: Any, arguments: Any, bits: int) -> Any:
    """In an intrinsic of an array and an index: the address of the element, as that of a number of so many bits."""
    array = _array(signature.args[0])(context, builder, arguments[0])
    return builder.bitcast(builder.gep(array.data, [arguments[1]]), ir.IntType(bits).as_pointer())


def frozen(column: Whole | Mask) -> Any:
    """A read-only view, so that one compiled loop serves columns that may and may not be written to."""
    if column.flags.c_contiguous and not column.flags.writeable:
        return column
    view = np.ascontiguousarray(column).view()
    view.flags.writeable = False
    return view


def _locks() -> Path:
    """Where the locks are: with numba's cache if that has a place of its own, else in the user's cache."""
    own = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    directory = Path(own or Path.home() / ".cache") / "hearsay-compiling"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = directory.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022 or not os.access(directory, os.W_OK):
        raise PermissionError(f"{directory} is not a private directory of this user")
    return directory


_threads = threading.RLock()
"""numba compiles one loop of a process at a time, and inside it those that it calls."""


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """One thread of one process at a time. No loop calls itself: it would wait for its own lock."""
    with _threads:
        lock = os.open(file, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


class _First(event.Listener):
    """Logs that a loop is compiled, once in a process. What is found in the cache is no such event."""

    def __init__(self) -> None:
        self._said = False

    def on_start(self, _: object) -> None:
        if not self._said:
            self._said = True
            logging.getLogger(__name__).info("compiling, once: up to a minute")

    def on_end(self, _: object) -> None:
        pass


_first = _First()
