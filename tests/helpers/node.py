"""The JavaScript library in tests: where it is, and what is missing where it cannot run."""

import shutil
import subprocess
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parents[2] / "clients" / "javascript"
PATIENCE_SECONDS = 300


def find_node() -> str:
    """The program. Skips the test, and says why, where there is none."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("there is no Node.js here (Debian: nodejs): the JavaScript library is not tested")
    return program


def node(*arguments: str | Path, stdin: str = "", directory: Path = LIBRARY) -> subprocess.CompletedProcess[str]:
    """Run Node.js."""
    command = [find_node(), *map(str, arguments)]
    return subprocess.run(
        command, input=stdin, cwd=directory, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
