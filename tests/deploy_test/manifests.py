"""Every manifest against the published schemas and a real API server: strict, restricted, and what is refused."""

import copy
import json
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.deploy_test.api_server import ApiServer, api_server
from tests.deploy_test.workplace import DEPLOY, Workplace, require

KUBERNETES = DEPLOY / "kubernetes"
OVERLAYS = ("base", "tls")
NAMESPACE = "hearsay"
NAMESPACE_FILE = KUBERNETES / "base" / "namespace.yaml"


def step(place: Workplace) -> str:
    objects: set[str] = set()
    with api_server(place) as server:
        server.run("apply", "--server-side", "--validate=strict", f"--filename={NAMESPACE_FILE}")
        for name in OVERLAYS:
            objects |= accepted(server, name)
        version = json.loads(server.run("version", "--output=json"))["serverVersion"]["gitVersion"]
        cases = refused(server)
    return f"{len(objects)} objects of {' and '.join(OVERLAYS)} accepted by kube-apiserver {version}, {cases} refused"


def accepted(server: ApiServer, overlay: str) -> set[str]:
    """Try an overlay, apply it, find every object of it again, and create the pods that it would make."""
    directory = KUBERNETES / overlay
    tried, applied = server.apply(directory, dry=True), server.apply(directory)
    require(tried == applied, f"{overlay}: a dry run names other objects than what was applied")
    found = server.run("get", "--kustomize", directory, "--output=name").split()
    require(len(found) == len(applied), f"{overlay}: {len(applied)} objects were applied, {len(found)} are there")
    for pod in pods(server, overlay):
        server.run("create", "--dry-run=server", "--validate=strict", "--filename=-", given=json.dumps(pod))
    # A job cannot be changed, and the next overlay has another one of the same name.
    server.run("delete", "job", "hearsay-topics", f"--namespace={NAMESPACE}", "--cascade=background")
    return set(applied)


def pods(server: ApiServer, overlay: str) -> list[dict[str, Any]]:
    """The pods that the workloads of an overlay would make: the API server checks security when these are created."""
    rendered = server.run("kustomize", KUBERNETES / overlay)
    made = []
    for manifest in yaml.safe_load_all(rendered):
        if manifest["kind"] in ("Deployment", "Job", "StatefulSet"):
            template = manifest["spec"]["template"]
            metadata = {**template["metadata"], "name": manifest["metadata"]["name"], "namespace": NAMESPACE}
            claims = [claim["metadata"]["name"] for claim in manifest["spec"].get("volumeClaimTemplates", ())]
            claimed = [{"name": name, "persistentVolumeClaim": {"claimName": f"{name}-0"}} for name in claims]
            spec = {**template["spec"], "volumes": [*template["spec"].get("volumes", ()), *claimed]}
            made.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    require(made, f"{overlay} has no workload")
    return made


def refused(server: ApiServer) -> int:
    """What a check that accepts everything would accept, too."""
    pod = pods(server, "base")[0]

    def changed(change: str, value: object) -> dict[str, Any]:
        """The pod, with one setting of it or (after a colon) of its container changed."""
        other = copy.deepcopy(pod)
        where, _, name = change.rpartition(":")
        place = other["spec"]["containers"][0]["securityContext"] if where else other["spec"]
        place[name] = value
        return other

    cases = {
        "runAsNonRoot": changed("securityContext", {"seccompProfile": {"type": "RuntimeDefault"}}),
        "seccompProfile": changed("securityContext", {"runAsNonRoot": True}),
        "allowPrivilegeEscalation": changed("container:allowPrivilegeEscalation", True),
        "unrestricted capabilities": changed("container:capabilities", {}),
        "hostNetwork": changed("hostNetwork", True),
        "hostPath": changed("volumes", [{"name": name, "hostPath": {"path": "/"}} for name in ("secrets", "scratch")]),
        "field not declared in schema": changed("restartPolicies", "Always"),
        "Unsupported value": changed("restartPolicy", "Sometimes"),
    }
    for because, manifest in cases.items():
        server.refused(manifest, because)
    return len(cases)


VERSION = "1.34"


def against_schemas(place: Workplace) -> str:
    files = [
        KUBERNETES / part / name
        for part in ("base", "edge")
        for name in yaml.safe_load((KUBERNETES / part / "kustomization.yaml").read_text())["resources"]
    ]
    tool = Path(sys.executable).parent / "kubernetes-validate"
    place.run(tool, "--strict", f"--kubernetes-version={VERSION}", *files, within=300)
    wrong = place.path("wrong.yaml")
    wrong.write_text((KUBERNETES / "base" / "worker.yaml").read_text().replace("  replicas: 2", "  replicates: 2"))
    refused = place.tried(tool, "--strict", f"--kubernetes-version={VERSION}", wrong, within=300)
    require(refused.returncode != 0, "kubernetes-validate accepts a setting that does not exist")
    return f"{len(files)} files are valid for Kubernetes {VERSION}"
