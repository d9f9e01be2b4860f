"""Kafka's program files: fetched once by Maven from deploy/kafka/pom.xml, kept in a cache, shared by every broker."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

from protocols.errors import ServerError
from servers.private_files import private_directory
from servers.processes import lock_within, run_within

DEPLOY = Path(__file__).parent.parent / "deploy" / "kafka"
"""In the repository and in an installed package alike."""
POM = DEPLOY / "pom.xml"
FETCH_SECONDS = 900.0
"""How long Maven may take: 43 MB over a slow line."""


def java() -> Path:
    """The Java to run: that of JAVA_HOME, else the one on PATH."""
    return _program(
        "java", "JAVA_HOME", "Java", "install a Java 17 runtime (Debian: apt-get install default-jre-headless)"
    )


def maven() -> Path:
    """The Maven that fetches Kafka the first time."""
    return _program("mvn", "MAVEN_HOME", "Maven", "install Maven (Debian: apt-get install maven)")


def kafka_version() -> str:
    """The version of Kafka that the pom names."""
    version = ElementTree.parse(POM).getroot().findtext("{http://maven.apache.org/POM/4.0.0}version")
    assert version is not None, f"{POM} has no version"
    return version


def cache_directory() -> Path:
    """Where fetched files are kept: HEARSAY_CACHE, else a directory in the user's cache."""
    users = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("HEARSAY_CACHE") or users / "hearsay")


def jars_directory() -> Path:
    """Where the jars of this pom are kept, once fetched."""
    return cache_directory() / f"kafka-{kafka_version()}-{hashlib.sha256(POM.read_bytes()).hexdigest()[:8]}"


def kafka_jars() -> Path:
    """The directory with Kafka's jars, fetched (43 MB) if it is not there yet."""
    return cached(jars_directory(), _fetch, "another process that fetches Kafka")


def cached(directory: Path, make: Callable[[Path], None], maker: str) -> Path:
    """A directory of the cache, which `make` fills if there is none.

    Several processes may ask at once: one makes it, the others wait. It appears complete or not at all.
    """
    if not directory.is_dir():
        private_directory(directory.parent)
        with (directory.parent / f"{directory.name}.lock").open("w") as lock:
            lock_within(FETCH_SECONDS, lock, maker, "wait for it, or end it, and run the same command again")
            if not directory.is_dir():
                with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
                    made = Path(scratch) / "made"
                    make(made)
                    made.rename(directory)
    return directory


def _fetch(into: Path) -> None:
    goal = "dependency:copy-dependencies"
    command = [str(maven()), "-q", "-B", "-f", str(POM), goal, "-DincludeScope=runtime", f"-DoutputDirectory={into}"]
    advice = "Maven must reach its repositories once: check the network and Maven's settings"
    done = run_within(FETCH_SECONDS, command, f"Maven, which fetches Kafka {kafka_version()},", advice)
    if done.returncode != 0 or not any(into.glob("kafka-clients-*.jar")):
        shown = (done.stdout + done.stderr).strip()[-1500:]
        raise ServerError(f"Maven could not fetch Kafka {kafka_version()}:\n{shown}", advice)


def _program(name: str, home: str, title: str, hint: str) -> Path:
    found = shutil.which(name, path=f"{os.environ[home]}/bin" if home in os.environ else None) or shutil.which(name)
    if found is None:
        raise ServerError(f"{title} is not installed", hint)
    return Path(found)
