"""Surveys of local days whose first day ends when a test wants it to, and does not have 24 hours."""

from datetime import UTC, datetime, timedelta

from protocols.scheme import Scheme
from protocols.survey import Survey, TimeZone

DAY_SECONDS = 86400


def day_that_ends(survey: Survey, at: int, hours: int) -> Scheme:
    """The survey on a wall clock of a place where the local day that ends `at` (seconds since 1970) has so many hours.

    Clocks are changed in the middle of that day, which is period 0.
    """
    begin, change = at - hours * 3600, at - 12 * 3600
    after = DAY_SECONDS // 2 - (at + DAY_SECONDS // 2) % DAY_SECONDS  # so that midnight is then
    before = after - (24 - hours) * 3600
    zone = TimeZone(
        name="Test/Here", offsets=((begin - DAY_SECONDS, before), (change, after)), until=at + 30 * DAY_SECONDS
    )
    terms = survey.model_dump() | {
        "id": f"day-of-{hours}-hours",
        "clock": "wall",
        "start": datetime.fromtimestamp(begin, UTC).isoformat(),
        "period": "1d",
        "grace": "1s",
        "time_zone": zone.model_dump(),
    }
    scheme = Scheme(Survey.model_validate(terms))
    begins, ends = scheme.survey.bounds(0)
    assert ends - begins == timedelta(hours=hours) and ends.timestamp() == at
    return scheme
