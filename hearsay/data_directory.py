"""The data directory of an embedded run: its secrets, its Redis, its log and its results.

Secrets are made once, readable by their owner only, and never leave the directory.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from shutil import rmtree

from protocols.errors import HearsayError, ResultsError, ScenarioError, SettingsError
from protocols.randomness import Keyring
from servers.private_files import (
    append_private,
    create_private,
    private_directory,
    secret_in,
    write_private,
)

COLLECTOR = "collector"
FIRST_VERSION = 2
"""The version of a survey's terms where a directory has no note of it: there was none before version 3."""
HOME = Path("hearsay-data")
SERVED = "serve"
"""Where `hearsay serve` keeps its surveys, if no directory is named."""


def directory_of(survey: str, named: Path | None) -> Path:
    """The data directory of a survey: the one that was named, or the one with the survey's id."""
    return named or HOME / survey


def drawer_in(directory: Path, survey: str) -> Path:
    """The drawer of a survey in a directory of drawers."""
    return directory / f"{survey}.keys"


def known_directory(survey: str | None) -> Path:
    """The data directory to read, where none was named: that of the survey, or the only one that there is."""
    known = sorted(path.parent for path in HOME.glob(f"*/{COLLECTOR}"))
    for root in () if survey is None else (HOME / survey, HOME / SERVED):
        if root in known:
            return root
    listed = ", ".join(path.name for path in known) or "none"
    if survey is None and len(known) == 1:
        return known[0]
    if survey is None and known:
        raise ResultsError(f"{HOME} has results of {len(known)} surveys", f"give the id of one: {listed}")
    wanted = "" if survey is None else f" of survey {survey!r}"
    raise ResultsError(f"there are no results{wanted} in {HOME}", f"name their directory with --data; here: {listed}")


@contextmanager
def left_as_it_was(root: Path) -> Iterator[None]:
    """Remove a data directory that is made in this block, if the block is refused before devices have a destination."""
    made = [path for path in (root, *root.parents) if not path.exists()]
    try:
        yield
    except HearsayError:
        if root in made and not any(root.glob("*.destination")):
            rmtree(root, ignore_errors=True)
            with suppress(OSError):  # others may have put something there
                for path in made[1:]:
                    path.rmdir()
        raise


