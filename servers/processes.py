"""A server process in the background, found again by its pid file and the lock on it.

The server inherits an exclusive lock on its pid file, and the operating system releases it when the server ends,
however it ends. So stale files do not matter, and of two starts at once one fails. A child of a server that was killed
may keep the lock for a while, when another program may have the server's pid already: only a process that has the pid
file open is sent a signal.
"""

import fcntl
import os
import resource
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Self

from protocols.errors import ServerError
from servers.private_files import UMASK, private_directory

POLL_SECONDS = 0.02
END_SECONDS = 30
LOG_BYTES = 10 * 1024 * 1024
"""A longer log is renamed (to `.1`) at the next start."""
OPEN_FILES = Path("/proc/self/fd")
INHERITED_LOCK = 100
"""The descriptor under which a server holds its lock: far from those it opens itself, if the limit allows."""


class ServerProcess(ABC):
    """One server in one directory: `NAME.pid` and `NAME.log` there, at most one process at a time."""

    name: str
    start_seconds: float = 120
    """How long a start may take: a large log is read first, and the machine may be busy."""

    def __init__(self, directory: Path) -> None:
        self.directory = Path(directory).resolve()
        self.pid_file = self.directory / f"{self.name}.pid"
        self.log_file = self.directory / f"{self.name}.log"

    @property
    @abstractmethod
    def address(self) -> str:
        """Where clients find it."""

    @abstractmethod
    def answers(self) -> bool:
        """Whether it serves clients now."""

    @abstractmethod
    def prepare(self) -> list[str]:
        """Prepare the directory and return the command to run. Called while the lock is held."""

    @property
    def running(self) -> bool:
        """Whether a process, started now or by an earlier run, holds this server's lock."""
        if not self.pid_file.exists():
            return False
        with self._lock(fcntl.LOCK_SH) as locked:
            return locked is None

    @property
    def pid(self) -> int | None:
        """The running server's process id, or None."""
        return self._recorded_pid() if self.running else None

    def start(self) -> Self:
        """Start it in its own session and wait until it answers; raises ServerError if one is running."""
        private_directory(self.directory)
        with self._lock_to_start() as locked:
            os.ftruncate(locked, 0)
            self._spawn(self.prepare(), locked)
        self._wait_until_it_answers()
        return self

    def ensure(self) -> Self:
        """Start it, or if it is running wait until it answers."""
        if not self.running:
            return self.start()
        self._wait_until_it_answers()
        return self

    def stop(self) -> None:
        """Stop the server with SIGTERM, and with SIGKILL if that takes too long; does nothing if it is not running."""
        if not self._end(signal.SIGTERM):
            self.kill()

    def kill(self) -> None:
        """Stop the server at once (SIGKILL), as a crash would."""
        if not self._end(signal.SIGKILL):
            pid = self._recorded_pid()
            who = f"process {pid}" if self._is_server(pid) else "a process that it left behind"
            raise ServerError(
                f"{self.name} ({who}) did not end: {self.pid_file} is locked", "check what the process is waiting for"
            )

    def tail(self, lines: int) -> str:
        """The last lines of the log."""
        if not self.log_file.exists():
            return ""
        with self.log_file.open("rb") as log:
            log.seek(max(0, self.log_file.stat().st_size - 1000 * lines))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-lines:])

    @contextmanager
    def _lock(self, how: int) -> Iterator[int | None]:
        """The pid file, locked for the time of the block; None if another process has the lock.

        `running` takes a shared lock, so that two processes that check at once do not take each other for a server.
        """
        descriptor = os.open(self.pid_file, os.O_RDWR | os.O_CREAT, 0o600)
        locked: int | None = None
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
            locked = descriptor
        try:
            yield locked
        finally:
            os.close(descriptor)

    @contextmanager
    def _lock_to_start(self) -> Iterator[int]:
        """The lock, once it is free: waits for a child that a killed server may have left, still writing.

        Such a child answers nobody. A server that answers keeps its lock.
        """
        deadline = time.monotonic() + END_SECONDS
        while True:
            with self._lock(fcntl.LOCK_EX) as locked:
                if locked is not None:
                    yield locked
                    return
            if self.answers() or time.monotonic() > deadline:
                raise ServerError(
                    f"{self.name} is already running in {self.directory} as process {self._recorded_pid()}",
                    "stop that one first, or choose another directory",
                )
            time.sleep(POLL_SECONDS)

    def _spawn(self, command: list[str], locked: int) -> None:
        if self.log_file.exists() and self.log_file.stat().st_size > LOG_BYTES:
            self.log_file.replace(self.log_file.with_suffix(".log.1"))
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(self.log_file), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
            (os.POSIX_SPAWN_DUP2, locked, min(INHERITED_LOCK, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 1)),
        ]
        before = os.umask(UMASK)
        try:
            pid = os.posix_spawn(command[0], command, os.environ, file_actions=actions, setsid=True)
        finally:
            os.umask(before)
        os.pwrite(locked, b"%d\n" % pid, 0)

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + self.start_seconds
        while not self.answers():
            if not self.running:
                raise ServerError(f"{self.name} ended while starting:\n{self.tail(12)}", f"the log is {self.log_file}")
            if time.monotonic() > deadline:
                self.kill()
                raise ServerError(
                    f"{self.name} did not answer within {self.start_seconds:.0f} seconds:\n{self.tail(12)}",
                    f"the log is {self.log_file}",
                )
            time.sleep(POLL_SECONDS)

    def _recorded_pid(self) -> int | None:
        text = self.pid_file.read_text() if self.pid_file.exists() else ""
        return int(text) if text.strip().isdigit() else None

    def _is_server(self, pid: int | None) -> bool:
        """Whether a process has our pid file open, as the server has: a stranger with its pid has not.

        Where the system does not show what a process has open, the lock must do.
        """
        if pid is None or not OPEN_FILES.exists():
            return pid is not None
        with suppress(OSError):  # it has ended, or is not ours
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):  # closed in the meantime
                    if descriptor.samefile(self.pid_file):
                        return True
        return False

    def _end(self, how: signal.Signals) -> bool:
        """Signal the server and wait until it has released its lock; False if that takes too long."""
        deadline = time.monotonic() + END_SECONDS
        signalled: int | None = None
        while self.running:
            pid = self._recorded_pid()
            if pid is not None and pid != signalled and self._is_server(pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, how)
                signalled = pid
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_SECONDS)
        if signalled is not None:
            with suppress(ChildProcessError):  # not our child, so not ours to reap
                os.waitpid(signalled, 0)
        return True


def run_within(
    seconds: float, command: list[str], what: str, hint: str, umask: int = -1
) -> subprocess.CompletedProcess[str]:
    """Run a program that prepares a server, to its end. Raises ServerError if it takes longer."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, umask=umask, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise ServerError(f"{what} did not end within {seconds:.0f} seconds, and was stopped", hint) from None


def lock_within(seconds: float, file: IO[Any], holder: str, hint: str) -> None:
    """Take the lock on an open file, which its closing releases. Raises ServerError if another keeps it for longer."""
    deadline = time.monotonic() + seconds
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        if time.monotonic() > deadline:
            raise ServerError(f"{holder} did not end within {seconds:.0f} seconds ({file.name} is locked)", hint)
        time.sleep(POLL_SECONDS)
