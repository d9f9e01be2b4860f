"""What `make dist` makes, and empty environments in which it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

Install = Callable[[str], Path]
WITHIN_SECONDS = 600


def done(*words: str | Path, directory: Path = ROOT, **environment: str) -> str:
    """What a program that ends well prints; otherwise all that it said."""
    ran = subprocess.run(
        list(map(str, words)),
        cwd=directory,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=WITHIN_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, f"{words}, exit code {ran.returncode}:\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


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
    made = tmp_path_factory.mktemp("dist")
    done("make", "--old-file=.venv/bin/python", f"DIST={made}", "dist", PATH=f"{uv.parent}:{os.environ['PATH']}")
    return made


@pytest.fixture(scope="session")
def install(uv: Path, dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Install:
    """Makes an environment that has the wheel, with the extras that are given, and nothing else."""

    @cache
    def make(extras: str) -> Path:
        environment = tmp_path_factory.mktemp("environment")
        done(uv, "venv", "--quiet", "--python", sys.executable, environment)
        (wheel,) = dist.glob("hearsay-*.whl")
        named = f"{wheel}[{extras}]" if extras else wheel
        into = ("--python", environment / "bin" / "python", "--constraint", ROOT / "constraints.txt")
        done(uv, "pip", "install", "--quiet", *into, named)
        return environment

    return make