class DataDirectory:
    """The files of one run, under one root. The directory is made when something is first written to it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        # Which memo store the devices have used (memo_storage.py).
        self.store_note = root / "memo.store"
        # Exists from the creation of the fleet's key until its store was declared new.
        self.new_store_mark = root / "redis.new"
        # Exists once the devices' memos were lost: then no memo_cap bounds what they have memoised.
        self.loss_note = root / "memo.lost"
        # What the simulated devices of this directory truly have.
        self.truth = root / "truth"
        # Files with the shapes of areas, that surveys of this directory name.
        self.areas = root / "areas"

    @property
    def redis(self) -> Path:
        return private_directory(self.root / "redis")

    def drawer(self, survey: str) -> Path:
        """The keys of a survey's open periods, if periods are forgotten. It is never copied."""
        return drawer_in(self.root / "drawer", survey)

    def epochs_note(self, survey: str) -> Path:
        """What the last run of a survey has seen of the memo store (memo_storage.py)."""
        return self.root / f"{survey}.epochs"

    def presence_losses(self, survey: str) -> set[int]:
        """The periods in which the store had lost the earlier presences, in all runs of a survey so far."""
        file = self.root / f"{survey}.lost"
        return set(map(int, file.read_text().split())) if file.exists() else set()

    def add_presence_losses(self, survey: str, losses: Iterable[int]) -> None:
        """Record losses. They are appended, so that two processes may do it at once."""
        new = sorted(set(losses) - self.presence_losses(survey))
        if new:
            append_private(private_directory(self.root) / f"{survey}.lost", "".join(f"{period}\n" for period in new))

    def late_events(self, survey: str) -> dict[int, int]:
        """By period: the events that came too late for an edge."""
        file = self.root / f"{survey}.late"
        lines = file.read_text().splitlines() if file.exists() else []
        return {int(period): int(count) for period, count in map(str.split, lines)}

    def note_late_events(self, survey: str, late: Mapping[int, int]) -> None:
        lines = (f"{period} {count}\n" for period, count in sorted(late.items()))
        write_private(self.root / f"{survey}.late", "".join(lines))

    def counted_version(self, survey: str) -> int | None:
        """The version of the terms under which a survey is counted here, or reports from here; None if it does not."""
        counted = self._counted_here().get(survey)
        if counted is not None:
            return counted
        if self._recorded(f"{survey}.destination") is None:
            return None
        return int(self._recorded(f"{survey}.version") or FIRST_VERSION)

    def _counted_here(self) -> dict[str, int]:
        """The versions of the surveys that are counted in this directory, as far as they can be read.

        Whoever opens the directory to count raises what is wrong with it.
        """
        try:
            if not (self.root / COLLECTOR).is_dir():
                return {}
            from stream_app.local import LocalStore  # takes time that is not needed where nothing is counted

            with closing(LocalStore.existing(self.root / COLLECTOR)) as store:
                return {survey.id: survey.version for survey in store.surveys()}
        except (HearsayError, ValueError, OSError, sqlite3.Error):
            return {}

    @property
    def collector(self) -> Path:
        """The log, the counting state and the finals."""
        return private_directory(self.root / COLLECTOR)

    @property
    def results(self) -> str:
        """The address of a file with results as tables, for whoever has an SQL client."""
        return f"sqlite:{private_directory(self.root / 'results') / 'hearsay.sqlite'}"

    @property
    def reports(self) -> Path:
        """Pages and files for people."""
        return private_directory(self.root / "reports")

    def fleet_keyring(self) -> Keyring:
        """The secret of the simulated or replayed devices."""
        key = private_directory(self.root) / "fleet.key"
        if not key.exists():
            self.new_store_mark.touch(mode=0o600)
        return Keyring(secret_in(key))

    def clock_key(self) -> bytes:
        """The operator's key, which signs clock records."""
        return secret_in(private_directory(self.root) / "clock.key")

    def presence_key(self) -> bytes:
        """The key of the noise on published counts of devices; kept, so that a republication has the same noise."""
        return secret_in(private_directory(self.root) / "presence.key")

    def check_population(self, survey: str, population: str) -> None:
        """Refuse another population than the recorded one: its truth would be wrong."""
        if self._recorded(f"{survey}.population") not in (None, population):
            raise ScenarioError(
                f"{self.root} holds reports of another population for survey {survey!r}",
                "use the same scenario, devices and seed as before, or another directory with --data",
            )

    def record_population(self, survey: str, population: str) -> None:
        """Record the digest of a survey's population, before its first report is sent."""
        self._record(f"{survey}.population", population)
        self.check_population(survey, population)

    def check_destination(self, survey: str, destination: str) -> None:
        """Refuse another destination than the recorded one.

        A device that has reported does not report again, so another destination would get clock records that close
        periods, and no reports. A destination may be given in more detail later: it begins with the earlier text.
        """
        recorded = self._recorded(f"{survey}.destination")
        if recorded is not None and not (recorded.startswith(destination) or destination.startswith(recorded)):
            raise SettingsError(
                f"the devices of {self.root} report to {recorded} for survey {survey!r}, not to {destination}",
                "continue there, or use another directory with --data: its devices have new keys, so real people would "
                "spend their budget once more",
            )

    def record_destination(self, survey: str, destination: str, version: int = FIRST_VERSION) -> None:
        """Record where the devices report to, and under which version of terms, before the first report is sent."""
        if version != FIRST_VERSION:
            self._record(f"{survey}.version", str(version))
        self._record(f"{survey}.destination", destination)
        self.check_destination(survey, destination)
        if len(destination) > len(self._recorded(f"{survey}.destination") or ""):
            write_private(self.root / f"{survey}.destination", f"{destination}\n")

    def _record(self, name: str, text: str) -> None:
        """Write a file of this name unless there is one: of processes that race, one writes it."""
        if not (self.root / name).exists():
            create_private(private_directory(self.root) / name, f"{text}\n")

    def _recorded(self, name: str) -> str | None:
        """The text in a file of this name; None if there is none. One without its last line end is damaged."""
        file = self.root / name
        if not file.exists():
            return None
        recorded = file.read_text()
        if not recorded.strip() or not recorded.endswith("\n"):
            raise damaged(file)
        return recorded.removesuffix("\n")


def damaged(note: Path) -> SettingsError:
    return SettingsError(f"{note} is damaged", "restore it from a copy of the directory")
