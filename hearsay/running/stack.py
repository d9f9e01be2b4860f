"""The local stack: a Kafka broker and a Redis in one directory, which run in the background until they are stopped."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hearsay.data_directory import DataDirectory
from hearsay.terminal.console import Step, no_step
from memo_store.store import MemoStore
from protocols.errors import ServerError
from servers.kafka_broker import KafkaBroker, java, kafka_jars
from servers.private_files import open_private, private_directory, write_private
from servers.processes import ServerProcess, lock_within
from servers.redis_server import RedisServer
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, create

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

    def up(self, port: int | None = None, step: Step = no_step) -> None:
        """Start what is not running, wait until it answers, and create the missing topics."""
        with self._alone():
            step(0, 4, "checking Kafka's program files (43 MB, downloaded once)")
            java()
            kafka_jars()
            step(1, 4, "starting Kafka")
            broker = self.kafka
            if port not in (None, broker.port):
                if broker.running:
                    raise ServerError(
                        f"Kafka is running on port {broker.port}, not {port}",
                        "run `hearsay stack down` first, or leave out --port",
                    )
                broker = KafkaBroker(broker.directory, port=port)
            broker.ensure()
            step(2, 4, "starting Redis")
            new = not self.settings_file.exists()
            self.redis.ensure()
            if new:  # it has lost nothing, which is declared before it is used
                with MemoStore(self.redis.url) as store:
                    store.confirm_history()
            step(3, 4, "creating the topics")
            create(KafkaSettings(bootstrap=broker.bootstrap), Topics())
            DataDirectory(self.directory).clock_key()
            write_private(
                self.settings_file,
                f"HEARSAY_KAFKA_BOOTSTRAP={broker.bootstrap}\n"
                f"HEARSAY_REDIS_URL={self.redis.url}\n"
                f"HEARSAY_CLOCK_KEY_FILE={self.directory / 'clock.key'}\n",
            )

    def down(self) -> None:
        """Stop both servers; their data stays."""
        if self.directory.exists():
            with self._alone():
                self.kafka.stop()
                self.redis.stop()

    def status(self) -> list[ServerStatus]:
        """The status of each server."""
        servers: list[ServerProcess] = [self.kafka, self.redis]
        return [
            ServerStatus(s.name, pid, pid is not None and s.answers(), s.address if pid else None, s.log_file)
            for s in servers
            for pid in [s.pid]
        ]

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One `up` or `down` at a time; the next one waits."""
        private_directory(self.directory)
        with open_private(self.directory / "stack.lock", "w") as lock:
            other = f"another `hearsay stack` command in {self.directory}"
            lock_within(ALONE_SECONDS, lock, other, "wait for it, or end it, and run the same command again")
            yield
