"""`hearsay serve` goes by the calendar of a survey: days of 23 and 25 hours end when the local day does."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from stream_app.local import LocalStore
from tests.gateway.world import Moment, embedded, report, scheme, serving
from tests.helpers.eventually import eventually
from views.reading import Results

# Midnight before the day before clocks change, midnight after the day of the change, and how much longer it is.
SPRING = ("2026-03-28T00:00:00+01:00", "2026-03-30T00:00:00+02:00", -3600)
AUTUMN = ("2026-10-24T00:00:00+02:00", "2026-10-26T00:00:00+01:00", 3600)


def seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


@pytest.mark.parametrize(("start", "end", "longer"), [SPRING, AUTUMN], ids=["23 hours", "25 hours"])
def test_a_local_day_is_closed_at_its_own_end_and_not_after_24_hours(
    start: str, end: str, longer: int, tmp_path: Path
) -> None:
    """Failure would look like: reports of its last hour refused as late, or its result an hour after its end."""
    paris = scheme("time_zone: Europe/Paris,", start=start)
    grace = paris.survey.grace.total_seconds()
    assert seconds(end) - seconds(start) == 2 * 86400 + longer
    now = Moment(seconds(end) + grace - 2)
    with embedded(tmp_path, now, paris.survey) as log, serving(log, [paris], now) as gateway:
        store = LocalStore.existing(tmp_path)
        answers = [gateway.post_one(report(paris, period)).status for period in (0, 1, 1, 2)]
        assert answers == [422, 201, 201, 201], "the first day is closed, the second one is still in its grace"
        assert Results(store).histograms(paris.survey.id) == []
        now.value = seconds(end) + grace
        eventually(lambda: Results(store).histograms(paris.survey.id) != [])
        assert gateway.post_one(report(paris, 1)).reason == "late"
        assert [(final.period, final.n) for final in Results(store).histograms(paris.survey.id)] == [(1, 2)]
