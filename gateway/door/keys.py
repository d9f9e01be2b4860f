"""The keys under which credentials become tokens: one for each survey and period, gone when its door has closed.

Whoever has the key of a period, the credentials and the log can name the sender of each report of that period. So no
key outlives its period, and nothing from which one can be computed again.

Several gateways must have the same keys, so that a retry at another one is a repeat. They share a chain with a link for
each hour (UTC), and a link gives the next one, but not the one before:

    G[h+1] = HMAC-SHA256(G[h], "hearsay next")
    key of (survey, fingerprint, period) = HMAC-SHA256(G[h], these)

where h is the hour in which the period begins or the survey was published, whichever is later. A state has the link of
one hour back, from which the present one follows, and the keys of open periods.
"""

import hmac
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from protocols.errors import StateError
from protocols.randomness import later_key
from protocols.wire import ReportHeader

HOUR = timedelta(hours=1).total_seconds()
KEY_BYTES = 32
Key = Annotated[bytes, Field(min_length=KEY_BYTES, max_length=KEY_BYTES)]


class _Stored(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, ser_json_bytes="hex", val_json_bytes="hex"
    )


class Chain(_Stored):
    """A link of the chain, and the hour that it is of (hours since 1970)."""

    hour: int = Field(ge=0, lt=10**7)
    link: Key

    def at(self, hour: int) -> "Chain":
        """The link of a later hour; this one, if that hour is not later.

        >>> Chain(hour=5, link=bytes(32)).at(7) == Chain(hour=5, link=bytes(32)).at(6).at(7)
        True
        """
        return Chain(hour=max(self.hour, hour), link=later_key(self.link, hour - self.hour))

    def key(self, header: ReportHeader, hour: int) -> bytes | None:
        """The key of a period that belongs to an hour; None if that hour is over."""
        about = f"{header.survey}\0{header.fingerprint}\0{header.period}".encode()
        return None if hour < self.hour else hmac.digest(self.at(hour).link, about, "sha256")


class OpenKey(_Stored):
    """The key of a survey's period, and when the door of that period closes (seconds since 1970)."""

    survey: str
    fingerprint: str
    period: int
    key: Key
    until: float

    @property
    def header(self) -> ReportHeader:
        return ReportHeader(self.survey, self.fingerprint, self.period)


class KeyState(_Stored):
    """All keys that a gateway has: what its state file holds, and what one gateway gives to another."""

    version: Literal[1] = 1
    chain: Chain | None = None
    keys: tuple[OpenKey, ...] = ()

    def erased(self, now: float, closed: Callable[[OpenKey], bool]) -> "KeyState":
        """Without the keys of closed periods, and without links of more than one hour back."""
        return KeyState(
            chain=self.chain and self.chain.at(hour_of(now) - 1),
            keys=tuple(key for key in self.keys if not closed(key)),
        )

    def merged(self, other: "KeyState") -> "KeyState":
        """With what another gateway of the cluster has. Raises StateError if it is of another cluster."""
        both = [chain for chain in (self.chain, other.chain) if chain is not None]
        chains = {chain.at(max(each.hour for each in both)).link for chain in both}
        keys = {key.header: key for key in other.keys} | {key.header: key for key in self.keys}
        if len(chains) > 1 or any(keys[key.header].key != key.key for key in other.keys):
            raise StateError(
                "these keys are of another chain: with two chains, a credential counts twice in a period",
                "keep the file of the gateway whose reports count; delete the other, and import into a new one",
            )
        return KeyState(chain=min(both, key=lambda chain: chain.hour, default=None), keys=tuple(keys.values()))


def hour_of(moment: float) -> int:
    """Which hour since 1970 a moment (seconds since 1970) belongs to."""
    return int(moment // HOUR)
