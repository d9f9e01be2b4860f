"""The data directory of an embedded run: its secrets, its Redis, its log and its results.

Secrets are made once, readable by their owner only, and never leave the directory. Losing `fleet.key` is losing every
device's memo for good; so it is written to disk before it is first used.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from protocols import Keyring
from protocols.errors import SettingsError

COLLECTOR = "collector"


class DataDirectory:
    """Where things are, under one root."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)

    @property
    def redis(self) -> Path:
        return self._made("redis")

    @property
    def unvouched(self) -> Path:
        """A mark that is there until somebody has vouched for a Redis that was never used: it has lost nothing."""
        mark = self.root / "redis.new"
        if not (self.root / "redis").exists():
            mark.touch()
        return mark

    @property
    def collector(self) -> Path:
        """The log, the counting state and the finals."""
        return self._made(COLLECTOR)

    @property
    def reports(self) -> Path:
        """Pages and files for people."""
        return self._made("reports")

    def fleet_keyring(self) -> Keyring:
        """The secret of the simulated or replayed devices."""
        return Keyring(self._secret("fleet.key"))

    def clock_key(self) -> bytes:
        """The operator's key: whoever has it may close periods."""
        return self._secret("clock.key")

    def presence_key(self) -> bytes:
        """The key of the noise on published counts of devices: drawn once, so that a republication is the same."""
        return self._secret("presence.key")

    def _made(self, name: str) -> Path:
        path = self.root / name
        path.mkdir(exist_ok=True)
        return path

    def _secret(self, name: str) -> bytes:
        """The secret in a file; made if the file is not there. Two processes that race get the same one."""
        path = self.root / name
        if not path.exists():
            draft = self.root / f".{name}.{os.getpid()}"
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_hex(32) + "\n")
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
                f"{path} does not hold a key in hexadecimal",
                "restore it; a new key would redraw all noise",
            ) from None
