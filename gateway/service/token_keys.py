"""The keys of a gateway in a file of its own: durable before they are used, overwritten when they are erased.

The file is replaced as a whole. Its former content keeps a name (`.old`) until it is overwritten, and what is written
has one (`.new`) until it is complete: so the next start finds and overwrites what a crash has left. A file system that
writes to other blocks than it overwrites (flash, snapshots) may keep copies.
"""

import fcntl
import json
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

import structlog
from pydantic import ValidationError

from gateway.door.judging import Times, closing_time, open_periods
from gateway.door.keys import KEY_BYTES, FormerState, KeyState, OpenKey, hour_of
from protocols.errors import StateError
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.wire import Lookup, ReportHeader
from servers.private_files import append_private, open_private, private_directory, read_limited, sync_directory

STATE_BYTES = 64 << 20
log = structlog.get_logger(__name__)


class StateFile:
    """A state file. Several processes may change it: a gateway, and commands that give it keys."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._new, self._old = (path.with_name(path.name + ending) for ending in (".new", ".old"))

    def update(self, change: Callable[[KeyState], KeyState], now: float) -> KeyState:
        """Change what is in the file; it is on disk when this returns. Raises StateError if it cannot be used.

        `now` says from which hour on links follow if the file is of release 0.2: it is replaced by one of this form.
        """
        try:
            private_directory(self.path.parent)
            with open_private(self.path.with_name(self.path.name + ".lock"), "ab") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                for left in (self._new, self._old):
                    shred(left)
                text = read_limited(self.path, STATE_BYTES) if self.path.exists() else None
                state = KeyState() if text is None else read_state(text, str(self.path), now)
                changed = change(state)
                if changed != state or (text is not None and _is_former(text)):
                    self._replace(changed, text is not None)
                return changed
        except OSError as error:
            raise StateError(
                f"the state file {self.path} cannot be used: {error.strerror}",
                "it must be in a directory that this process may write to, with space left",
            ) from error

    def erase(self, now: float, given: KeyState | None = None) -> KeyState:
        """Erase what is over, by the clock, from the file and from what it is given beside."""

        def without_what_is_over(state: KeyState) -> KeyState:
            merged = state.merged(given or KeyState(), now)
            return merged.erased(now, lambda key: key.until <= now)

        return self.update(without_what_is_over, now)

    def _replace(self, state: KeyState, exists: bool) -> None:
        append_private(self._new, state.model_dump_json() + "\n")
        if exists:
            os.link(self.path, self._old)
            sync_directory(self.path.parent)
        self._new.replace(self.path)
        sync_directory(self.path.parent)
        shred(self._old)


def read_state(text: bytes, where: str, now: float) -> KeyState:
    """The keys in a state file, or in what another gateway exports; those of release 0.2 are migrated."""
    try:
        if _is_former(text):
            return FormerState.model_validate_json(text).migrated(now)
        return KeyState.model_validate_json(text)
    except ValidationError:
        raise StateError(
            f"{where} does not hold keys of a gateway in the form of this version",
            "delete it if it is a file; `hearsay serve` then makes new keys, and a gateway takes those of another one: "
            "`hearsay gateway keys export` there, `import` here",
        ) from None


def _is_former(text: bytes) -> bool:
    """Whether this was written by release 0.2."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.get("version") == 1


def shred(path: Path) -> None:
    """Overwrite a file and remove it, if there is one. Of a file that has another name only this name is removed."""
    if path.exists():
        with path.open("r+b") as file:
            status = os.fstat(file.fileno())
            if status.st_nlink == 1:
                file.write(bytes(status.st_size))
                file.flush()
                os.fsync(file.fileno())
        path.unlink()
        sync_directory(path.parent)


