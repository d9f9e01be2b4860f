"""kube-apiserver and kubectl, built once from the module proxy of Go and kept in the cache, by version.

The module of Kubernetes replaces its own parts by relative paths, which other modules cannot use. So a small module of
our own requires it, and replaces the same parts by their published versions.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.deploy_test.cache import kept
from tests.deploy_test.workplace import Workplace

VERSION = "1.34.3"
KEPT = f"kubernetes-{VERSION}"
"""Their name in the cache."""
PROGRAMS = ("kube-apiserver", "kubectl")
BUILD_SECONDS = 3600.0


def programs(place: Workplace) -> Path:
    """The directory with the programs, built (many minutes of a processor) if they are not there yet."""

    def build(scratch: Path) -> Path:
        _build(place, scratch)
        return scratch / "programs"

    return kept(KEPT, build)


def _build(place: Workplace, scratch: Path) -> None:
    module = f"k8s.io/kubernetes@v{VERSION}"
    (scratch / "go.mod").write_text("module kubernetes\n")
    found = json.loads(place.run("go", "mod", "download", "-json", module, within=BUILD_SECONDS, cwd=scratch))
    definition = Path(found["GoMod"]).read_text()
    go = re.findall(r"^go .*$", definition, re.MULTILINE)[0]
    parts = sorted(set(re.findall(r"^\s*(?:replace )?(k8s\.io/\S+) => \./staging/", definition, re.MULTILINE)))
    replaced = "".join(f"\t{part} => {part} v0{VERSION[1:]}\n" for part in parts)
    (scratch / "go.mod").write_text(
        f"module kubernetes\n\n{go}\n\nrequire k8s.io/kubernetes v{VERSION}\n\nreplace (\n{replaced})\n"
    )
    version = "k8s.io/component-base/version"
    facts = {"gitVersion": f"v{VERSION}", "gitMajor": "1", "gitMinor": VERSION.split(".")[1]}
    stamped = " ".join(f"-X {version}.{name}={value}" for name, value in facts.items())
    packages = [f"k8s.io/kubernetes/cmd/{program}" for program in PROGRAMS]
    (scratch / "programs").mkdir()
    place.run(
        *("nice", "go", "build", "-mod=mod", "-trimpath", f"-ldflags=-s -w {stamped}", "-o", scratch / "programs"),
        *packages,
        within=BUILD_SECONDS,
        cwd=scratch,
        environment={"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false"},
    )
