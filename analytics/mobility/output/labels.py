"""The times of windows, in words."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from protocols.survey import Calendar

_DAY_ZERO = date(1970, 1, 1)


def window_ends(calendar: Calendar, first: int, last: int) -> tuple[date, date]:
    """The first and the last day of a window of whole local days; otherwise when its first and last periods begin."""
    if calendar.begins_day(first) and calendar.begins_day(last + 1):
        days = calendar.day(first), calendar.day(last + 1) - 1
        return _DAY_ZERO + timedelta(days[0]), _DAY_ZERO + timedelta(days[1])
    return calendar.local(calendar.begin(first)), calendar.local(calendar.begin(last))


def label(calendar: Calendar, first: int, last: int) -> str:
    """The label of a window: its days, and its hours where it is not made of whole days.

    >>> hours = Calendar(datetime.fromisoformat("2026-01-05T00:00:00Z"), timedelta(hours=1))
    >>> label(hours, 0, 71), label(hours, 0, 23), label(hours, 7, 7)
    ('Mon 5 Jan – Wed 7 Jan', 'Mon 5 Jan', 'Mon 5 Jan 07:00')
    """
    begin, end = (
        f"{at:%a} {at.day} {at:%b}" + (f" {at:%H:%M}" if isinstance(at, datetime) else "")
        for at in window_ends(calendar, first, last)
    )
    return begin if begin == end else f"{begin} – {end}"