class TokenKeys:
    """The keys of one process that collects alone: random, made at the first report of a survey and period."""

    def __init__(self, file: StateFile, lookup: Lookup, times: Times, now: Callable[[], float]) -> None:
        self._file = file
        self._lookup = lookup
        self._times = times
        self._now = now
        self._lacking: set[ReportHeader] = set()
        self.tend()

    def __call__(self, header: ReportHeader) -> bytes | None:
        """The key of a survey's period that is open; None if there is none, and none can be made."""
        if header not in self._keys and header not in self._lacking:
            self._update([header])
        return self._keys.get(header)

    def tend(self) -> None:
        """Erase what is over. To be called every second or so."""
        self._update(())

    def _update(self, needed: Iterable[ReportHeader]) -> None:
        """Make the keys that are needed, before the link that they may follow from is erased with all that is over."""
        now = self._now()

        def tended(state: KeyState) -> KeyState:
            provided = self._provided(state, now)
            return self._with(provided, needed).erased(now, self._closed)

        self._state = self._file.update(tended, now)
        self._keys = {key.header: key.key for key in self._state.keys}

    def _provided(self, state: KeyState, now: float) -> KeyState:
        """With everything that keys are made from."""
        return state

    def _closed(self, key: OpenKey) -> bool:
        scheme, now = self._lookup(key.survey), self._now()
        return key.until <= (now if scheme is None else self._times.moment(scheme.survey, now))

    def _with(self, state: KeyState, needed: Iterable[ReportHeader]) -> KeyState:
        keys = {key.header: key for key in state.keys}
        for header in needed:
            scheme = self._lookup(header.survey)
            if header in keys or scheme is None:
                continue
            key = self._new_key(state, header, scheme.survey)
            if key is not None:
                until = closing_time(scheme.survey, header.period).timestamp()
                keys[header] = OpenKey(**asdict(header), key=key, until=until)
        return state.model_copy(update={"keys": tuple(keys.values())})

    def _new_key(self, state: KeyState, header: ReportHeader, survey: Survey) -> bytes | None:
        return secrets.token_bytes(KEY_BYTES)


class SharedKeys(TokenKeys):
    """The keys of one of several gateways: they follow from the links that all have. The keeper draws these.

    `published` says when a survey was published, in seconds since 1970.
    """

    def __init__(
        self,
        file: StateFile,
        surveys: Mapping[str, Scheme],
        now: Callable[[], float],
        published: Callable[[str], float],
    ) -> None:
        self._surveys = surveys
        self._published = published
        super().__init__(file, surveys.get, Times(), now)
        links = self._state.links
        if links and links[-1].source == "chain" and not self._state.keeper:
            log.warning(
                "the links of this gateway are those of release 0.2, and no later ones follow: make one gateway the "
                f"keeper with `hearsay gateway keys keep --state {file.path}`; the others pull or import from it",
                hours_left=round(self.hours_left()),
            )

    @property
    def file(self) -> StateFile:
        return self._file

    @property
    def clock(self) -> Callable[[], float]:
        return self._now

    @property
    def keeper(self) -> bool:
        """Whether this gateway draws the links of all."""
        return self._state.keeper

    def hours_left(self) -> float:
        """In how many hours the first period begins for which this gateway has no key."""
        return self._state.hours_left(self._now())

    def tend(self) -> None:
        """Draw links, if this is the keeper, derive the keys of all open periods, and erase what is over."""
        needed = {
            ReportHeader(scheme.survey.id, scheme.fingerprint, period)
            for scheme in self._surveys.values()
            if scheme.survey.clock == "wall"
            for period in open_periods(scheme.survey, self._now())
        }
        self._update(needed)
        lacking = needed - self._keys.keys()
        for survey in {header.survey for header in lacking - self._lacking}:
            periods = [header.period for header in lacking if header.survey == survey]
            log.error(
                "this gateway lacks keys of periods, and answers 503 to devices' credentials there; take those of a "
                "gateway that has them: `hearsay gateway keys pull`, or `export` there and `import` here; at the "
                "first of all, `new`; if the keeper is gone, `keep` at one",
                survey=survey,
                first=min(periods),
                last=max(periods),
            )
        self._lacking = lacking

    def _provided(self, state: KeyState, now: float) -> KeyState:
        return state.drawn(now, secrets.token_bytes) if state.keeper else state

    def _new_key(self, state: KeyState, header: ReportHeader, survey: Survey) -> bytes | None:
        begin = survey.bounds(header.period)[0].timestamp()
        link = state.link(hour_of(max(begin, self._published(header.survey))))
        return None if link is None else link.key(header)
