"""The services of deploy/compose, started by podman-compose from a copy of deploy/, in the order of their needs."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from servers.ports import free_port
from tests.deploy_test import image, podman
from tests.deploy_test.podman import stand_in
from tests.deploy_test.workplace import DEPLOY, StepFailed, Workplace, wait
from tests.docs.pages import ROOT, Page

PROJECT = "hearsay-deploy-test"
READY_SECONDS = 300.0


@dataclass
class Cluster:
    """The containers of one `compose up`."""

    place: Workplace
    directory: Path
    ports: dict[str, int]

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.ports['kafka']}"

    def compose(self, *words: str, within: float = READY_SECONDS) -> str:
        tool = Path(sys.executable).parent / "podman-compose"
        told = ("--in-pod=false", f"--project-name={PROJECT}", "--profile=monitoring")
        return self.place.run(tool, *told, *words, within=within, cwd=self.directory)

    def up(self, *services: str) -> None:
        """Start services without those that they depend on, and wait until they are healthy."""
        self.compose("up", "--detach", "--no-deps", "--no-build", *services)
        for service in services:
            for container in self.containers(service):
                if self.has_health_check(container):
                    podman.healthy(self.place, container, READY_SECONDS)

    def containers(self, service: str) -> list[str]:
        label = f"label=com.docker.compose.service={service}"
        names = self._podman("ps", "--all", f"--filter={label}", "--format={{.Names}}")
        return sorted(names.split())

    def has_health_check(self, container: str) -> bool:
        return self._podman("inspect", "--format={{.Config.Healthcheck}}", container).strip() != "<nil>"

    def state(self, container: str) -> str:
        return self._podman("inspect", "--format={{.State.Status}}", container).strip()

    def finished(self, container: str) -> None:
        """Wait until a container that does one thing has done it."""
        busy = ("created", "running", "initialized", "configured")
        ended = f"end of {container}"
        wait(
            lambda: self.state(container) not in busy, READY_SECONDS, ended, lambda: podman.logs(self.place, container)
        )
        code = self._podman("inspect", "--format={{.State.ExitCode}}", container).strip()
        if code != "0":
            raise StepFailed(f"{container} ended with code {code}:\n{podman.logs(self.place, container)}")

    def kill(self, container: str) -> None:
        """End a container at once, as a machine that fails would; and start it again if nothing else does."""
        self._podman("kill", "--signal=KILL", container)

    def start_again(self, container: str) -> None:
        if self.state(container) != "running":
            self._podman("start", container)
        podman.healthy(self.place, container, READY_SECONDS)

    def _podman(self, *words: str) -> str:
        return self.place.run("podman", *words, within=podman.SECONDS)


def steps() -> tuple[list[str], list[list[str]]]:
    """What docs/deploying.md does on one machine: lines for a shell, and then the words of each `docker compose`."""
    (text,) = [block.text for block in Page(ROOT / "docs/deploying.md").blocks if "docker compose up" in block.text]
    lines = [line for line in text.splitlines() if not line.startswith("cd ")]
    calls = [shlex.split(line)[2:] for line in lines if line.startswith("docker compose ")]
    return [line for line in lines if not line.startswith("docker compose ")], calls


@contextmanager
def cluster(place: Workplace, clock_key: bytes) -> Iterator[Cluster]:
    """A copy of deploy/ with a key, and everything that `compose` needs to start from it; all removed at the end."""
    copy = place.path("copy", "deploy")
    shutil.copytree(DEPLOY, copy, dirs_exist_ok=True)
    directory = copy / "compose"
    services = directory / "compose.yaml"
    # How often to ask during the start: unknown to podman before 4.4. Nothing else differs from what is shipped.
    services.write_text(re.sub(r"^ *start_interval:.*\n", "", services.read_text(), flags=re.MULTILINE))
    (directory / "surveys").mkdir(exist_ok=True)
    ports = {name: free_port() for name in ("kafka", "redis", "prometheus", "gateway", "dashboard")}
    images = {"hearsay": image.built(place)}
    images |= {name: stand_in(place, name) for name in ("kafka", "redis", "prometheus")}
    lines = [f"IMAGE_{name.upper()}={tag}" for name, tag in images.items()]
    lines += [f"PORT_{name.upper()}={port}" for name, port in ports.items()]
    (directory / ".env").write_text("\n".join(lines) + "\n")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    place.run("bash", "-ec", "\n".join(steps()[0]), within=READY_SECONDS, cwd=directory, environment={"PATH": path})
    (directory / "clock.key").write_text(clock_key.hex())  # keeps its mode
    running = Cluster(place, directory, ports)
    try:
        yield running
    finally:
        try:
            running.compose("down", "--volumes", "--timeout=10")
        except StepFailed as failed:
            place.note(str(failed))
