"""The oldest versions that may be used, from deploy/minimum-versions.txt."""

import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import Version

FILE = Path(__file__).parents[2] / "deploy" / "minimum-versions.txt"
DPKG_SECONDS = 30


@dataclass(frozen=True)
class Minimum:
    """The oldest version of something, or of one series of it."""

    kind: str
    name: str
    version: str
    reason: str


def minimums() -> list[Minimum]:
    lines = [line for line in FILE.read_text().splitlines() if line and not line.startswith("#")]
    return [Minimum(*line.split(maxsplit=3)) for line in lines]


def too_old(kind: str, found: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A sentence for each name and version that is older than it may be."""
    for name, version in found:
        least = _minimum(kind, canonicalize_name(name), version)
        if least is not None and _older(kind, version, least.version):
            yield f"{name} {version} is older than {least.version}: {least.reason}"


def has_minimum(kind: str, name: str, version: str) -> bool:
    """Whether a line is about the series of this version."""
    least = _minimum(kind, name, version)
    return least is not None and _series(least.version) == _series(version)


def too_old_in_bill(components: Iterable[dict[str, Any]]) -> list[str]:
    """The same for a bill of materials (CycloneDX), whose components have a package URL."""
    kinds = {"pkg:pypi/": "pypi", "pkg:deb/": "debian", "pkg:maven/": "maven", "pkg:github/valkey-io/valkey@": "server"}
    found: list[str] = []
    for component in components:
        for prefix, kind in kinds.items():
            if component.get("purl", "").startswith(prefix):
                found += too_old(kind, [(component["name"], component["version"])])
    return found


def _minimum(kind: str, name: str, version: str) -> Minimum | None:
    lines = [line for line in minimums() if line.kind == kind and canonicalize_name(line.name) == name]
    same_series = (line for line in lines if _series(line.version) == _series(version))
    return next(same_series, lines[-1] if lines else None)


def _series(version: str) -> list[str]:
    return re.split(r"[.-]", version)[:2]


def _older(kind: str, version: str, than: str) -> bool:
    if kind != "debian":
        return Version(version) < Version(than)
    compared = ["dpkg", "--compare-versions", version, "lt", than]
    return subprocess.run(compared, check=False, timeout=DPKG_SECONDS).returncode == 0
