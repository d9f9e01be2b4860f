"""A server process that runs in the background and can be found again: by its pid file, and by the lock it holds on it.

The server inherits an exclusive lock on its pid file, and the operating system lets go of it when the server ends,
however it ends. So "is it running?" has one answer that no crash, stale file or recycled pid can falsify, and two
starts at once cannot both succeed. It lives in this room because this is the lowest one that starts a process; the
local broker uses it too.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from protocols.errors import ServerError

POLL_SECONDS = 0.02
LOG_BYTES = 10 * 1024 * 1024
"""A log longer than this is set aside (as `.1`) at the next start."""
INHERITED_LOCK = 100
"""The descriptor under which a server holds its lock: out of the way of those it opens itself."""


class ServerProcess:
    """One server in one directory: `NAME.pid` and `NAME.log` there, at most one process at a time."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.directory = Path(directory).resolve()
        self.pid_file = self.directory / f"{name}.pid"
        self.log_file = self.directory / f"{name}.log"

    @property
    def running(self) -> bool:
        """Whether a process, of ours or of an earlier run, holds this server's lock."""
        if not self.pid_file.exists():
            return False
        with self._lock() as locked:
            return locked is None

    @property
    def pid(self) -> int | None:
        """The running server's process id, or None."""
        return self._recorded_pid() if self.running else None

    def spawn(self, command: Sequence[str | Path], environment: dict[str, str] | None = None) -> int:
        """Start `command` in a session of its own, its output appended to the log, and return its pid.

        Refused while an earlier one runs. One that was killed may leave a child behind that is still writing a file:
        that is waited for.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        self._set_aside_long_log()
        deadline = time.monotonic() + 30
        while True:
            with self._lock() as locked:
                if locked is not None:
                    return self._spawn([os.fspath(part) for part in command], environment or dict(os.environ), locked)
            pid = self._recorded_pid()
            if _exists(pid) or time.monotonic() > deadline:
                raise ServerError(
                    f"{self.name} is already running in {self.directory} as process {pid}",
                    "stop that one first, or choose another directory",
                )
            time.sleep(POLL_SECONDS)

    def wait_until(self, answers: Callable[[], bool], seconds: float) -> None:
        """Wait until the server answers; if it ends or stays silent, say so with the end of its log."""
        deadline = time.monotonic() + seconds
        while not answers():
            if not self.running:
                raise ServerError(f"{self.name} ended while starting:\n{self.tail(12)}", f"the log is {self.log_file}")
            if time.monotonic() > deadline:
                self.kill()
                raise ServerError(
                    f"{self.name} did not answer within {seconds:.0f} seconds:\n{self.tail(12)}",
                    f"the log is {self.log_file}",
                )
            time.sleep(POLL_SECONDS)

    def stop(self, seconds: float = 30) -> None:
        """Ask the server to end (SIGTERM), insist after `seconds` (SIGKILL); nothing to do when it is not running."""
        if not self._end(signal.SIGTERM, seconds):
            self.kill()

    def kill(self) -> None:
        """End the server at once (SIGKILL), as a crash would."""
        if not self._end(signal.SIGKILL, 30):
            raise ServerError(
                f"{self.name} (process {self._recorded_pid()}) did not end", "look at what the process waits for"
            )

    def tail(self, lines: int) -> str:
        """The last lines of the log."""
        if not self.log_file.exists():
            return ""
        with self.log_file.open("rb") as log:
            log.seek(max(0, self.log_file.stat().st_size - 400 * lines))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-lines:])

    @contextmanager
    def _lock(self) -> Iterator[int | None]:
        """The pid file, locked for the time of the block; None when a server (or somebody who just looks) has it."""
        descriptor = os.open(self.pid_file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            yield None
            return
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _spawn(self, command: list[str], environment: dict[str, str], locked: int) -> int:
        os.ftruncate(locked, 0)
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(self.log_file), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
            (os.POSIX_SPAWN_DUP2, locked, INHERITED_LOCK),
        ]
        pid = os.posix_spawn(command[0], command, environment, file_actions=actions, setsid=True)
        os.pwrite(locked, b"%d\n" % pid, 0)
        return pid

    def _recorded_pid(self) -> int | None:
        text = self.pid_file.read_text() if self.pid_file.exists() else ""
        return int(text) if text.strip().isdigit() else None

    def _end(self, number: signal.Signals, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        pid = self.pid
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        while self.running:
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_SECONDS)
        if pid is not None:
            with suppress(ChildProcessError):  # somebody else's child: theirs to reap
                os.waitpid(pid, 0)
        return True

    def _set_aside_long_log(self) -> None:
        if self.log_file.exists() and self.log_file.stat().st_size > LOG_BYTES:
            self.log_file.replace(self.log_file.with_suffix(".log.1"))


def _exists(pid: int | None) -> bool:
    """Whether a process with this id exists (and is not merely waiting to be reaped by us)."""
    if pid is None:
        return False
    with suppress(ChildProcessError):
        if os.waitpid(pid, os.WNOHANG) != (0, 0):
            return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
