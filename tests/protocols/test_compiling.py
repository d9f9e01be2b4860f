"""Processes that compile the same loops at the same moment do not spoil what the others load."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
