"""A server process, Valkey or Redis, that holds a memo store in a directory.

`local(directory)` runs a durable Redis (append-only, every write on disk before it is acknowledged) on a unix socket,
without a network port, for the time of a block.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from protocols.errors import HearsayError, ServerError
from servers.private_files import lock_directory, private_directory
from servers.processes import ServerProcess
from servers.redis_server.installed import note_writer, program_for

REWRITE_SIZE = "256mb"
"""The size from which on the append-only file is rewritten: each time, all data is written anew. The default is 64 MB,
which a run of a million devices passes; a file of 256 MB is read within seconds when the server starts."""
SOCKET_PATH_BYTES = 103
"""The longest unix socket path every system takes (Linux 107, macOS 103)."""


class RedisServer(ServerProcess):
    """A server with its data, log and pid file in `directory`: `executable`, or the one that may open the directory.

    It listens on a unix socket and, if `port` is given, on that port of the loopback address too. The address depends
    on the directory and the port alone, so that a restarted server has the same address.
    """

    name = "redis"

    def __init__(
        self,
        directory: Path,
        *,
        port: int = 0,
        executable: Path | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(directory)
        self.port = port
        self.options = {
            "appendonly": "yes",
            "appendfsync": "always",
            "auto-aof-rewrite-min-size": REWRITE_SIZE,
            "save": "",
            **(options or {}),
        }
        self._executable = executable

    @property
    def socket(self) -> Path:
        """The unix socket: in the directory, or in a short one under /tmp when the path would be too long."""
        path = self.directory / "redis.sock"
        if len(os.fsencode(path)) <= SOCKET_PATH_BYTES:
            return path
        digest = hashlib.sha256(os.fsencode(self.directory)).hexdigest()[:16]
        return Path("/tmp") / f"hearsay-{os.getuid()}-{digest}" / "redis.sock"  # noqa: S108  (see _make_private)

    @property
    def url(self) -> str:
        """What `redis.Redis.from_url` takes."""
        return f"redis://127.0.0.1:{self.port}/0" if self.port else f"unix://{self.socket}?db=0"

    @property
    def address(self) -> str:
        return self.url

    def prepare(self) -> list[str]:
        program = program_for(self.directory, self._executable)
        if self.socket.parent != self.directory:
            _make_private(self.socket.parent)
        note_writer(self.directory, program.release)
        options = {
            "bind": "127.0.0.1",
            "port": str(self.port),
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.directory),
            "daemonize": "no",
            **self.options,
        }
        return [str(program.path), *(part for name, value in options.items() for part in (f"--{name}", value))]

    def answers(self) -> bool:
        client = redis.Redis(unix_socket_path=str(self.socket), socket_timeout=5, retry=Retry(NoBackoff(), 0))
        try:
            return bool(client.ping())
        except redis.RedisError:  # no socket yet, or still loading its file
            return False
        finally:
            client.close()

    def stop(self) -> None:
        """Stop it, and remove its socket."""
        super().stop()
        self.socket.unlink(missing_ok=True)
        if self.socket.parent != self.directory:
            with suppress(FileNotFoundError):
                self.socket.parent.rmdir()

    @property
    def could_not_write(self) -> bool:
        """Whether the last it logged is that it could not write, after which it ends."""
        return any(words in self.tail(4) for words in ("AOF write error", "No space left on device"))


@contextmanager
def local(directory: Path) -> Iterator[RedisServer]:
    """A durable Redis in `directory` for the time of the block: `redis.Redis.from_url(server.url)` connects.

    One block at a time uses a directory; for a second one ServerError is raised. A server that a killed process left
    running is used as it is, and stopped at the end.
    """
    server = RedisServer(directory)
    private_directory(server.directory)
    with _owned(server.directory):
        try:
            yield server.ensure()
        except HearsayError:  # of a client that lost its connection, or of a start that failed
            if not server.could_not_write:
                raise
            raise ServerError(
                f"the Redis in {server.directory} could not write and ended: the disk is full, or a quota is used up",
                "free disk space, then run the same command again: it resumes",
            ) from None
        finally:
            server.stop()


@contextmanager
def _owned(directory: Path) -> Iterator[None]:
    try:
        owner = lock_directory(directory)
    except BlockingIOError:
        raise ServerError(
            f"another process is using the Redis in {directory}", "wait until it ends, or choose another directory"
        ) from None
    try:
        yield
    finally:
        os.close(owner)


def _make_private(directory: Path) -> None:
    """Make a private directory where every user may write; raises ServerError if another user could have made it."""
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    status = directory.lstat()
    if directory.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise ServerError(f"{directory} exists and is not private", "remove it, or choose a shorter data directory")
