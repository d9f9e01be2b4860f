"""The clock of the machine beside what reports say: a clock that is far ahead closes nothing.

What is closed stays closed: with a clock that is a year ahead, all reports of a year would be late. Devices have clocks
of their own. So a period is closed only if it is at most one period ahead of the middle one of the last reports.

Where no reports come there is nothing to compare with, and nothing that would be late: the clock is believed.
"""

from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from statistics import median_high

import structlog

from gateway.door import Times, closing_time
from protocols.survey import Survey

SHOWING = 99
"""How many reports are compared: more than half of them must be wrong to hold up a survey."""
LONGEST = timedelta(weeks=1)
SOONER = 2.0  # seconds: the door closes up to one earlier than a period
log = structlog.get_logger(__name__)


class ReportedTimes(Times):
    """Reports count for two periods (`LONGEST` at most), by `elapsed`, which no change of the clock moves.

    `closed` gives the last closed period of a survey: reports of such periods say nothing, they may be of any age.
    """

    def __init__(self, closed: Callable[[str], int], elapsed: Callable[[], float]) -> None:
        self._closed = closed
        self._elapsed = elapsed
        self._seen: dict[str, deque[tuple[float, int]]] = {}  # by survey: when, and of which period
        self._held: set[str] = set()

    def note(self, survey: Survey, period: int) -> None:
        if self._closed(survey.id) < period <= survey.calendar.last - 2:
            self._seen.setdefault(survey.id, deque(maxlen=SHOWING)).append((self._elapsed(), period))

    def moment(self, survey: Survey, now: float) -> float:
        since = self._elapsed() - min(2 * survey.period, LONGEST).total_seconds()
        periods = [period for at, period in self._seen.get(survey.id, deque()).copy() if at > since]
        middle = median_high(periods) if periods else None
        if middle is None or now < closing_time(survey, middle + 2).timestamp():
            if survey.id in self._held:
                self._held.discard(survey.id)
                log.warning("periods are closed again", survey=survey.id, reported=middle)
            return now
        if survey.id not in self._held:
            self._held.add(survey.id)
            log.error(
                "this machine's clock is far ahead of the reports: no period is closed; set the clock right",
                survey=survey.id,
                reported=middle,
                clock=survey.period_of(datetime.fromtimestamp(now, UTC)),
            )
        first_open = min(self._closed(survey.id) + 1, survey.calendar.last)
        return min(now, closing_time(survey, first_open).timestamp() - SOONER)
