"""Days of a time zone: their boundaries against the time-zone database, and what is refused."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from protocols.scheme import Scheme
from protocols.survey import DAY, HOUR, Survey, micros
from protocols.survey_text import parse_survey
from tests.helpers.terms import decode_terms

YEARS = {
    "Europe/Paris": "2026-01-01T00:00:00+01:00",
    "America/Sao_Paulo": "2018-07-01T00:00:00-03:00",  # no midnight on 2018-11-04, and 23:00 twice on 2019-02-16
    "America/Havana": "2026-01-01T00:00:00-05:00",  # midnight twice in November
    "America/St_Johns": "2010-01-01T00:00:00-03:30",  # a minute of the new day, then an hour of the old one again
    "Australia/Lord_Howe": "2026-01-01T00:00:00+11:00",  # half an hour
    "Asia/Kolkata": "2026-01-01T00:00:00+05:30",
    "Pacific/Apia": "2011-07-01T00:00:00-11:00",  # 2011-12-30 does not exist
    "UTC": "2026-01-01T00:00:00+00:00",
}


def survey_in(zone: str, start: str, period: str = "1d", more: str = "") -> Survey:
    return parse_survey(
        f"{{id: s, start: {start}, period: {period}, time_zone: {zone}, eps: 1, {more} "
        "attributes: [{name: a, values: [x, y]}]}"
    )


def first_minute(zone: str, day: date) -> datetime:
    """The first minute whose local date is this one or a later one, found by looking at every minute around it."""
    around = datetime(day.year, day.month, day.day, tzinfo=UTC) - timedelta(hours=16)
    minutes = (around + timedelta(minutes=i) for i in range(60 * 60))
    return next(minute for minute in minutes if minute.astimezone(ZoneInfo(zone)).date() >= day)


@pytest.mark.parametrize("zone", YEARS)
def test_a_day_begins_at_its_first_existing_instant(zone: str) -> None:
    survey = survey_in(zone, YEARS[zone])
    first = survey.start.astimezone(ZoneInfo(zone)).date()
    offsets = survey.time_zone.offsets  # type: ignore[union-attr]
    near = {survey.period_of(datetime.fromtimestamp(since, UTC)) + i for since, _ in offsets[:3] for i in range(-1, 3)}
    for period in {0, 1, 200, *near} - {-2, -1}:
        begin, end = survey.bounds(period)
        assert begin == first_minute(zone, first + period * DAY), (zone, period)
        assert end == survey.bounds(period + 1)[0]
        assert begin.utcoffset() == begin.astimezone(ZoneInfo(zone)).utcoffset()


@pytest.mark.parametrize("zone", YEARS)
def test_numbers_and_arrays_of_instants_have_the_same_periods(zone: str) -> None:
    calendar = survey_in(zone, YEARS[zone]).calendar
    begins = calendar.begin(np.arange(800))
    assert begins.tolist() == [calendar.begin(period) for period in range(800)]
    for shift in (-1, 0, 1, HOUR // timedelta(microseconds=1)):
        instants = begins + shift
        assert calendar.of(instants).tolist() == [calendar.of(instant) for instant in instants.tolist()]
    lasting = np.diff(begins) > 0  # a day that does not exist takes no time
    assert calendar.of(begins[:-1])[lasting].tolist() == np.arange(799)[lasting].tolist()
    assert calendar.of(begins[1:] - 1)[lasting].tolist() == np.arange(799)[lasting].tolist()


def test_weeks_are_seven_local_days_hours_are_hours_and_a_day_may_begin_at_one() -> None:
    weekly = survey_in("Europe/Paris", "2026-03-23T00:00:00+01:00", "1w")
    assert weekly.bounds(0)[1] - weekly.bounds(0)[0] == timedelta(days=7) - HOUR
    hourly = survey_in("Europe/Paris", "2026-03-29T00:00:00+01:00", "1h")
    assert [hourly.bounds(hour)[0].isoformat()[11:] for hour in (1, 2)] == ["01:00:00+01:00", "03:00:00+02:00"]
    assert {end - begin for begin, end in map(hourly.bounds, range(30))} == {HOUR}
    survey = survey_in("America/Sao_Paulo", "2018-11-04T01:00:00-02:00")
    begins = ["2018-11-04 01:00:00-02:00", "2018-11-05 00:00:00-02:00"]
    assert [str(survey.bounds(period)[0]) for period in (0, 1)] == begins


def test_the_terms_have_the_offsets_so_that_nobody_else_looks_them_up(monkeypatch: pytest.MonkeyPatch) -> None:
    survey = survey_in("Europe/Paris", "2026-01-01T00:00:00+01:00")
    scheme = Scheme(survey)
    assert survey.declared_terms["time_zone"]["offsets"][1] == [1774746000, 7200]
    monkeypatch.setattr("protocols.survey.calendar.ZoneInfo", None)
    assert decode_terms(scheme.terms).fingerprint == scheme.fingerprint
    assert Survey.model_validate_json(survey.model_dump_json()) == survey


def test_a_survey_in_a_zone_ends_after_twenty_years_and_is_open_as_long_as_its_shortest_days_need() -> None:
    survey = survey_in("Europe/Paris", "2026-01-01T00:00:00+01:00")
    assert survey.bounds(survey.calendar.last)[1].date() == date(2046, 1, 1)
    with pytest.raises(OverflowError, match="the last one"):
        survey.bounds(survey.calendar.last + 1)
    start, more = "2026-01-01T00:00:00+01:00", "grace: 2d, clock: source,"
    paris, utc = survey_in("Europe/Paris", start, more=more), survey_in("UTC", "2026-01-01T00:00:00Z", more=more)
    assert (paris.ahead, utc.ahead) == (5, 4)


@pytest.mark.parametrize(
    "offsets",
    [
        [[1767135600, 3600], [1767135600, 7200]],  # not ascending
        [[1767135601, 3600]],  # not a day before the start
        [[1767135600, 86400]],  # no such offset
        [[1767135600, 3600, 1]],
        [],
    ],
)
def test_offsets_that_are_none_are_refused(offsets: list[list[int]]) -> None:
    terms = survey_in("Europe/Paris", "2026-01-01T00:00:00+01:00").declared_terms
    terms["time_zone"]["offsets"] = offsets
    with pytest.raises(ValueError, match="time_zone"):
        Survey.model_validate(terms)


def test_days_later_keep_the_local_time() -> None:
    hourly = survey_in("Europe/Paris", "2026-03-20T00:00:00+01:00", "1h").calendar
    noon = hourly.of(micros(datetime.fromisoformat("2026-03-31T12:00:00+02:00")))
    before = hourly.local(hourly.begin(hourly.days_later(noon, -7)))
    assert before.isoformat() == "2026-03-24T12:00:00+01:00"
    assert hourly.day(noon) == (date(2026, 3, 31) - date(1970, 1, 1)).days
    assert hourly.hour(noon) == micros(datetime.fromisoformat("2026-03-31T12:00:00+02:00"))
