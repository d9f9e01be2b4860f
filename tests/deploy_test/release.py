"""What a release adds: images named by their digests, and a bill of materials of the image."""

import json
import re
import shutil
import sys
import tomllib
from pathlib import Path

import yaml

from servers.distribution import DISTRIBUTION
from tests.deploy_test import image, podman
from tests.deploy_test.api_server import PROGRAMS_DIRECTORY
from tests.deploy_test.workplace import DEPLOY, ROOT, StepFailed, Workplace, require
from tests.helpers.minimum_versions import too_old_in_bill


def step(place: Workplace) -> str:
    built = image.built(place)
    components = bill_of_materials(place, built)
    digest = place.run("podman", "image", "inspect", "--format={{.Digest}}", built, within=60).strip()
    with_digests(place, digest)
    return f"{components} packages in the bill of materials; overlays and compose name {digest[:19]}…"


def bill_of_materials(place: Workplace, built: str) -> int:
    """A bill of the image, which has its packages at the versions of constraints.txt, and those of Debian."""
    mounted = place.run("podman", "image", "mount", built, within=podman.SECONDS).strip()
    try:
        printed = place.run(sys.executable, ROOT / "scripts" / "sbom.py", mounted, within=300)
    finally:
        place.run("podman", "image", "unmount", built, within=podman.SECONDS)
    place.path("sbom.json").write_text(printed)
    components = json.loads(printed)["components"]
    versions = {component["name"].lower().replace("_", "-"): component["version"] for component in components}
    require(versions.get(DISTRIBUTION) == _version(), "the bill does not have this release of hearsay")
    tested = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    tested = {name.lower().replace("_", "-"): version for name, version in tested.items()}
    for name in ("numpy", "pyarrow", "faust-streaming", "kafka-python", "redis", "numba"):
        require(
            versions.get(name) == tested[name], f"the bill has {name} {versions.get(name)}, tested is {tested[name]}"
        )
    require("libc6" in versions, "the bill does not have the packages of the base")
    require(any(one["name"] == "Valkey" for one in components), "the bill does not have the embedded Valkey")
    old = too_old_in_bill(components)
    require(not old, "; ".join(old))
    return len(components)


def with_digests(place: Workplace, digest: str) -> None:
    """The script that names images by digests: what it writes, and what it refuses."""
    clone = place.path("digests")
    shutil.copytree(DEPLOY, clone / "deploy", dirs_exist_ok=True)
    (clone / "scripts").mkdir(exist_ok=True)
    script = shutil.copy(ROOT / "scripts" / "image-digests.sh", clone / "scripts")
    names = {name: f"registry.example.org/{name}@{digest}" for name in ("hearsay", "kafka", "redis", "prometheus")}
    for overlay in ("base", "strimzi", "tls"):
        place.run("sh", script, overlay, *(f"{name}={named}" for name, named in names.items()), within=60)
        images = rendered_images(place, clone)
        require(images == {names["hearsay"]}, f"{overlay}: manifests with digests run {images}")
    written = dict(
        line.split("=", 1) for line in (clone / "deploy/compose/.env").read_text().splitlines() if "=" in line
    )
    require(
        written == {f"IMAGE_{name.upper()}": named for name, named in names.items()},
        "compose does not have the digests",
    )
    for wrong in ("hearsay=registry.example.org/hearsay:latest", f"other={names['kafka']}", "hearsay"):
        if place.tried("sh", script, "base", wrong, within=60).returncode == 0:
            raise StepFailed(f"image-digests.sh accepts {wrong}")


def rendered_images(place: Workplace, clone: Path) -> set[str]:
    """The images that the overlay with digests runs, as kubectl renders it; as written, where there is no kubectl."""
    release = clone / "deploy" / "kubernetes" / "release"
    kubectl = PROGRAMS_DIRECTORY / "kubectl"
    if not kubectl.exists():
        (named,) = yaml.safe_load((release / "kustomization.yaml").read_text())["images"]
        return {f"{named['newName']}@{named['digest']}"}
    rendered = yaml.safe_load_all(place.run(kubectl, "kustomize", release, within=120))
    specs = [manifest["spec"]["template"]["spec"] for manifest in rendered if "template" in manifest.get("spec", {})]
    return {container["image"] for spec in specs for container in spec["containers"]}


def _version() -> str:
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])
