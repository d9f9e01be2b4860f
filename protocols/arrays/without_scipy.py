"""numba, loaded without scipy.

It imports scipy's linear algebra to see whether it is there. No loop of ours uses any, and that takes as long as numba.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from threading import get_ident


class _NoScipy(MetaPathFinder):
    """Makes scipy appear as not installed in this thread. Another one may need it at the same moment."""

    def __init__(self) -> None:
        self._thread = get_ident()

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname.partition(".")[0] == "scipy" and get_ident() == self._thread:
            raise ModuleNotFoundError("numba is loaded without scipy", name=fullname)


@contextmanager
def numba_without_scipy() -> Iterator[None]:
    """Import numba in the block.

    What it notes about scipy is put right afterwards: a notebook may have loops of its own that use it.
    """
    installed = find_spec("scipy") is not None
    hidden = _NoScipy()
    sys.meta_path.insert(0, hidden)
    try:
        yield
        from numba.np import arraymath  # numba imports it at the first call, and looks for scipy then
    finally:
        sys.meta_path.remove(hidden)
    arraymath._HAVE_BLAS = installed
