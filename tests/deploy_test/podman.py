"""Containers by podman, with storage, networks and settings of this run's own: nothing stays on the machine."""

import os
import shutil
from pathlib import Path

from servers.kafka_broker import DEPLOY as KAFKA
from servers.kafka_broker import kafka_jars
from tests.deploy_test.workplace import ROOT, StepFailed, Workplace, last_lines, wait

BASE = "localhost/base:bookworm"
BUILD_SECONDS = 1800.0
SECONDS = 120.0
CA = Path("/etc/ssl/certs/ca-certificates.crt")
IMAGES = ROOT / "tests" / "deploy_test" / "images"


def prepare(place: Workplace) -> None:
    """Tell every later podman where to keep its things."""
    directory = place.path("podman")
    directory.mkdir(exist_ok=True)
    for name in ("containers.conf", "storage.conf"):
        (directory / name).write_text((IMAGES / name).read_text().format(directory=directory))
    place.environment |= {
        "CONTAINERS_CONF": str(directory / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(directory / "storage.conf"),
    }


def base(place: Workplace) -> str:
    """An image of Debian with Python, made without a registry."""
    if "base" not in place.made:
        prepare(place)
        tar = place.path("base.tar")
        include = "--include=python3,python3-venv,ca-certificates"
        # As in the slim images of Debian that registries have.
        left_out = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("man", "doc", "locale", "info")]
        place.run("mmdebstrap", "--variant=minbase", include, *left_out, "bookworm", tar, within=BUILD_SECONDS)
        place.run("podman", "import", tar, BASE, within=BUILD_SECONDS)
        tar.unlink()
        place.made["base"] = BASE
    return place.made["base"]


def build(place: Workplace, file: Path, tag: str, context: Path, *options: str) -> str:
    """Build an image on the base, with the network and the certificates of this machine."""
    told = [f"--build-arg=BASE={base(place)}", "--network=host", "--pull=never"]
    if CA.exists():
        told += [f"--volume={CA}:{CA}:ro", f"--env=PIP_CERT={CA}"]
    place.run("podman", "build", *told, *options, f"--file={file}", f"--tag={tag}", context, within=BUILD_SECONDS)
    return tag


def clean(place: Workplace) -> None:
    """Remove every container, network and image of this run."""
    if "CONTAINERS_CONF" not in place.environment:
        return
    for words in (["rm", "--all", "--force", "--time=5"], ["network", "prune", "--force"], ["rmi", "--all", "--force"]):
        try:
            place.tried("podman", *words, within=SECONDS)
        except StepFailed as failed:
            place.note(str(failed))
    for mounted in _mounts(place.path("podman")):
        place.tried("umount", "--lazy", mounted, within=SECONDS)


def _mounts(below: Path) -> list[str]:
    """What is still mounted below a directory, the innermost first."""
    points = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    return sorted((point for point in points if point.startswith(f"{below}{os.sep}")), reverse=True)


def healthy(place: Workplace, container: str, within: float) -> None:
    """Ask a container's own health check until it passes: without systemd, podman asks nobody by itself."""
    asked = ("podman", "healthcheck", "run", container)
    passes = f"healthy {container}"
    wait(lambda: place.tried(*asked, within=SECONDS).returncode == 0, within, passes, lambda: logs(place, container))


def logs(place: Workplace, container: str) -> str:
    return last_lines(place.tried("podman", "logs", "--tail=15", container, within=SECONDS))


def stand_in(place: Workplace, name: str) -> str:
    """The image that stands in for one, built once in a run."""
    if name not in place.made:
        context = place.path("contexts", name)
        context.mkdir(exist_ok=True)
        if name == "kafka":
            shutil.copytree(kafka_jars(), context / "jars", dirs_exist_ok=True)
            shutil.copy(KAFKA / "log4j2.xml", context)
            shutil.copy(IMAGES / "kafka.sh", context)
        place.made[name] = build(place, IMAGES / f"{name}.Containerfile", f"localhost/{name}:test", context)
    return place.made[name]
