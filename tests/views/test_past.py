"""What views see of the finals that came before."""

from dataclasses import replace

from analytics.windows import WindowSums
from protocols.wire import decode_frame
from stream_app.counting import PeriodCounts
from stream_app.finals import Final, NotCounted, released_units, sums_through
from tests.stream_app.worlds import CALENDAR, Reports, Row, by_calendar, wire
from views.past import Past, history_of
from views.results import MOBILITY


def calendar_finals() -> list[Final]:
    """Three days: device 1 comes on each of them, and each day another one comes for the first time."""
    finals: list[Final] = []
    sums: WindowSums = {}
    for day in by_calendar([Reports(period, (Row(1), Row(2 + period))) for period in range(3)]):
        assert isinstance(day, Reports)
        counted = PeriodCounts(CALENDAR)
        frame = decode_frame(wire(day, CALENDAR)[1], {"c": CALENDAR}.get)
        counted.count(frame)
        final = Final.of(CALENDAR, day.period, counted.snapshot(), NotCounted())
        sums = sums_through(CALENDAR, day.period, counted.snapshot(), NotCounted(), sums)
        finals.append(replace(final, units=released_units(sums, CALENDAR, day.period)))
    return finals


def test_windows_of_the_calendar_are_made_with_the_sums_of_the_newest_final() -> None:
    finals = calendar_finals()
    report = MOBILITY.make(Past(CALENDAR, finals))
    assert report is not None
    since_beginning = next(window for window in report.windows if window.kind == "ever")
    assert since_beginning.visitors is not None and since_beginning.visitors.value == 4
    assert history_of(CALENDAR, finals).units["ever"].n["colour"] == 4
