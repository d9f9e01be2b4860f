"""The JavaScript library in tests: where it is, and what is missing where it cannot run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parents[2] / "clients" / "javascript"
PATIENCE_SECONDS = 300


def require_packages() -> None:
    """Skip the test where the packages that the library uses are missing."""
    if not (LIBRARY / "node_modules" / "@noble").exists():
        pytest.skip("the packages of clients/javascript are not installed (run: npm ci, there)")


def node(*arguments: str | Path, stdin: str = "", directory: Path = LIBRARY) -> subprocess.CompletedProcess[str]:
    """Run Node.js; skips the test, and says why, where the library cannot run."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("there is no Node.js here (Debian: nodejs, npm): the JavaScript library is not tested")
    require_packages()
    command = [program, *map(str, arguments)]
    return subprocess.run(
        command, input=stdin, cwd=directory, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
