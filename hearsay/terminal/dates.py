"""Periods and windows by their days and hours, as people write them."""

from datetime import timedelta

from protocols.survey import EPOCH, HOUR, MICROSECOND, Calendar


def when(calendar: Calendar, first: int, last: int | None = None) -> str:
    """The days of a window of whole local days; otherwise when its first and its last period begin.

    An hour that the clock repeats has its offset from UTC.

    >>> from protocols.survey import Survey
    >>> terms = {"id": "h", "start": "2026-10-25T00:00:00+02:00", "time_zone": "Europe/Paris", "period": "1h", "eps": 1}
    >>> hours = Survey.model_validate(terms | {"attributes": [{"name": "a", "values": ["b", "c"]}]}).calendar
    >>> when(hours, 0, 24), when(hours, 3), when(hours, 4)
    ('Sun 2026-10-25', 'Sun 2026-10-25 02:00 +01:00', 'Sun 2026-10-25 03:00')
    """
    last = first if last is None else last
    if calendar.begins_day(first) and calendar.begins_day(last + 1):
        days = (calendar.day(first), calendar.day(last + 1) - 1)
        begin, end = (f"{EPOCH + timedelta(day):%a %Y-%m-%d}" for day in days)
    else:
        begin, end = (_hour(calendar, calendar.begin(period)) for period in (first, last))
    return begin if begin == end else f"{begin} to {end}"


def _hour(calendar: Calendar, instant: int) -> str:
    at, before, after = (calendar.local(instant + hours * (HOUR // MICROSECOND)) for hours in (0, -1, 1))
    repeated = at.replace(tzinfo=None) in (before.replace(tzinfo=None), after.replace(tzinfo=None))
    return f"{at:%a %Y-%m-%d %H:%M}{' ' + at.isoformat()[-6:] if repeated else ''}"
