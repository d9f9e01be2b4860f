"""The local stack: a Kafka broker and a Redis in one directory, which run in the background until they are stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hearsay.data_directory import DataDirectory
from memo_store.store import MemoStore
from protocols.errors import ServerError
from servers.kafka_broker import KafkaBroker
from servers.kafka_jars import java, kafka_jars
from servers.private_files import open_private, private_directory, write_private
from servers.processes import ServerProcess, lock_within
from servers.redis_server import RedisServer
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, create

Step = Callable[[int, int, str], None]
ALONE_SECONDS = 1200.0
"""How long another `up` may take: it may be fetching Kafka."""


@dataclass(frozen=True)
class ServerStatus:
    """The status of one server. A server that runs may not answer yet, or no longer."""

    name: str
    pid: int | None
    answers: bool
    address: str | None
    log: Path


class Stack:
    """A Kafka broker, a Redis, an operator's clock key, and a settings file with which commands use them.

    `up` and `down` are idempotent. Ports, keys and data are kept from one `up` to the next.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = Path(directory).resolve()
        self.settings_file = self.directory / "hearsay.env"
        self.redis = RedisServer(self.directory / "redis")

    @property
    def kafka(self) -> KafkaBroker:
        """The broker, on the ports that are recorded in its directory."""
        return KafkaBroker(self.directory / "kafka")

    def up(self, port: int | None = None, step: Step = lambda done, total, what: None) -> None:
        """Start what is not running, wait until it answers, and create the missing topics."""
        with self._alone():
            step(0, 4, "checking Kafka's program files (43 MB, downloaded once)")
            java()
            kafka_jars()
            step(1, 4, "starting Kafka")
            broker = self._broker_on(port).ensure()
            step(2, 4, "starting Redis")
            self._ensure_redis()
            step(3, 4, "creating the topics")
            create(KafkaSettings(bootstrap=broker.bootstrap), Topics())
            self._write_settings(broker)

    def down(self) -> None:
        """Stop both servers; their data stays."""
        if self.directory.exists():
            with self._alone():
                self.kafka.stop()
                self.redis.stop()

    def status(self) -> list[ServerStatus]:
        """The status of each server."""
        servers: list[ServerProcess] = [self.kafka, self.redis]
        return [_status(server) for server in servers]

    def _ensure_redis(self) -> None:
        """Start Redis. A new one has lost nothing, which is declared before it is used."""
        new = not self.settings_file.exists()
        self.redis.ensure()
        if new:
            with MemoStore(self.redis.url) as store:
                store.confirm_history()

    def _broker_on(self, port: int | None) -> KafkaBroker:
        broker = self.kafka
        if port is None or port == broker.port:
            return broker
        if broker.running:
            raise ServerError(
                f"Kafka is running on port {broker.port}, not {port}",
                "run `hearsay stack down` first, or leave out --port",
            )
        return KafkaBroker(broker.directory, port=port)

    def _write_settings(self, broker: KafkaBroker) -> None:
        DataDirectory(self.directory).clock_key()
        write_private(
            self.settings_file,
            f"HEARSAY_KAFKA_BOOTSTRAP={broker.bootstrap}\n"
            f"HEARSAY_REDIS_URL={self.redis.url}\n"
            f"HEARSAY_CLOCK_KEY_FILE={self.directory / 'clock.key'}\n",
        )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One `up` or `down` at a time; the next one waits."""
        private_directory(self.directory)
        with open_private(self.directory / "stack.lock", "w") as lock:
            other = f"another `hearsay stack` command in {self.directory}"
            lock_within(ALONE_SECONDS, lock, other, "wait for it, or end it, and run the same command again")
            yield


def _status(server: ServerProcess) -> ServerStatus:
    pid = server.pid
    if pid is None:
        return ServerStatus(server.name, None, False, None, server.log_file)
    return ServerStatus(server.name, pid, server.answers(), server.address, server.log_file)
