"""What `make dist` makes, and empty environments in which it is installed."""

import os
import shutil
import sys
from collections.abc import Callable
from fcntl import LOCK_EX, flock
from functools import cache
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.helpers.command_line import done

Install = Callable[[str], Path]


@pytest.fixture(scope="session")
def uv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if found := shutil.which("uv"):
        return Path(found)
    place = tmp_path_factory.mktemp("uv")
    done(sys.executable, "-m", "venv", place)
    done(place / "bin" / "pip", "install", "--quiet", "uv")
    return place / "bin" / "uv"


@pytest.fixture(scope="session")
def dist(uv: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once for all processes of the tests: two at a time would build in the same directory."""
    root = tmp_path_factory.getbasetemp()
    shared = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    made, path = shared / "dist", f"{uv.parent}:{os.environ['PATH']}"
    with (shared / "dist.lock").open("w") as lock:
        flock(lock, LOCK_EX)  # whoever has it is bounded by the limit of `done`
        if not made.exists():
            done("make", "--old-file=.venv/bin/python", f"DIST={made}.new", "dist", PATH=path)
            Path(f"{made}.new").rename(made)
    return made


@pytest.fixture(scope="session")
def install(uv: Path, dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Install:
    """Makes an environment that has the wheel, with the extras that are given, and nothing else."""

    @cache
    def make(extras: str) -> Path:
        environment = tmp_path_factory.mktemp("environment")
        done(uv, "venv", "--quiet", "--python", sys.executable, environment)
        (wheel,) = dist.glob("hearsay_ldp-*.whl")
        named = f"{wheel}[{extras}]" if extras else wheel
        into = ("--python", environment / "bin" / "python", "--constraint", ROOT / "constraints.txt")
        done(uv, "pip", "install", "--quiet", *into, named)
        return environment

    return make
