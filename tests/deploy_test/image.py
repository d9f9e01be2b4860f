"""The image of the worker: built, small, and run as the manifests run it."""

import json
from typing import Any

import yaml

from tests.deploy_test import podman
from tests.deploy_test.workplace import DEPLOY, ROOT, Workplace, require

IMAGE = "localhost/hearsay:test"
LARGEST_MB = 800
USER = "10001"
CONFINED = ("--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--network=none")
# Writes to the root and to /tmp, becomes another user, and counts its capabilities, all from inside.
FROM_INSIDE = """
import json, os, pathlib
def allowed(act):
    try:
        act()
    except OSError:
        return False
    return True
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines() if ":" in line)
print(json.dumps({
    "user": os.getuid(),
    "writes to its files": allowed(lambda: pathlib.Path("/opt/hearsay/x").write_text("x")),
    "writes to the root": allowed(lambda: pathlib.Path("/x").write_text("x")),
    "writes to /tmp": allowed(lambda: pathlib.Path("/tmp/x").write_text("x")),
    "becomes root": allowed(lambda: os.setuid(0)),
    "capabilities": int(status["CapEff"], 16) | int(status["CapPrm"], 16) | int(status["CapBnd"], 16),
    "no new privileges": status["NoNewPrivs"].strip() == "1",
}))
"""
# Answers a survey of its own end to end, so that compiled loops, Arrow and the embedded Redis are all used.
COLLECTS = ("demo", "--devices", "2000", "--data", "/tmp/demo")


def worker_manifest() -> dict[str, Any]:
    """The container of the workers, as the manifests describe it."""
    manifests = yaml.safe_load_all((DEPLOY / "kubernetes" / "base" / "worker.yaml").read_text())
    (deployment,) = [manifest for manifest in manifests if manifest["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(container)


def step(place: Workplace) -> str:
    image = built(place)
    megabytes = int(place.run("podman", "image", "inspect", "--format={{.Size}}", image, within=60)) / 1e6
    require(megabytes < LARGEST_MB, f"the image has {megabytes:.0f} MB and may have {LARGEST_MB}")
    memory = worker_manifest()["resources"]["limits"]["memory"]
    limited = (*CONFINED, f"--memory={memory.replace('Gi', 'g')}", "--cpus=1")
    version = _run(place, limited, "version")
    doctor = json.loads(_run(place, limited, "doctor", "--json", may_fail=True) or "null")
    require(doctor, "`hearsay doctor --json` says nothing")
    inside = json.loads(
        place.run(
            *("podman", "run", "--rm", *limited, "--entrypoint=python", image, "-c", FROM_INSIDE), within=podman.SECONDS
        )
    )
    wanted = {
        "user": int(USER),
        "writes to its files": False,
        "writes to the root": False,
        "writes to /tmp": True,
        "becomes root": False,
        "capabilities": 0,
        "no new privileges": True,
    }
    require(inside == wanted, f"inside the container {inside}, wanted {wanted}")
    require("visitors" in _run(place, limited, *COLLECTS), "the demo in the container shows no visitors")
    return f"{megabytes:.0f} MB; {version.strip().splitlines()[0]}; read-only, no capabilities, user {USER}, {memory}"


def built(place: Workplace) -> str:
    """The image, built once in a run."""
    if "image" not in place.made:
        container = DEPLOY / "container"
        ignored = f"--ignorefile={container / 'Dockerfile.dockerignore'}"
        place.made["image"] = podman.build(place, container / "Dockerfile", IMAGE, ROOT, ignored)
    return place.made["image"]


def _run(place: Workplace, limited: tuple[str, ...], *words: str, may_fail: bool = False) -> str:
    command = ("podman", "run", "--rm", *limited, IMAGE, *words)
    if may_fail:
        return place.tried(*command, within=300).stdout
    return place.run(*command, within=300)
