"""Processes that compile the same loops at the same moment do not spoil what the others load."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from protocols.arrays import compiling

COUNT = """
import numpy as np
from protocols.arrays.counting import count_symbols
for symbols in (np.uint8, np.uint16, np.uint32):
    for groups in (np.uint8, np.int32, np.int64):
        counted = count_symbols(np.array([0, 2, 2], dtype=symbols), np.array([0, 0, 1], dtype=groups), 2, 3)
        assert counted.tolist() == [[1, 0, 1], [0, 0, 1]], (symbols, groups, counted)
"""


def test_processes_that_compile_at_once_all_count_right(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    for _ in range(2):  # the first ones compile, the second ones load what the first ones kept
        running = [subprocess.Popen([sys.executable, "-c", COUNT], env=environment) for _ in range(3)]
        assert [process.wait(240) for process in running] == [0, 0, 0]


def test_the_lock_is_where_no_other_user_can_take_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user can make any file in the shared temporary directory, and hold a lock on it for ever."""
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    file = tmp_path / "cache" / "hearsay" / "compiling.lock"
    with compiling._CompilingLock():
        assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700
        with file.open() as again, pytest.raises(BlockingIOError):
            fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert list(shared.iterdir()) == []
    file.parent.chmod(0o777)
    loop = compiling.compiled(lambda: 7)
    assert loop() == 7, "compiled without a cache, and without a lock"
    file.unlink()
    with pytest.raises(PermissionError), compiling._CompilingLock():
        pass
