"""Secrets in files: made once, readable by their owner only, never replaced.

A real device has one such file and index 0; a fleet, or an operator who replays events, has one for all its devices.
A lost secret means lost memos, so it is on disk before it is first used. A new secret under an old survey would draw a
second memo for the same value, so rotating keys requires a new survey.
"""

import secrets
from pathlib import Path

from protocols.errors import SettingsError
from protocols.randomness import MIN_SECRET, Keyring
from servers.private_files import create_private, read_limited

SECRET_BYTES = 32


def keyring_in(path: Path) -> Keyring:
    """The keyring whose secret is in a file; made if there is none."""
    return Keyring(secret_in(path))


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
