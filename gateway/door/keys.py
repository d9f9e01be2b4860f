"""The keys under which credentials become tokens: one for each survey and period, gone when its door has closed.

Whoever has the key of a period, the credentials and the log can name the sender of each report of that period. So no
key outlives its period, and nothing from which one can be computed again.

Several gateways must have the same keys, so that a retry at another one is a repeat. They share a pool with a link for
each hour (UTC). A link is 32 random bytes: no link follows from another one.

    key of (survey, fingerprint, period) = HMAC-SHA256(link of the hour, these)

where the hour is that in which the period begins or the survey was published, whichever is later. One gateway, the
keeper, draws a link for each of the next 48 hours. The others have what it gives them. A state has links from one hour
back on, and the keys of open periods: who takes it names nobody whose period begins more than 48 hours later.
"""

import hmac
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from protocols.errors import StateError
from protocols.randomness import later_key
from protocols.wire import ReportHeader

HOUR = timedelta(hours=1).total_seconds()
KEY_BYTES = 32
HOURS_BACK = 1
"""A report may come, and a gateway may start, a little after the hour that a key follows from."""
HOURS_AHEAD = 48
"""Hours that have links, with the present one. So long may the keeper be away; so far does an export name senders."""
MOST_AHEAD = 2 * HOURS_AHEAD
"""Links that are further ahead were drawn by a clock that was fast by days. Nearer ones are kept: the clock of this
gateway may be slow, and a keeper that erased and drew them again would have two pools in the cluster."""
Key = Annotated[bytes, Field(min_length=KEY_BYTES, max_length=KEY_BYTES)]
Hour = Annotated[int, Field(ge=0, lt=10**7)]
"""Hours since 1970."""
Draw = Callable[[int], bytes]
"""Draws so many random bytes."""


class _Stored(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, ser_json_bytes="hex", val_json_bytes="hex"
    )


