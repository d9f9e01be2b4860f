"""How small a person's device is, in both languages: lines, bytes, and what importing it costs.

Decides whether somebody who does not trust us can read it, and an app can afford it. Run it when a device changes.
"""

import io
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from bench._measuring import Table, child_seconds

CLIENTS = Path(__file__).parents[1] / "clients"
TURNS = 9
MOST_LINES, MOST_SECONDS = 2000, 0.1
PATHS = f"import sys; sys.path += {[path for path in sys.path if path.endswith('site-packages')]}"


def run() -> Table:
    python = sorted((CLIENTS / "python" / "hearsay_device").glob("*.py"))
    javascript = sorted((CLIENTS / "javascript").glob("*.js"))
    own, nothing = ([sys.executable, "-S", "-c", f"{PATHS}; {what}"] for what in ("import hearsay_device", "pass"))
    found = Table("devices of people", ["", "lines", "not blank", "bytes", "zipped", "CPU seconds to import"], [])
    add(found, "hearsay_device", python, 300_000, zipped(python), cpu_seconds(own) - cpu_seconds(nothing))
    if node := shutil.which("node"):
        own, nothing = ([node, "--input-type=module", "--eval", text] for text in (f'import "{javascript[0]}"', ""))
        seconds = cpu_seconds(own) - cpu_seconds(nothing)
        add(found, "device.js", javascript, 80_000, javascript[0].stat().st_size, seconds)
    return found


def add(found: Table, name: str, files: list[Path], most_bytes: int, measured: int, seconds: float) -> None:
    """A row; `measured` are the bytes that have a limit."""
    lines = [line for path in files for line in path.read_text().splitlines()]
    written = sum(1 for line in lines if line.strip())
    sizes = sum(path.stat().st_size for path in files), zipped(files)
    found.rows.append([name, f"{len(lines):,}", f"{written:,}", *(f"{size:,}" for size in sizes), f"{seconds:.3f}"])
    found.missed += [f"{name}: at most {MOST_LINES:,} lines"] * (len(lines) > MOST_LINES)
    found.missed += [f"{name}: below {most_bytes:,} bytes"] * (measured >= most_bytes)
    found.missed += [f"{name}: below {MOST_SECONDS} s"] * (seconds >= MOST_SECONDS)


def zipped(files: list[Path]) -> int:
    """Bytes of an archive of these files, such as a wheel."""
    archive = io.BytesIO()
    with ZipFile(archive, "w", ZIP_DEFLATED) as made:
        for path in files:
            made.write(path, path.name)
    return len(archive.getvalue())


def cpu_seconds(command: list[str]) -> float:
    """The least of some turns, with modules that were compiled before."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(CLIENTS / "python")
    run = partial(subprocess.run, command, check=True, env=environment, timeout=60)
    return min(child_seconds(run) for _ in range(TURNS))
