"""Keys of periods that are forgotten, so that an edge that is stolen does not tell its past
(`--forget-after`).

What is drawn for a period (round 2, one-shot noise, tokens) and what is sealed in it (open
events, last cells, commits) then comes from a key of that period, and not from the fleet's key,
which is for life. The keys are in the drawer (`drawer.py`), and nowhere else.

A survey's state in the store says which drawer that is: a process that has another one, or none,
would draw other noise, and is refused. It also has a check of each key that was used, from which
the key does not follow: a drawer that was replaced by a copy is refused, too. If a survey was
begun without keys of periods, the state says FLEET for good: with two keys, a period would have
two reports.

Release 0.2 had one key in the state, sealed under the fleet's key, which gave all later ones.
Those of periods that have begun are taken over into the drawer, and the state loses its key.
"""

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from memo_store.connection.epochs import script
from memo_store.connection.link import Command, Link
from memo_store.drawer import Drawer, PeriodKey
from memo_store.sealing import Sealer
from protocols.errors import HistoryLost, SettingsError, StoreError
from protocols.randomness import Keyring, later_key
from protocols.survey import MICROSECOND, Survey, format_duration

FLEET = "fleet"
DRAWER = "drawer"
ON_ONE_MACHINE = "with forget_after, all processes of an edge run on one machine, with one drawer"


@dataclass(frozen=True)
class Forgetting:
    """How long after its end a period is forgotten, and the file of keys of the others."""

    after: timedelta
    drawer: Path


def require_longer_than_grace(survey: Survey, forget_after: timedelta | None) -> None:
    """Refuse to forget the key of a period that may still be sent."""
    if forget_after is not None and forget_after <= survey.grace:
        raise SettingsError(
            f"--forget-after {format_duration(forget_after)} is not longer than the grace of survey {survey.id!r}, "
            f"{format_duration(survey.grace)}, in which reports of a period are still accepted",
            "give a longer duration",
        )


