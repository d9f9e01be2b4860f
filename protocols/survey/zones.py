"""Time zones as surveys have them: the zone's offsets, looked up once and then part of the terms.

The rules of a zone change by law, and machines learn of it at different times. So only whoever reads a survey's file
looks into a time-zone database. Everybody else computes with the offsets in the terms.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from itertools import pairwise
from typing import Annotated, Self
from zoneinfo import ZoneInfo, available_timezones

from pydantic import Field, model_validator

from protocols.survey.attribute import Strict

YEARS = 20
"""How far from a survey's start the offsets reach. A survey with a time zone is over then."""
MOST_OFFSETS = 500
DAY_SECONDS = 86400
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,3}")
_DAY = timedelta(days=1)

Second = Annotated[int, Field(ge=-(1 << 36), lt=1 << 36)]
Offset = Annotated[int, Field(gt=-DAY_SECONDS, lt=DAY_SECONDS)]


class TimeZone(Strict):
    """A time zone around the life of a survey. In a survey file its name is enough."""

    name: str = Field(pattern=f"^{_NAME.pattern}$", description="its name, such as Europe/Paris; for people")
    offsets: tuple[tuple[Second, Offset], ...] = Field(
        min_length=1,
        max_length=MOST_OFFSETS,
        description="since when (seconds since 1970) how many seconds local time is ahead of UTC, ascending",
    )
    until: Second = Field(description="seconds since 1970: what comes later is not known")

    @model_validator(mode="after")
    def _check(self) -> Self:
        moments = [since for since, _ in self.offsets] + [self.until]
        if any(later <= earlier for earlier, later in pairwise(moments)):
            raise ValueError("time_zone: the moments of its offsets do not ascend; write the zone's name instead")
        return self


def resolve(name: str, start: datetime) -> TimeZone:
    """A zone from the time-zone database of this machine, from the day before `start` on for `YEARS` years.

    >>> zone = resolve("Europe/Paris", datetime.fromisoformat("2026-01-01T00:00:00+01:00"))
    >>> [(datetime.fromtimestamp(since, UTC).isoformat(), offset) for since, offset in zone.offsets[:3]]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('2025-12-30T23:00:00+00:00', 3600), ('2026-03-29T01:00:00+00:00', 7200), ('2026-10-25T01:00:00+00:00', 3600)]
    """
    zone = _lookup(name)
    first, until = start.astimezone(UTC) - _DAY, (start + YEARS * 365.25 * _DAY).astimezone(UTC)
    offsets = [(int(first.timestamp()), _offset(zone, first))]
    before = first
    while before < until:
        after = min(before + _DAY, until)
        if _offset(zone, after) != offsets[-1][1]:
            changed = _change(zone, before, after)
            offsets.append((int(changed.timestamp()), _offset(zone, changed)))
        before = after
    return TimeZone(name=name, offsets=tuple(offsets), until=int(until.timestamp()))


def _change(zone: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """The first second after `before` with the offset of `after`; there is one change between them."""
    new = _offset(zone, after)
    while after - before > timedelta(seconds=1):
        middle = before + (after - before) // timedelta(seconds=2) * timedelta(seconds=1)
        before, after = (before, middle) if _offset(zone, middle) == new else (middle, after)
    return after


def _offset(zone: ZoneInfo, moment: datetime) -> int:
    """In whole seconds, as all zones have been since 1972."""
    ahead = moment.astimezone(zone).utcoffset()
    assert ahead is not None
    return round(ahead.total_seconds())


def _lookup(name: str) -> ZoneInfo:
    try:
        if not _NAME.fullmatch(name):
            raise ValueError
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise ValueError(f"this machine knows no such time zone{_advice(name)}") from None


def _advice(name: str) -> str:
    known = sorted(available_timezones())
    if not known:
        return ", and no other: it has no time-zone database; install the package tzdata"
    last = {zone.rpartition("/")[2].lower(): zone for zone in known}
    near = get_close_matches(name, known, n=1) or [
        last[word] for word in get_close_matches(name.replace(" ", "_").lower(), last, n=1)
    ]
    return f"; did you mean {near[0]}?" if near else "; write it like Europe/Paris"
