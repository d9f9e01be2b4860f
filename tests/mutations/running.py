"""Running a test in a copy of the checkout, in which a line may have been replaced. The checkout is never changed."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.mutations.table import Mutation

LIMIT_SECONDS = 120.0
"""For the test of one mutation. Each takes seconds; one that waits for ever proves nothing."""
OUTCOMES = {0: "survived", 1: "killed"}
"""By pytest's exit code. Others mean that no test was run: what cannot be imported was not tested."""


@dataclass(frozen=True)
class Ran:
    """What became of a run: an outcome, and what pytest printed."""

    outcome: str
    printed: str


def copy_checkout(checkout: Path, copy: Path) -> None:
    """Copy what git does not ignore, and compiled modules and loops with the times by which they are found current."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=checkout, check=True, capture_output=True, text=True).stdout
    names = [name for name in listed.split("\0") if (checkout / name).is_file()]
    for folder in {Path(name).parent for name in names}:
        (copy / folder).mkdir(parents=True, exist_ok=True)
        if (checkout / folder / "__pycache__").is_dir():
            shutil.copytree(checkout / folder / "__pycache__", copy / folder / "__pycache__")
    for name in names:
        shutil.copy2(checkout / name, copy / name)


def run_mutated(mutation: Mutation, unchanged: Path, copy: Path) -> Ran:
    """Run the test of a mutation in a copy of its own."""
    shutil.copytree(unchanged, copy)
    try:
        file = copy / mutation.file
        file.write_text(mutation.applied(file.read_text()))
        return run_tests([mutation.test], copy, LIMIT_SECONDS)
    finally:
        shutil.rmtree(copy)


def run_tests(tests: list[str], copy: Path, limit_seconds: float) -> Ran:
    """Run tests in a copy, with the code of the copy, also in processes that they start."""
    kept = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS")
    }
    environment = {**kept, "PYTHONPATH": f"{copy}:{copy}/clients/python", "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    with subprocess.Popen(
        command, cwd=copy, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            printed, _ = process.communicate(timeout=limit_seconds)
        except subprocess.TimeoutExpired:
            return Ran(f"not done after {limit_seconds:.0f} s", "")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return Ran(OUTCOMES.get(process.returncode, f"not run (pytest's exit code is {process.returncode})"), printed)
