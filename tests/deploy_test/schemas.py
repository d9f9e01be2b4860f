"""The manifests against the published schemas of Kubernetes: seconds, without a server."""

import sys
from pathlib import Path

import yaml

from tests.deploy_test.manifests import KUBERNETES
from tests.deploy_test.workplace import Workplace, require

VERSION = "1.34"


def step(place: Workplace) -> str:
    base = yaml.safe_load((KUBERNETES / "base" / "kustomization.yaml").read_text())
    files = [KUBERNETES / "base" / name for name in base["resources"]]
    tool = Path(sys.executable).parent / "kubernetes-validate"
    place.run(tool, "--strict", f"--kubernetes-version={VERSION}", *files, within=300)
    wrong = place.path("wrong.yaml")
    wrong.write_text((KUBERNETES / "base" / "worker.yaml").read_text().replace("  replicas: 2", "  replicates: 2"))
    refused = place.tried(tool, "--strict", f"--kubernetes-version={VERSION}", wrong, within=300)
    require(refused.returncode != 0, "kubernetes-validate accepts a setting that does not exist")
    return f"{len(files)} files are valid for Kubernetes {VERSION}"
