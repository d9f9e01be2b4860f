"""Processes that compile the same loops at the same moment do not spoil what the others load; a first time is said."""

import fcntl
import logging
import os
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from hearsay.terminal import console
from protocols.arrays import compiling

MOVE = """
import numpy as np
from analytics.forecasting.filtering import move
for dtype in (np.float32, np.float64):
    x, p = np.array([4, 2], dtype=dtype), np.eye(2, dtype=dtype)
    move(x, p, np.ones(2), 0.5)
    assert x.tolist() == [4, 1] and p.tolist() == [[2, 0], [0, 1.25]], (dtype, x, p)
"""


@pytest.mark.long(part="kills")
def test_processes_that_compile_at_once_all_compute_right(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    for _ in range(2):  # the first ones compile, the second ones load what the first ones kept
        running = [subprocess.Popen([sys.executable, "-c", MOVE], env=environment) for _ in range(2)]
        assert [process.wait(240) for process in running] == [0, 0]


LOOPS = """
from protocols.arrays.compiling import compiled

@compiled
def double(number):
    return 2 * number

@compiled
def twice(number):
    return double(double(number))

assert twice(1) == 4
"""


def test_who_waits_is_told_once_that_loops_are_compiled_and_not_when_they_are_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "err", console.SafeConsole(stderr=True))
    notices = logging.getLogger(compiling.__name__)
    monkeypatch.setattr(notices, "handlers", [console._Notices()])  # a log of this process may have taken them over
    monkeypatch.setattr(notices, "propagate", False)
    (tmp_path / "loops.py").write_text(LOOPS)
    said = []
    for _ in range(2):
        monkeypatch.setattr(compiling, "_first", compiling._First())  # as in another process
        runpy.run_path(str(tmp_path / "loops.py"))
        printed = capsys.readouterr()
        said.append(printed.err.count("compiling, once"))
        assert printed.out == ""
    assert said == [1, 0]


def test_the_lock_is_where_no_other_user_can_take_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user can make any file in the shared temporary directory, and hold a lock on it for ever."""
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    file = tmp_path / "cache" / "hearsay-compiling" / "a loop.lock"
    with compiling._alone(compiling._locks() / file.name):
        assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700
        with file.open() as again, pytest.raises(BlockingIOError):
            fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert list(shared.iterdir()) == []
    file.parent.chmod(0o777)
    loop = compiling.compiled(lambda: 7)
    assert loop() == 7, "compiled without a cache, and without a lock"
    with pytest.raises(PermissionError):
        compiling._locks()