class PeriodKeys:
    """The period keys of one survey, or the note in the store that it has none."""

    def __init__(
        self, link: Link, survey: Survey, sealer: Sealer, state: str, forgetting: Forgetting | None, new: bool
    ) -> None:
        """`state` is the key of the survey's state. `new`: the store cannot have lost its note."""
        self.forget_after = None if forgetting is None else forgetting.after
        require_longer_than_grace(survey, self.forget_after)
        self._link = link
        self._survey = survey
        self._sealer = sealer
        self._state = state
        self._checked: set[int] = set()
        self._forgetting = forgetting
        self._drawer: Drawer | None = None
        if forgetting is not None:
            self._drawer = self._find(forgetting, new)
        self._claim(opening=True)

    @property
    def first(self) -> int:
        """The first period whose key is not forgotten."""
        return self._own.first

    def of(self, period: int) -> PeriodKey:
        """The key of a period, drawn at first use.

        Raises StoreError if it is forgotten, or another one than before.
        """
        found = self._own.key(period)
        if found is None:
            first = self._survey.calendar.bounds(self.first)[0].isoformat()
            raise StoreError(
                f"the key of period {period} of survey {self._survey.id!r} is forgotten (--forget-after): its "
                "reports cannot be made again, and those that were sent count",
                f"remove events before {first} from the files, and replay the others",
            )
        if period not in self._checked:
            self._check(period, found)
            self._checked.add(period)
        return found

    def ring(self, period: int) -> Keyring:
        """What the draws of a period come from."""
        return Keyring(self.of(period).key)

    def forget(self, through: int) -> None:
        """Erase the keys of all periods up to this one."""
        self._own.forget(through)
        self._checked = {period for period in self._checked if period > through}
        self._link.ask("EVAL", script("forget_keys"), 1, self._state, through + 1)

    def restore(self) -> None:
        """Note again what a store that was emptied has lost."""
        self._checked = set()
        self._claim(opening=False)

    @property
    def _own(self) -> Drawer:
        assert self._drawer is not None  # nobody asks for keys of a survey that has none
        return self._drawer

    def _find(self, forgetting: Forgetting, new: bool) -> Drawer:
        """The drawer; a new one if the survey has none yet. What is refused makes none."""
        noted = self._read()
        if noted.first == FLEET or noted.unnoted:
            self._require_same_origin(FLEET)
        if forgetting.drawer.exists():
            return Drawer(forgetting.drawer)
        if noted.first == DRAWER:
            raise self._another(noted)
        if noted.nothing and not new:
            self._require_same_origin("")
        return Drawer.create(forgetting.drawer, self._slots(forgetting.after))

    def _claim(self, opening: bool) -> None:
        """Note in the store where the keys are, unless it says so; refuse if they are elsewhere."""
        noted = self._note("", "", opening)
        while noted.of_release_0_2 and self._drawer is not None:
            self._take_over(noted)
            noted = self._note(noted.first, noted.newest, opening)
        self._require_same_origin(noted.first)
        if self._drawer is not None:
            if noted.drawer != self._drawer.id:
                raise self._another(noted)
            if noted.kept > self._drawer.first:  # a copy that is older than the store
                self._drawer.forget(noted.kept - 1)

    def _take_over(self, noted: "_Noted") -> None:
        """Put the keys of periods that release 0.2 has begun into the drawer."""
        first = int(noted.first)
        key = self._sealer.unseal(f"period key {first}", noted.key)
        begun = range(first, int(noted.newest or -1) + 1)
        self._own.adopt(first, [later_key(key, period - first) for period in begun])

    def _check(self, period: int, key: PeriodKey) -> None:
        """Refuse a key that is not the one with which the reports of a period were begun."""
        self._claim(opening=False)
        name, check = f"check {period}", Keyring(key.key).key(("check", self._survey.id)).hex()
        note_first: Command = ("HSETNX", self._state, name, check)
        read: Command = ("HGET", self._state, name)
        _, found = self._link.run([note_first, read], atomic=True)
        if found.decode() != check:
            raise StoreError(
                f"the key of period {period} of survey {self._survey.id!r} in {self._own.path} is not "
                "the one that its reports were begun with: the file was replaced, or the survey has "
                "reported with another one",
                "put the file back that was there; if it is lost, give the survey a new id: its memos stay as they are",
            )

    def _read(self) -> "_Noted":
        return _Noted.of(self._link.ask("HMGET", self._state, "first", "drawer", "newest", "key", "kept"))

    def _note(self, first: str, newest: str, opening: bool) -> "_Noted":
        """Note where the keys are, if the state is as it was read. What is noted then."""
        mine = FLEET, ""
        if self._drawer is not None:
            mine = DRAWER, f"{self._drawer.id} {platform.node()}"
        arguments = first, newest, *mine, int(opening)
        return _Noted.of(self._link.ask("EVAL", script("claim_keys"), 1, self._state, *arguments))

    def _slots(self, after: timedelta) -> int:
        """Twice as many as periods can be open."""
        calendar = self._survey.calendar
        length = calendar.end(0) - calendar.begin(0)
        return 2 * (after // MICROSECOND // length + 3)

    def _another(self, noted: "_Noted") -> StoreError:
        assert self._forgetting is not None
        return StoreError(
            f"the period keys of survey {self._survey.id!r} are in a drawer on {noted.host}, and "
            f"{self._forgetting.drawer} is not that file: {ON_ONE_MACHINE}",
            "run this process there, with the same drawer (in edge.yaml; of a replay, with the same "
            "--data): docs/edge.md says how (Forgetting); if that file is lost, give the survey a new "
            "id: its memos stay as they are",
        )

    def _require_same_origin(self, found: str) -> None:
        """Refuse if the noise of the survey's reports comes from another key than this process was asked to use."""
        survey = f"survey {self._survey.id!r}"
        if not found:
            raise HistoryLost(
                f"there is no drawer with period keys of {survey}, and they may be lost: with others, people would "
                "report periods that were sent again, with other noise",
                "if neither the survey nor the store was used before, run `hearsay memo accept-loss --nothing-lost`; "
                "otherwise put the file back, or give the survey a new id",
            )
        if (found == FLEET) != (self._forgetting is None):
            begun = "without --forget-after: its noise follows from the fleet's key for good"
            remedy = "leave the option out"
            if found != FLEET:
                begun, remedy = "with --forget-after: its noise comes from period keys", "replay it with --forget-after"
            raise StoreError(f"{survey} was begun {begun}", f"{remedy}, or give the survey a new id")


@dataclass(frozen=True)
class _Noted:
    """What the store has of a survey's keys."""

    first: str
    """FLEET, DRAWER, nothing, or as release 0.2 has left it: the first period that is not forgotten."""
    drawer: str
    host: str
    newest: str
    key: bytes = field(repr=False)
    kept: int

    @classmethod
    def of(cls, fields: Sequence[bytes | None]) -> "_Noted":
        first, drawer, newest, key, kept = (field or b"" for field in fields)
        id, _, host = drawer.decode().partition(" ")
        return cls(first.decode(), id, host, newest.decode(), key, int(kept or 0))

    @property
    def nothing(self) -> bool:
        return not self.first and not self.newest

    @property
    def unnoted(self) -> bool:
        """Whether a release that had no keys of periods has begun the survey."""
        return not self.first and bool(self.newest)

    @property
    def of_release_0_2(self) -> bool:
        return self.first.isdecimal()
