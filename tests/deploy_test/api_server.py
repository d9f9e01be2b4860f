"""A real API server of Kubernetes with its etcd, on this machine, for the time of a block."""

import json
import os
import re
import secrets
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from servers.kafka_broker import cache_directory, cached
from servers.ports import free_port
from tests.deploy_test.workplace import StepFailed, Workplace, require, wait

START_SECONDS = 180.0
SECONDS = 120.0
KUBERNETES_VERSION = "1.34.3"
PROGRAMS_DIRECTORY = cache_directory() / f"kubernetes-{KUBERNETES_VERSION}"
PROGRAMS = ("kube-apiserver", "kubectl")
BUILD_SECONDS = 3600.0


@dataclass(frozen=True)
class ApiServer:
    """How to talk to it: by kubectl, as everybody does."""

    place: Workplace
    kubectl: Path
    config: Path

    def run(self, *words: str | Path, given: str | None = None) -> str:
        return self.place.run(*self._command(words), within=SECONDS, given=given)

    def tried(self, *words: str | Path, given: str | None = None) -> subprocess.CompletedProcess[str]:
        return self.place.tried(*self._command(words), within=SECONDS, given=given)

    def apply(self, overlay: Path, *, dry: bool = False) -> list[str]:
        """Apply an overlay by server-side apply with strict validation; returns the objects. No warning may appear."""
        words = ["apply", "--server-side", "--validate=strict", "--output=name", "--kustomize", str(overlay)]
        done = self.tried(*words, *(["--dry-run=server"] if dry else []))
        if done.returncode != 0 or "Warning" in done.stderr:
            raise StepFailed(f"{overlay.name} was not accepted as it is:\n{done.stderr.strip()}")
        return done.stdout.split()

    def refused(self, manifest: object, because: str) -> None:
        """An object must be refused, with these words."""
        words = ("apply", "--server-side", "--validate=strict", "--dry-run=server", "--filename=-")
        done = self.tried(*words, given=json.dumps(manifest))
        if done.returncode == 0:
            raise StepFailed(f"the API server accepted what it must refuse ({because})")
        if because not in done.stderr:
            raise StepFailed(f"refused, but not because of {because!r}:\n{done.stderr.strip()}")

    def _command(self, words: tuple[str | Path, ...]) -> tuple[str | Path, ...]:
        return (self.kubectl, f"--kubeconfig={self.config}", *words)


@contextmanager
def api_server(place: Workplace) -> Iterator[ApiServer]:
    """Start both, wait until they are ready, and stop them at the end."""
    built, directory = programs(place), place.path(f"api-server-{secrets.token_hex(4)}")
    directory.mkdir()
    token, port = secrets.token_hex(16), free_port()
    store = f"http://127.0.0.1:{free_port()}"
    (directory / "tokens.csv").write_text(f"{token},admin,admin,system:masters\n")
    place.run("openssl", "genrsa", "-out", directory / "accounts.key", "2048", within=SECONDS)
    given = {"directory": directory, "store": store, "port": port, "peers": free_port()}
    lines = (Path(__file__).parent / "api_server.txt").read_text().format(**given).splitlines()
    (etcd, *of_etcd), (server, *of_server) = (line.split() for line in lines if not line.startswith("#"))
    commands = [[etcd, *of_etcd], [str(built / server), *of_server]]
    config = _config(directory, port, token)
    processes = [_started(command, directory) for command in commands]
    try:
        wait(lambda: _ready(port) or _ended(processes), START_SECONDS, "API server", lambda: _logs(directory))
        require(not _ended(processes), f"the API server ended:\n{_logs(directory)}")
        yield ApiServer(place, built / "kubectl", config)
    finally:
        for process in reversed(processes):
            _stop(process)


def _started(command: list[str], directory: Path) -> subprocess.Popen[bytes]:
    with (directory / f"{Path(command[0]).name}.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, cwd=directory, env=dict(os.environ))


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(timeout=20)


def _config(directory: Path, port: int, token: str) -> Path:
    where = {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": where}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "admin"}}],
        "current-context": "here",
    }
    path = directory / "config.json"
    path.write_text(json.dumps(config))
    return path


def _ready(port: int) -> bool:
    unchecked = ssl._create_unverified_context()  # its certificate was made for this start
    try:
        with urllib.request.urlopen(f"https://127.0.0.1:{port}/readyz", timeout=5, context=unchecked) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _ended(processes: list[subprocess.Popen[bytes]]) -> bool:
    return any(process.poll() is not None for process in processes)


def _logs(directory: Path) -> str:
    return "\n".join(path.read_text(errors="replace")[-800:] for path in sorted(directory.glob("*.log")))


def programs(place: Workplace) -> Path:
    """The directory with the programs, built (many minutes of a processor) if they are not there yet."""
    return cached(PROGRAMS_DIRECTORY, partial(_build, place), "another process that builds the API server")


def _build(place: Workplace, made: Path) -> None:
    scratch = made.parent
    module = f"k8s.io/kubernetes@v{KUBERNETES_VERSION}"
    (scratch / "go.mod").write_text("module kubernetes\n")
    found = json.loads(place.run("go", "mod", "download", "-json", module, within=BUILD_SECONDS, cwd=scratch))
    definition = Path(found["GoMod"]).read_text()
    go = re.findall(r"^go .*$", definition, re.MULTILINE)[0]
    parts = sorted(set(re.findall(r"^\s*(?:replace )?(k8s\.io/\S+) => \./staging/", definition, re.MULTILINE)))
    replaced = "".join(f"\t{part} => {part} v0{KUBERNETES_VERSION[1:]}\n" for part in parts)
    (scratch / "go.mod").write_text(
        f"module kubernetes\n\n{go}\n\nrequire k8s.io/kubernetes v{KUBERNETES_VERSION}\n\nreplace (\n{replaced})\n"
    )
    version = "k8s.io/component-base/version"
    facts = {"gitVersion": f"v{KUBERNETES_VERSION}", "gitMajor": "1", "gitMinor": KUBERNETES_VERSION.split(".")[1]}
    stamped = " ".join(f"-X {version}.{name}={value}" for name, value in facts.items())
    packages = [f"k8s.io/kubernetes/cmd/{program}" for program in PROGRAMS]
    made.mkdir()
    place.run(
        *("nice", "go", "build", "-mod=mod", "-trimpath", f"-ldflags=-s -w {stamped}", "-o", made),
        *packages,
        within=BUILD_SECONDS,
        cwd=scratch,
        environment={"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false"},
    )
