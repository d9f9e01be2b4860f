"""A Redis with a replica that takes its place, and disks that become full."""

import resource
from contextlib import suppress
from pathlib import Path

import redis

from servers.ports import free_port
from servers.processes import ServerProcess
from servers.redis_server import RedisServer
from tests.helpers.eventually import eventually


class ReplicatedRedis:
    """One address, behind it a primary, and a replica that can be promoted."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._started = 0
        self.port = free_port()
        self.primary = self._server(self.port)
        self.replica = self._server(free_port())

    @property
    def url(self) -> str:
        return self.primary.url

    def start(self) -> "ReplicatedRedis":
        self.primary.start()
        self._follow()
        return self

    def stop(self) -> None:
        for server in (self.primary, self.replica):
            if server.running:
                server.stop()

    def fail_over(self) -> None:
        """Kill the primary, and let the replica take over its address; then add another replica."""
        self.primary.kill()
        with redis.Redis(unix_socket_path=str(self.replica.socket)) as client:
            client.replicaof("NO", "ONE")
            client.config_set("port", self.port)
        self.primary, self.replica = self.replica, self._server(free_port())
        self.primary.port = self.port
        self._follow()

    def fill_disk(self) -> None:
        """Let the primary run into a full disk, and start it again with room."""
        fill_disk_of(self.primary)
        with redis.Redis(unix_socket_path=str(self.primary.socket)) as client, suppress(redis.RedisError):
            client.set("more", 1)  # in case nobody else writes
        eventually(lambda: not self.primary.running)
        self.primary.start()
        self._repoint()

    def _follow(self) -> None:
        self.replica.start()
        self._repoint()

    def _repoint(self) -> None:
        with redis.Redis(unix_socket_path=str(self.replica.socket)) as client:
            client.replicaof("127.0.0.1", self.port)
            eventually(lambda: client.info("replication")["master_link_status"] == "up")

    def _server(self, port: int) -> RedisServer:
        self._started += 1
        return RedisServer(self._directory / f"redis-{self._started}", port=port)


def fill_disk_of(server: ServerProcess) -> None:
    """Let no file of a running server grow any more, as on a full disk: what it writes next fails."""
    assert server.pid is not None, "it is not running"
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (1, 1))
