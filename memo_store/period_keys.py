"""Keys of periods that are forgotten, so that an edge that is stolen does not tell its past (`replay --forget-after`).

Draws of a period (round 2, one-shot noise, tokens) then come from a key of that period, and not from the fleet's key,
which is for life. As on devices, the first key is random, and a key gives the next one, but not the one before:

    k[p+1] = HMAC-SHA256(k[p], "hearsay next")

A survey's state in the store has one key, sealed, and its period, `first`: periods from there on can be reported. It is
replaced by compare-and-set, and only by a later key of the chain. So all processes have the same draws of a period, or
none. If a survey was begun without, `first` is FLEET, and stays so: with two keys, a period would have two reports.
"""

import secrets
from datetime import timedelta

from memo_store.connection.epochs import script
from memo_store.connection.link import Link
from memo_store.sealing import Sealer
from protocols.errors import HistoryLost, SettingsError, StoreError
from protocols.randomness import Keyring, later_key
from protocols.survey import Survey, format_duration

FLEET = "fleet"
READ_ONLY = "-"  # is `first` of no state, so nothing is replaced


def require_longer_than_grace(survey: Survey, forget_after: timedelta | None) -> None:
    """Refuse to forget the key of a period that may still be sent."""
    if forget_after is not None and forget_after <= survey.grace:
        raise SettingsError(
            f"--forget-after {format_duration(forget_after)} is not longer than the grace of survey {survey.id!r}, "
            f"{format_duration(survey.grace)}, in which reports of a period are still accepted",
            "give a longer duration",
        )


class PeriodKeys:
    """The period keys of one survey in the store, or the note that it has none."""

    def __init__(
        self, link: Link, survey: Survey, sealer: Sealer, state: str, forget_after: timedelta | None, new: bool
    ) -> None:
        """`state` is the key of the survey's state. `new`: the store cannot have lost period keys of this survey."""
        require_longer_than_grace(survey, forget_after)
        self._link = link
        self._survey = survey
        self._sealer = sealer
        self._state = state
        self.forget_after = forget_after
        self._last = -1, b""  # the period that was asked for last, and its key
        self.first, self._key = 0, secrets.token_bytes(32)
        self._replace("" if new or forget_after is None else READ_ONLY, 0, self._key, opening=True)

    def ring(self, period: int) -> Keyring:
        """What the draws of a period come from. Raises StoreError if its key is forgotten."""
        if period != self._last[0]:
            self.restore()
            if period < self.first:
                raise StoreError(
                    f"the key of period {period} of survey {self._survey.id!r} is forgotten (--forget-after): its "
                    "reports cannot be made again, and those that were sent count",
                    "remove events before "
                    f"{self._survey.calendar.bounds(self.first)[0].isoformat()} from the files, and replay the others",
                )
            known, key = self._last if self.first <= self._last[0] < period else (self.first, self._key)
            self._last = period, later_key(key, period - known)
        return Keyring(self._last[1])

    def forget(self, through: int) -> None:
        """Erase the keys of all periods up to this one, in the store and here."""
        if self._last[0] <= through:
            self._last = -1, b""
        while self.first <= through:
            self._replace(str(self.first), through + 1, later_key(self._key, through + 1 - self.first))

    def restore(self) -> None:
        """Read what is stored. If the store was emptied, store what this process has."""
        self._replace("", self.first, self._key)

    def _replace(self, known: str, first: int, key: bytes, opening: bool = False) -> None:
        """Store a key if `known` is the first period that is stored, and go on with the one that is stored then."""
        sealed = self._sealer.seal(f"period key {first}", key)
        mine = (FLEET, b"") if self.forget_after is None else (first, sealed)
        found, sealed = self._link.ask("EVAL", script("move_keys"), 1, self._state, known, *mine, int(opening))
        if not found and not opening:  # the store was emptied
            self.restore()
            return
        self._require_same_origin(found.decode())
        if self.forget_after is None:
            return
        stored = int(found), self._sealer.unseal(f"period key {int(found)}", sealed)
        (early, one), (late, other) = sorted([(self.first, self._key), stored])
        if not opening and later_key(one, late - early) != other:
            raise StoreError(
                f"the period keys of survey {self._survey.id!r} in the store are not those that this process has used",
                "end all replays of the survey, and give it a new id: people have reported with both",
            )
        self.first, self._key = stored

    def _require_same_origin(self, found: str) -> None:
        """Refuse if the noise of the survey's reports comes from another key than this process was asked to use."""
        survey = f"survey {self._survey.id!r}"
        if not found:
            raise HistoryLost(
                f"the store has no period keys of {survey}, and may have lost them: with others, people would report "
                "periods that were sent again, with other noise",
                "if neither the survey nor the store was used before, run `hearsay memo accept-loss --nothing-lost`; "
                "otherwise restore a copy of the store, or give the survey a new id",
            )
        if (found == FLEET) != (self.forget_after is None):
            begun = "without --forget-after: its noise follows from the fleet's key for good"
            remedy = "leave the option out"
            if found != FLEET:
                begun, remedy = "with --forget-after: its noise comes from period keys", "replay it with --forget-after"
            raise StoreError(f"{survey} was begun {begun}", f"{remedy}, or give the survey a new id")
