"""When the periods of a survey begin and end, and its time zone.

Periods follow each other without gaps from the survey's start on. All are equally long, with one exception: where the
survey has a time zone and the period is a whole number of days, period p begins with the local day that is p times the
period after the first one, at its first existing instant. Such periods are an hour shorter or longer when clocks
change.

Instants are microseconds since 1970, single numbers or arrays, or datetimes.

A time zone is its offsets, looked up once and then part of the terms. The rules of a zone change by law, and machines
learn of it at different times. So only whoever reads a survey's file looks into a time-zone database. Everybody else
computes with the offsets in the terms.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from difflib import get_close_matches
from functools import lru_cache
from itertools import pairwise
from math import ceil
from typing import Annotated, Literal, NamedTuple, Self, TypeVar
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
from pydantic import Field, model_validator

from protocols.arrays.aliases import Whole
from protocols.survey.attribute import refuse_twice
from protocols.survey.names import Strict

YEARS = 20
"""How far from a survey's start the offsets reach. A survey with a time zone is over then."""
MOST_OFFSETS = 500
DAY_SECONDS = 86400
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,3}")

Second = Annotated[int, Field(ge=-(1 << 36), lt=1 << 36)]
Offset = Annotated[int, Field(gt=-DAY_SECONDS, lt=DAY_SECONDS)]


class TimeZone(Strict):
    """A time zone around the life of a survey. In a survey file its name is enough."""

    name: str = Field(pattern=f"^{_NAME.pattern}$")
    offsets: tuple[tuple[Second, Offset], ...] = Field(min_length=1, max_length=MOST_OFFSETS)
    until: Second

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

    def offset(second: int) -> int:
        """In whole seconds, as all zones have been since 1972."""
        ahead = datetime.fromtimestamp(second, zone).utcoffset()
        assert ahead is not None
        return round(ahead.total_seconds())

    first, until = int((start - DAY).timestamp()), int((start + YEARS * 365.25 * DAY).timestamp())
    offsets = [(first, offset(first))]
    for before in range(first, until, DAY_SECONDS):
        new = offset(min(before + DAY_SECONDS, until))
        if new != offsets[-1][1]:  # there is one change in a day
            seconds = range(before, before + DAY_SECONDS)
            offsets.append((before + bisect_left(seconds, True, key=lambda second: offset(second) == new), new))
    return TimeZone(name=name, offsets=tuple(offsets), until=until)


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


MAX_PERIOD = (1 << 32) - 1  # stands for none
MICROSECOND, SECOND = timedelta(microseconds=1), timedelta(seconds=1)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND, _HOUR, _DAY = SECOND // MICROSECOND, HOUR // MICROSECOND, DAY // MICROSECOND
_EVER = 1 << 62

Numbers = TypeVar("Numbers", int, Whole)


