"""Secrets in files: made once, readable by their owner only, never replaced.

A real device has one such file and index 0; a fleet, or an operator who replays events, has one for all its devices.
A lost secret means lost memos, so it is on disk before it is first used. A new secret under an old survey would draw a
second memo for the same value, so rotating keys requires a new survey.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp

from protocols.errors import SettingsError
from protocols.randomness import MIN_SECRET, Keyring

SECRET_BYTES = 32


def keyring_in(path: Path) -> Keyring:
    """The keyring whose secret is in a file; made if there is none."""
    return Keyring(secret_in(path))


def secret_in(path: Path) -> bytes:
    """The secret in a file (hexadecimal); made if there is none. Processes that race get the same one."""
    if not path.exists():
        _make(path)
    try:
        secret = bytes.fromhex(path.read_text().strip())
    except ValueError:
        secret = b""
    if len(secret) < MIN_SECRET:
        raise SettingsError(
            f"{path} does not hold a key of {MIN_SECRET} bytes or more in hexadecimal",
            "restore it; a new key would redraw all noise",
        )
    return secret


def _make(path: Path) -> None:
    descriptor, draft = mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mode 0600
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(SECRET_BYTES) + "\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(draft, path)  # unlike a rename, a link never replaces an existing key
    finally:
        Path(draft).unlink()
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
