"""A real Kafka broker on this machine, without containers: one combined KRaft node."""

import re
import secrets
import socket
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from string import Template

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from protocols.errors import ServerError
from servers.kafka_clients import attempted
from servers.kafka_jars import DEPLOY, java, kafka_jars
from servers.ports import free_port, is_free
from servers.private_files import UMASK, write_private
from servers.processes import ServerProcess, run_within

HEAP = "512m"
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""For a Java that ends soon: to compile and to collect well would cost more than it saves."""
ANSWER_SECONDS = 10.0
FORMAT_SECONDS = 120.0
"""How long Kafka may take to prepare an empty directory: Java starts, and the machine may be busy."""


class KafkaBroker(ServerProcess):
    """A broker with its data, settings, log and pid file in `directory`.

    Its port is chosen once and recorded in the directory, so that a restarted broker has the same address.
    `settings` are added to server.properties and win over the template's. Brokers of one cluster are given its id;
    one alone makes its own.
    """

    name = "kafka"

    def __init__(
        self,
        directory: Path,
        *,
        port: int | None = None,
        settings: Mapping[str, str] | None = None,
        cluster_id: str | None = None,
    ) -> None:
        super().__init__(directory)
        self.properties = self.directory / "server.properties"
        self.data = self.directory / "data"
        self.port = port or self._recorded_port() or free_port()
        self.settings = dict(settings or {})
        self._cluster_id = cluster_id or new_cluster_id()

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
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            admin = attempted(KafkaAdminClient, ANSWER_SECONDS, bootstrap_servers=self.bootstrap)
        except (OSError, KafkaError):
            return False
        try:
            return bool(admin.describe_cluster()["brokers"])
        except KafkaError:
            return False
        finally:
            admin.close()

    def _configure(self) -> None:
        template = Template((DEPLOY / "server.properties").read_text())
        # Only the node itself connects to its controller, so the port may change at every start.
        ours = template.substitute(PORT=self.port, CONTROLLER_PORT=free_port(), DATA=self.data)
        extra = "".join(f"{name}={value}\n" for name, value in self.settings.items())
        write_private(self.properties, ours + extra)

    def _format(self, java_command: list[str]) -> None:
        named = f"--cluster-id={self._cluster_id}"  # one argument, because an id may begin with a dash
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


def new_cluster_id() -> str:
    """An id as Kafka takes it."""
    return urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
