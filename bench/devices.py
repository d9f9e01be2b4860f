"""How small a person's device is: lines, the size of its wheel, and what importing it costs."""

from __future__ import annotations

import io
import os
import resource
import subprocess
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from bench._tables import Table

CLIENTS = Path(__file__).parents[1] / "clients"
TURNS = 9
MOST_LINES, MOST_BYTES, MOST_SECONDS = 2000, 300_000, 0.1


def run() -> Table:
    files = sorted((CLIENTS / "python" / "hearsay_device").glob("*.py"))
    lines = [line for path in files for line in path.read_text().splitlines()]
    written, packed = sum(1 for line in lines if line.strip()), zipped(files)
    seconds = cpu_seconds("import hearsay_device") - cpu_seconds("pass")
    found = Table(
        "a device in Python",
        ["", "lines", "not blank", "bytes, zipped", "CPU seconds to import"],
        [["hearsay_device", f"{len(lines):,}", f"{written:,}", f"{packed:,}", f"{seconds:.3f}"]],
    )
    found.missed += [
        text
        for text, reached in (
            (f"at most {MOST_LINES:,} lines", len(lines) <= MOST_LINES),
            (f"at most {MOST_BYTES:,} bytes", packed <= MOST_BYTES),
            (f"below {MOST_SECONDS} s", seconds < MOST_SECONDS),
        )
        if not reached
    ]
    return found


def zipped(files: list[Path]) -> int:
    """As a wheel has them."""
    archive = io.BytesIO()
    with ZipFile(archive, "w", ZIP_DEFLATED) as made:
        for path in files:
            made.write(path, path.name)
    return len(archive.getvalue())


def cpu_seconds(program: str) -> float:
    """The least of some turns, with modules that were compiled before."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(CLIENTS / "python")
    found = []
    for _ in range(TURNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-S", "-c", f"{PATHS}; {program}"], check=True, env=environment, timeout=60)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


PATHS = f"import sys; sys.path += {[path for path in sys.path if path.endswith('site-packages')]}"
