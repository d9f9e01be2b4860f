"""Files and directories that only their owner may read, whatever the umask; written whole or not at all.

Small files that others may have written are read up to a limit. Secrets are made once and never replaced: a real
device has one such file and index 0; a fleet, or an operator who replays events, has one for all its devices. A lost
secret means lost memos, so it is on disk before it is first used. A new secret under an old survey would draw a second
memo for the same value, so rotating keys requires a new survey.
"""

import errno
import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkstemp
from typing import IO, Any

from protocols.errors import SettingsError
from protocols.randomness import MIN_SECRET

UMASK = 0o077
"""The umask under which servers are started, so that what they write is private too."""
SECRET_BYTES = 32


def private_directory(path: Path) -> Path:
    """A directory, made private with its parents if there is none; one that exists stays as it is."""
    if not path.is_dir():
        private_directory(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
        path.chmod(0o700)  # a umask may take rights from the owner, too
        sync_directory(path.parent)
    return path


def lock_directory(path: Path) -> int:
    """Lock a directory for this process, until the descriptor that is returned is closed.

    Raises BlockingIOError if another process has it. It is the directory itself that is locked: a file in it could be
    deleted and made again, and two processes would each hold a lock.
    """
    while True:
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(lock), path.stat()):  # otherwise it was replaced just now
                return lock
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)


def open_private(path: Path, mode: str) -> IO[Any]:
    """Open a file as `open` does; one that is made is private."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, 0o600))


def append_private(path: Path, text: str) -> None:
    """Append to a file, which is made if there is none; it is on disk when this returns."""
    with open_private(path, "a") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    sync_directory(path.parent)


def write_private(path: Path, data: bytes | str, mode: int = 0o600) -> None:
    """Replace a file as a whole; it is on disk when this returns. `mode`: of a file that others may read."""
    with _draft(path, data) as draft:
        draft.chmod(mode)
        draft.replace(path)
    sync_directory(path.parent)


def create_private(path: Path, data: bytes | str) -> None:
    """Make a file as a whole unless there is one: of processes that race, one makes it."""
    with _draft(path, data) as draft, suppress(FileExistsError):
        os.link(draft, path)  # unlike a rename, a link never replaces an existing file
    sync_directory(path.parent)


def overwrite(path: Path, begin: int = 0) -> None:
    """Write zeros over a file from a position on, in place; they are on disk when this returns.

    For content that is sealed under a key that is for life. On disks that write elsewhere this does not help.
    """
    with path.open("r+b") as file:
        left = file.seek(0, os.SEEK_END) - begin
        file.seek(begin)
        while left > 0:
            left -= file.write(bytes(min(left, 1 << 20)))
        file.flush()
        os.fsync(file.fileno())


def discard(path: Path) -> None:
    """Remove a file whose content must be gone, if it is there."""
    if path.exists():
        overwrite(path)
        path.unlink()
        sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Put the names of new files in a directory on disk."""
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


@contextmanager
def _draft(path: Path, data: bytes | str) -> Iterator[Path]:
    """A file on disk beside `path` with its future content; gone at the end of the block."""
    descriptor, name = mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mode 0600
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        yield draft
    finally:
        draft.unlink(missing_ok=True)


NOTE_BYTES = 1 << 20
"""More than any key, password or note has."""


def read_limited(path: Path, most: int = NOTE_BYTES) -> bytes:
    """What is in a file of at most `most` bytes. Raises OSError for a larger one, which may have no end.

    >>> read_limited(Path("/dev/zero"))
    Traceback (most recent call last):
    OSError: [Errno 27] File too large: '/dev/zero'
    """
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return data


def secret_in(path: Path) -> bytes:
    """The secret in a file (hexadecimal); made if there is none. Processes that race get the same one."""
    if not path.exists():
        create_private(path, secrets.token_hex(SECRET_BYTES) + "\n")
    try:
        secret = bytes.fromhex(read_limited(path).decode().strip())
    except ValueError:
        secret = b""
    if len(secret) < MIN_SECRET:
        raise SettingsError(
            f"{path} does not hold a key of {MIN_SECRET} bytes or more in hexadecimal",
            "restore it; a new key would redraw all noise",
        )
    return secret