class Link(_Stored):
    """The random bytes of an hour. Those of release 0.2 are of a chain, in which each follows from the one before."""

    hour: Hour
    link: Key
    source: Literal["drawn", "chain"] = "drawn"

    def key(self, header: ReportHeader) -> bytes:
        """The key of a period that belongs to this hour."""
        about = f"{header.survey}\0{header.fingerprint}\0{header.period}".encode()
        return hmac.digest(self.link, about, "sha256")

    def agreed(self, other: "Link", present: int) -> "Link | None":
        """Which of two links of an hour holds; None if they are of two pools.

        While gateways are upgraded, one may have a link of the chain for an hour for which the keeper has drawn one.
        Nobody has used it before its hour begins.
        """
        if self.link == other.link:
            return self
        if self.source == other.source or self.hour <= present:
            return None
        return self if self.source == "drawn" else other


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
    """All keys that a gateway has: what its state file holds, and what one gateway gives to another.

    `through` is the last hour that has or had a link: nobody draws a second one for an hour up to it, not even after
    its links were erased by a clock that was fast.
    """

    version: Literal[2] = 2
    links: tuple[Link, ...] = ()
    through: Hour | None = None
    keeper: bool = False
    keys: tuple[OpenKey, ...] = ()

    @model_validator(mode="after")
    def _hours_ascend(self) -> Self:
        hours = [link.hour for link in self.links]
        if hours != sorted(set(hours)) or (hours and (self.through is None or self.through < hours[-1])):
            raise ValueError("links must be of one hour each, in their order, up to the last hour")
        return self

    def link(self, hour: int) -> Link | None:
        """The link of an hour; None if this gateway has none, or has erased it."""
        return next((link for link in self.links if link.hour == hour), None)

    def hours_left(self, now: float) -> float:
        """In how many hours the first period begins that has no key."""
        hours = {link.hour for link in self.links}
        end = hour_of(now)
        while end in hours:
            end += 1
        return max(0.0, end - now / HOUR)

    def drawn(self, now: float, draw: Draw) -> "KeyState":
        """With a link for each of the next 48 hours, drawn where no hour before or at it ever had one."""
        present = hour_of(now)
        begin = present - HOURS_BACK
        through = self._last(present)
        if through is not None:
            begin = max(begin, through + 1)
        new = [Link(hour=hour, link=draw(KEY_BYTES)) for hour in range(begin, present + HOURS_AHEAD)]
        if not new:
            return self
        return self.model_copy(update={"links": (*self.links, *new), "through": new[-1].hour})

    def erased(self, now: float, closed: Callable[[OpenKey], bool]) -> "KeyState":
        """Without the keys of closed periods, and without links of more than one hour back.

        Links of days ahead are erased, too: they were drawn by a clock that was fast, and name the senders of then.
        """
        present = hour_of(now)
        kept = [link for link in self.links if present - HOURS_BACK <= link.hour <= present + MOST_AHEAD]
        return self.model_copy(
            update={
                "links": tuple(kept),
                "through": self._last(present),
                "keys": tuple(key for key in self.keys if not closed(key)),
            }
        )

    def merged(self, other: "KeyState", now: float) -> "KeyState":
        """With what another gateway of the cluster has; whether it is the keeper is not taken over.

        Raises StateError if the other one is of another cluster.
        """
        present = hour_of(now)
        links = {link.hour: link for link in self.links}
        for link in other.links:
            agreed = links.get(link.hour, link).agreed(link, present)
            if agreed is None:
                raise _other_pool()
            links[link.hour] = agreed
        keys = {key.header: key for key in other.keys} | {key.header: key for key in self.keys}
        if any(keys[key.header].key != key.key for key in other.keys):
            raise _other_pool()
        through = [hour for hour in (self.through, other.through) if hour is not None]
        return self.model_copy(
            update={
                "links": tuple(links[hour] for hour in sorted(links)),
                "through": max(through, default=None),
                "keys": tuple(keys.values()),
            }
        )

    def exported(self) -> "KeyState":
        """What another gateway may have: the keeper is one gateway, whoever has its keys."""
        return self.model_copy(update={"keeper": False})

    def _last(self, present: int) -> int | None:
        """The last hour that has a link here, or may have one elsewhere.

        An hour that is further ahead than any gateway accepts was drawn by a clock that was fast. If it counted, the
        keeper would draw nothing until then.
        """
        if self.through is None:
            return None
        accepted = [link.hour for link in self.links if link.hour <= present + MOST_AHEAD]
        return max([min(self.through, present + HOURS_AHEAD - 1), *accepted])


class Chain(_Stored):
    """A link of release 0.2, and the hour that it is of. It gives the next one, but not the one before."""

    hour: Hour
    link: Key

    def at(self, hour: int) -> "Chain":
        """The link of a later hour; this one, if that hour is not later.

        >>> Chain(hour=5, link=bytes(32)).at(7) == Chain(hour=5, link=bytes(32)).at(6).at(7)
        True
        """
        return Chain(hour=max(self.hour, hour), link=later_key(self.link, hour - self.hour))


class FormerState(_Stored):
    """What release 0.2 has written, in state files and exports."""

    version: Literal[1] = 1
    chain: Chain | None = None
    keys: tuple[OpenKey, ...] = ()

    def migrated(self, now: float) -> KeyState:
        """The same keys, and the links of the chain for as long as a pool lasts; the chain itself is dropped.

        Gateways of both releases have the same keys as long, so one after the other can be upgraded.
        """
        if self.chain is None:
            return KeyState(keys=self.keys)
        begin = max(self.chain.hour, hour_of(now) - HOURS_BACK)
        links: list[Link] = []
        following = self.chain
        for hour in range(begin, hour_of(now) + HOURS_AHEAD):
            following = following.at(hour)
            links.append(Link(hour=hour, link=following.link, source="chain"))
        through = links[-1].hour if links else self.chain.hour
        return KeyState(links=tuple(links), through=through, keys=self.keys)


def _other_pool() -> StateError:
    return StateError(
        "these keys are of another pool: with two pools, a credential counts twice in a period",
        "keep the file of the gateway whose reports count; delete the other, and import into a new one",
    )


def hour_of(moment: float) -> int:
    """Which hour since 1970 a moment (seconds since 1970) belongs to."""
    return int(moment // HOUR)