class Calendar:
    """The periods of one survey.

    >>> paris = TimeZone(name="Europe/Paris", offsets=((1774479600, 3600), (1774746000, 7200)), until=1775000000)
    >>> days = Calendar(datetime.fromisoformat("2026-03-28T00:00:00+01:00"), timedelta(days=1), paris)
    >>> [day.isoformat() for day in days.bounds(1)]
    ['2026-03-29T00:00:00+01:00', '2026-03-30T00:00:00+02:00']
    >>> days.of(micros(datetime.fromisoformat("2026-03-29T22:30:00Z")))
    2
    >>> days.last
    3
    """

    def __init__(self, start: datetime, period: timedelta, zone: TimeZone | None = None) -> None:
        self.start = start
        self.period = period
        self.zone = zone
        fixed = (0, (start.utcoffset() or timedelta(0)) // SECOND)
        self._clock = _clock_of([fixed] if zone is None else zone.offsets)
        self.uniform = zone is None or bool(period % DAY)
        """Whether all periods are equally long."""
        self._origin = micros(start)
        self._length = period // MICROSECOND
        self._first_day = self._clock.local(self._origin) // _DAY * _DAY
        last = MAX_PERIOD - 1
        self.last = last if zone is None else min(last, self.of(zone.until * _SECOND) - 1)
        """The last period that there is: reports carry no larger number, and a zone is known for some time only."""

    def begin(self, period: Numbers) -> Numbers:
        """When a period begins: microseconds since 1970."""
        if self.uniform:
            return self._origin + period * self._length
        return self._clock.first_instant(self._first_day + period * self._length)

    def end(self, period: Numbers) -> Numbers:
        """When it ends, which is when the next one begins."""
        return self.begin(period + 1)

    def of(self, instant: Numbers) -> Numbers:
        """The period that an instant belongs to; negative before the start."""
        if self.uniform:
            return (instant - self._origin) // self._length
        return (self._clock.reached(instant) - self._first_day) // self._length

    def closed(self, instant: Numbers, grace: timedelta = timedelta(0)) -> Numbers:
        """The last period whose end plus grace is not after an instant."""
        return self.of(instant - grace // MICROSECOND) - 1

    def day(self, period: Numbers) -> Numbers:
        """The local day on which a period begins, counted from 1970-01-01."""
        return self._clock.reached(self.begin(period)) // _DAY

    def hour(self, period: Numbers) -> Numbers:
        """When the local hour begins in which a period begins."""
        begin = self.begin(period)
        return begin - self._clock.local(begin) % _HOUR

    def on_the_wall(self, period: Numbers) -> Numbers:
        """The number of a period as clocks on the wall count: what they skip in spring is counted, too.

        >>> start = datetime.fromisoformat("2026-03-29T00:00:00+01:00")
        >>> hours = Calendar(start, HOUR, resolve("Europe/Paris", start))
        >>> [hours.on_the_wall(period) for period in (0, 1, 2, 3)]
        [0, 1, 3, 4]
        """
        if not self.uniform:
            return period
        shown = self._clock.local(self.begin(period)) - self._clock.local(self._origin)
        return (shown + self._length // 2) // self._length

    def begins_day(self, period: int) -> bool:
        """Whether a period begins at the first instant of a local day."""
        return self._clock.reached(self.begin(period) - 1) // _DAY < self.day(period)

    def days_later(self, period: int, days: int) -> int:
        """The first period that begins at the same local time, or after it, so many days later (or earlier)."""
        if not self._length % _DAY:
            return period - (-days * _DAY // self._length)
        instant = self._clock.first_instant(self._clock.local(self.begin(period)) + days * _DAY)
        return self.of(instant - 1) + 1

    def span(self, duration: timedelta) -> int:
        """The most periods that can begin within a time this long, its end included.

        >>> Calendar(EPOCH, HOUR).span(timedelta(minutes=90))
        2
        """
        return ceil(duration / self.period) if self.uniform else _span(self, duration)

    def bounds(self, period: int) -> tuple[datetime, datetime]:
        """When a period begins and ends, in local time. Raises OverflowError for one after the last."""
        if period > self.last:
            raise OverflowError(f"period {period} is after {self.last}, the last one")
        return self.local(self.begin(period)), self.local(self.end(period))

    def local(self, instant: int) -> datetime:
        """An instant with the offset of local time: that of the zone, or of the survey's start."""
        offset = timezone((self._clock.local(instant) - instant) * MICROSECOND)
        return (EPOCH + instant * MICROSECOND).astimezone(offset)


def micros(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - EPOCH) // MICROSECOND


class _Clock(NamedTuple):
    """Local time, as microseconds since 1970-01-01T00:00 local time, in stretches of one offset each."""

    since: Whole
    offset: Whole
    ends: Whole
    """The latest local time before the end of each stretch or an earlier one, and one microsecond."""

    def local(self, instant: Numbers) -> Numbers:
        """What clocks show."""
        stretch = np.searchsorted(self.since, instant, side="right") - 1
        return _as(instant, instant + self.offset[stretch])

    def reached(self, instant: Numbers) -> Numbers:
        """The latest local time that clocks have shown until an instant: it does not go back when clocks do."""
        stretch = np.searchsorted(self.since, instant, side="right") - 1
        earlier = np.where(stretch > 0, self.ends[stretch - 1] - 1, -_EVER)
        return _as(instant, np.maximum(instant + self.offset[stretch], earlier))

    def first_instant(self, local: Numbers) -> Numbers:
        """When clocks first show a local time, or a later one if it does not exist."""
        stretch = np.searchsorted(self.ends, local, side="right")
        return _as(local, np.maximum(self.since[stretch], local - self.offset[stretch]))


def _as(given: Numbers, found: Whole | np.int64) -> Numbers:
    return int(found) if isinstance(given, int) else found  # type: ignore[return-value]


def _clock_of(offsets: Sequence[tuple[int, int]]) -> _Clock:
    """Of a zone: since when local time is how many seconds ahead of UTC. The first offset also holds before."""
    since, ahead = (_SECOND * np.array(column) for column in zip(*offsets, strict=True))
    since[0] = -_EVER
    ends = np.append(np.maximum.accumulate(since[1:] + ahead[:-1]), _EVER)
    return _Clock(since, ahead, ends)


@lru_cache(maxsize=256)
def _span(calendar: Calendar, duration: timedelta) -> int:
    periods = np.arange(calendar.last + 2)
    return int((periods - calendar.of(calendar.begin(periods) - duration // MICROSECOND)).max())


@lru_cache(maxsize=256)
def calendar_of(start: datetime, ahead: timedelta, period: timedelta, zone: TimeZone | None) -> Calendar:
    """The calendar of these terms, kept. Starts that are `ahead` of UTC by different times are equal as instants."""
    return Calendar(start, period, zone)


Unit = Literal["day", "week", "month", "year", "ever"]
SHORTER: dict[Unit, int] = {"day": 1, "week": 7, "month": 31, "year": 366}
"""Periods of so many days or more are never twice in the same unit."""


class Visitors(Strict):
    """Calendar visitors: the units in which unique devices are counted, by flags that a report has instead of a gap."""

    units: tuple[Unit, ...] = Field(min_length=1, max_length=5)

    @classmethod
    def usual(cls, period: timedelta) -> Self:
        """What `visitors: calendar` counts: of weeks, months and ever those that are longer than a period."""
        units: tuple[Unit, ...] = ("week", "month")
        return cls(units=(*(unit for unit in units if period < timedelta(days=SHORTER[unit])), "ever"))

    def check(self, period: timedelta) -> None:
        """Raise ValueError if a unit is named twice, or is never longer than a period."""
        refuse_twice(self.units, "visitors: the list has", "name each unit once")
        for unit in self.units:
            if unit != "ever" and period >= timedelta(days=SHORTER[unit]):
                raise ValueError(f"visitors: no {unit} has two periods; leave it out, or choose a shorter period")
