"""The times of windows, in words."""

from __future__ import annotations

from datetime import date, timedelta

from protocols.survey import Calendar

_DAY_ZERO = date(1970, 1, 1)


def window_ends(calendar: Calendar, first: int, last: int) -> tuple[date, date]:
    """The first and the last day of a window of whole local days; otherwise when its first and last periods begin."""
    if calendar.begins_day(first) and calendar.begins_day(last + 1):
        days = calendar.day(first), calendar.day(last + 1) - 1
        return _DAY_ZERO + timedelta(days[0]), _DAY_ZERO + timedelta(days[1])
    return calendar.local(calendar.begin(first)), calendar.local(calendar.begin(last))
