"""The data directory of an embedded run: its secrets, its Redis, its log and its results.

Secrets are made once, readable by their owner only, and never leave the directory.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from protocols.errors import ScenarioError, SettingsError
from protocols.randomness import Keyring
from servers.key_files import keyring_in, secret_in

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
        """A mark that is there until somebody has vouched for the store of new devices: it has lost nothing."""
        return self.root / "redis.new"

    @property
    def presence_losses(self) -> set[int]:
        """The periods in which the store had forgotten who was seen earlier, in all runs so far."""
        note = self.root / "presence.lost"
        return set(map(int, note.read_text().split())) if note.exists() else set()

    def note_lost_presence(self, losses: Iterable[int]) -> None:
        known = self.presence_losses.union(losses)
        if known:
            (self.root / "presence.lost").write_text("".join(f"{period}\n" for period in sorted(known)))

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
        key = self.root / "fleet.key"
        if not key.exists():
            self.unvouched.touch()
        return keyring_in(key)

    def clock_key(self) -> bytes:
        """The operator's key: whoever has it may close periods."""
        return secret_in(self.root / "clock.key")

    def presence_key(self) -> bytes:
        """The key of the noise on published counts of devices: drawn once, so that a republication is the same."""
        return secret_in(self.root / "presence.key")

    def belongs_to(self, survey: str, population: str) -> None:
        """Keep a population's likeness, or refuse another one: its truth would not be that of the reports."""
        kept = self._kept(f"{survey}.population", population)
        if kept != population:
            raise ScenarioError(
                f"{self.root} holds reports of another population for survey {survey!r}",
                "use the same scenario, devices and seed as before, or another directory with --data",
            )

    def reports_to(self, survey: str, place: str) -> None:
        """Keep where the devices report to, or refuse another place.

        Who has reported does not report again: at the other place the clock would close periods that nobody reported.
        A place may be told in more detail later: it begins as it was told before.
        """
        kept = self._kept(f"{survey}.destination", place)
        if place.startswith(kept):
            (self.root / f"{survey}.destination").write_text(f"{place}\n")
        elif not kept.startswith(place):
            raise SettingsError(
                f"the devices of {self.root} report to {kept} for survey {survey!r}, not to {place}",
                "go on there, or use another directory with --data: its devices have other keys, so people who really "
                "answered would spend their budget once more",
            )

    def _kept(self, name: str, said: str) -> str:
        """What was said first."""
        note = self.root / name
        kept = note.read_text().strip() if note.exists() else ""
        if not kept:
            note.write_text(f"{said}\n")
        return kept or said

    def _made(self, name: str) -> Path:
        path = self.root / name
        path.mkdir(exist_ok=True)
        return path
