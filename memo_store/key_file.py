"""Secrets in files: made once, readable by their owner only, never replaced.

A real device has one such file and index 0; a fleet, or an operator who replays events, has one for all its devices.
Losing it is losing every memo for good, so it is on disk before it is first used. And a new secret under an old survey
would draw a second memo for the same value: to rotate keys is to begin a new survey.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from protocols.errors import SettingsError
from protocols.keystream import Keyring

SECRET_BYTES = 32


def keyring_in(path: Path) -> Keyring:
    """The keyring whose secret is in a file; made if there is none."""
    return Keyring(secret_in(path))


def secret_in(path: Path) -> bytes:
    """The secret in a file (hexadecimal); made if there is none. Two processes that race get the same one."""
    if not path.exists():
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(SECRET_BYTES) + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)  # unlike a rename, this never replaces a key that is there
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    try:
        return bytes.fromhex(path.read_text().strip())
    except ValueError:
        raise SettingsError(
            f"{path} does not hold a key in hexadecimal", "restore it; a new key would redraw all noise"
        ) from None
