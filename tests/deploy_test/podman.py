"""Containers by podman, with storage, networks and settings of this run's own: nothing stays on the machine."""

import os
import shutil
import time
from pathlib import Path

from servers.kafka_jars import DEPLOY as KAFKA
from servers.kafka_jars import kafka_jars
from tests.deploy_test.workplace import ROOT, StepFailed, Workplace

BASE = "localhost/base:bookworm"
BUILD_SECONDS = 1800.0
SECONDS = 120.0
CA = Path("/etc/ssl/certs/ca-certificates.crt")
# Where the machine forbids raising limits, podman's own defaults fail; and crun cannot use hybrid cgroups.
CONTAINERS_CONF = """
[containers]
default_ulimits = ["nofile=16384:16384", "nproc=32768:32768"]
log_driver = "k8s-file"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "{directory}/libpod"
[network]
network_backend = "netavark"
network_config_dir = "{directory}/networks"
"""
STORAGE_CONF = """
[storage]
driver = "overlay"
graphroot = "{directory}/storage"
runroot = "{directory}/run"
"""
IMAGES = ROOT / "tests" / "deploy_test" / "images"


def prepare(place: Workplace) -> None:
    """Tell every later podman where to keep its things."""
    directory = place.path("podman")
    directory.mkdir(exist_ok=True)
    for name, text in (("containers.conf", CONTAINERS_CONF), ("storage.conf", STORAGE_CONF)):
        (directory / name).write_text(text.format(directory=directory))
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
    deadline = time.monotonic() + within
    while True:
        asked = place.tried("podman", "healthcheck", "run", container, within=SECONDS)
        if asked.returncode == 0:
            return
        if time.monotonic() > deadline:
            logs = place.tried("podman", "logs", "--tail=15", container, within=SECONDS)
            raise StepFailed(f"{container} was not healthy within {within:.0f} seconds:\n{logs.stdout}{logs.stderr}")
        time.sleep(1)


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
