"""A data directory that an earlier release has made is opened, or refused with a sentence that says what to do.

`landing.tar.xz` is the directory of `hearsay demo --devices 60`, without its page. When what a release writes there
changes, replace it by one of the release before.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ARCHIVE = Path(__file__).parent / "landing.tar.xz"


@pytest.mark.parametrize("arguments", [("report",), ("memo", "stats"), ("demo", "--devices", "60")], ids=" ".join)
def test_a_data_directory_of_the_release_before_opens_or_says_what_to_do(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    """Failure would look like: a traceback, or numbers from a state that is read as something else than it was."""
    data = tmp_path / "landing"
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(data, filter="data")
    done = subprocess.run(
        [sys.executable, "-m", "hearsay", *arguments, "--data", str(data)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "COLUMNS": "80"},
    )
    assert done.returncode in (0, 1), done.stderr
    assert done.returncode == 0 or "hint:" in done.stderr
    if done.returncode == 0 and arguments == ("report",):
        assert done.stdout.count("2017-06-0") >= 6, "the days of the demo"
