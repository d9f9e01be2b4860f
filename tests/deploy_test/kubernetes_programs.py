"""kube-apiserver and kubectl, built once from the module proxy of Go and kept in the cache, by version.

The module of Kubernetes replaces its own parts by relative paths, which other modules cannot use. So a small module of
our own requires it, and replaces the same parts by their published versions.
"""

from __future__ import annotations

import fcntl
import json
import re
import tempfile
from pathlib import Path

from servers.kafka_jars import cache_directory
from tests.deploy_test.workplace import Workplace

VERSION = "1.34.3"
PROGRAMS = ("kube-apiserver", "kubectl")
BUILD_SECONDS = 3600.0


def programs(place: Workplace) -> Path:
    """The directory with the programs, built (many minutes of a processor) if they are not there yet."""
    kept = cache_directory() / f"kubernetes-{VERSION}"
    kept.parent.mkdir(parents=True, exist_ok=True)
    with (kept.parent / f"{kept.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.is_dir():
            with tempfile.TemporaryDirectory(dir=kept.parent) as scratch:
                _build(place, Path(scratch))
                (Path(scratch) / "programs").rename(kept)
    return kept


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
    imports = "".join(f'import _ "k8s.io/kubernetes/cmd/{program}/app"\n' for program in ("kube-apiserver",))
    (scratch / "needed.go").write_text(f"package main\n\n{imports}import _ \"k8s.io/kubectl/pkg/cmd\"\n\nfunc main() {{}}\n")
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
