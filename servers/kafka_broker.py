"""A real Kafka broker on this machine, without containers: one combined KRaft node.

Its program files are fetched once by Maven from deploy/kafka/pom.xml, kept in a cache, and shared by every broker.
"""

import hashlib
import os
import re
import secrets
import shutil
import socket
import tempfile
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from string import Template
from xml.etree import ElementTree

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from protocols.errors import ServerError
from servers.kafka_clients import attempted
from servers.ports import free_port, is_free
from servers.private_files import UMASK, private_directory, write_private
from servers.processes import ServerProcess, lock_within, run_within

DEPLOY = Path(__file__).parent.parent / "deploy" / "kafka"
"""In the repository and in an installed package alike."""
POM = DEPLOY / "pom.xml"
FETCH_SECONDS = 900.0
"""How long Maven may take: 43 MB over a slow line."""
HEAP = "512m"
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""For a Java that ends soon: to compile and to collect well would cost more than it saves."""
ANSWER_SECONDS = 10.0
FORMAT_SECONDS = 120.0
"""How long Kafka may take to prepare an empty directory: Java starts, and the machine may be busy."""


class KafkaBroker(ServerProcess):
    """A broker with its data, settings, log and pid file in `directory`.

    Its port is chosen once and recorded in the directory, so that a restarted broker has the same address.
    `settings` are added to server.properties and win over the template's. Brokers of one cluster are given the same
    `cluster_id`; one alone makes its own.
    """

    name = "kafka"

    def __init__(self, directory: Path, *, port: int | None = None, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(directory)
        self.properties = self.directory / "server.properties"
        self.data = self.directory / "data"
        self.port = port or self._recorded_port() or free_port()
        self.settings = dict(settings or {})
        self.cluster_id = urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")

    @property
    def bootstrap(self) -> str:
        """What a Kafka client takes as bootstrap server."""
        return f"127.0.0.1:{self.port}"

    address = bootstrap

    def prepare(self) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={DEPLOY / 'log4j2.xml'}"
        command = [str(java()), f"-Xmx{HEAP}", "-XX:+ExitOnOutOfMemoryError", logging, "-cp", f"{kafka_jars()}/*"]
        if not is_free(self.port):
            raise ServerError(f"port {self.port} is taken by another program", "choose another with --port")
        self._configure()
        if not (self.data / "meta.properties").exists():
            self._format(command)
        return [*command, "kafka.Kafka", str(self.properties)]

    def answers(self) -> bool:
        with suppress(OSError, KafkaError):
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            with closing(attempted(KafkaAdminClient, ANSWER_SECONDS, bootstrap_servers=self.bootstrap)) as admin:
                return bool(admin.describe_cluster()["brokers"])
        return False

    def _configure(self) -> None:
        template = Template((DEPLOY / "server.properties").read_text())
        # Only the node itself connects to its controller, so the port may change at every start.
        ours = template.substitute(PORT=self.port, CONTROLLER_PORT=free_port(), DATA=self.data)
        extra = "".join(f"{name}={value}\n" for name, value in self.settings.items())
        write_private(self.properties, ours + extra)

    def _format(self, java_command: list[str]) -> None:
        named = f"--cluster-id={self.cluster_id}"  # one argument, because an id may begin with a dash
        tool = ["kafka.tools.StorageTool", "format", "--ignore-formatted", named, "-c", str(self.properties)]
        advice = "Kafka 4 needs Java 17 or later and a directory it may write to"
        command = [java_command[0], *SHORT_LIVED, *java_command[1:], *tool]
        done = run_within(FORMAT_SECONDS, command, f"Kafka, which prepares {self.data},", advice, UMASK)
        if done.returncode != 0:
            shown = (done.stdout + done.stderr).strip()[-1500:]
            raise ServerError(f"Kafka could not prepare {self.data}:\n{shown}", advice)

    def _recorded_port(self) -> int | None:
        if not self.properties.exists():
            return None
        match = re.search(r"^listeners=CLIENT://127\.0\.0\.1:(\d+)", self.properties.read_text(), re.M)
        return int(match[1]) if match else None


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
