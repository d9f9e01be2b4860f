"""Judging reports before they are written: their form, their terms, and whether their period is open.

The reasons are those of dead letters. A report that passes is counted, unless its token was counted before: whether the
numbers of its row are good is found when rows are gathered (`gathering.py`).

The gateway's clock may differ from that of the process that closes periods. So the door closes a little earlier than
the period, and a report is confirmed only if it was in the log by then.
"""

from datetime import UTC, datetime, timedelta

from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.wire import Frame, Lookup, Reason, Reject, ReportHeader, ReportRow, last_due, time_fault

MARGIN = timedelta(seconds=1)
"""By how much two clocks may differ, as far as a survey's grace allows."""
EARLY = timedelta(minutes=1)
"""How long before its begin a period is open, for devices whose clocks are fast."""
KEPT = 1000
_NEVER = None, float("inf"), float("-inf")


def closing_time(survey: Survey, period: int) -> datetime:
    """When the door closes for a period: its end plus grace, less a margin of at most half of the grace.

    >>> from protocols.survey_text import parse_survey
    >>> hourly = parse_survey('''{id: s, start: 2026-01-01T00:00Z, period: 1h, grace: 30m, eps: 1,
    ...                           attributes: [{name: a, values: [x, y]}]}''')
    >>> closing_time(hourly, 0).isoformat()
    '2026-01-01T01:29:59+00:00'
    """
    return survey.bounds(period)[1] + survey.grace - _margin(survey)


def _margin(survey: Survey) -> timedelta:
    return min(MARGIN, survey.grace / 2)


def open_periods(survey: Survey, now: float) -> range:
    """The periods of a survey whose doors are open, by the clock (seconds since 1970)."""
    moment = datetime.fromtimestamp(now, UTC)
    last = min(survey.period_of(moment + EARLY), survey.calendar.last)
    return range(last_due(survey, moment + _margin(survey)) + 1, last + 1)


class Times:
    """By what time the periods of surveys end: the clock's. A log that closes them itself may know better."""

    def closed_through(self, survey: str) -> int:
        """The last period of a survey that is known to be closed; -1 if none is, as where others close them."""
        return -1

    def note(self, survey: Survey, period: int) -> None:
        """A report of a period has come, whether or not it is taken."""

    def moment(self, survey: Survey, now: float) -> float:
        """By what time the periods of a survey are closed when the clock says `now` (seconds since 1970)."""
        return now


class Door:
    """Judges reports for the surveys that `lookup` has.

    Surveys with `clock: source` are open for every period that is not known to be closed: only their source knows
    their time.
    """

    def __init__(self, lookup: Lookup, times: Times) -> None:
        self.lookup = lookup
        self._times = times
        self._open: dict[ReportHeader, tuple[Scheme, float, float]] = {}

    def fault(self, report: ReportRow | Frame, now: float) -> Reject | None:
        """Why reports that have the form of their survey are not taken now (seconds since 1970); None if they are."""
        header = report.header
        if self._is_open(header, now):
            return None
        scheme = header.scheme(self.lookup)
        if isinstance(scheme, Reject):
            return scheme
        rows = len(report) if isinstance(report, Frame) else 1
        fault = self._time_fault(scheme.survey, header.period, rows, now)
        if fault is None:
            if len(self._open) >= KEPT:
                self._open.clear()
            self._open[header] = scheme, *_times(scheme.survey, header.period)
        return fault

    def _is_open(self, header: ReportHeader, now: float) -> bool:
        """Whether reports with this header were taken before, and still are: many have the same."""
        scheme, begin, end = self._open.get(header, _NEVER)
        closed = self._times.closed_through(header.survey)
        return begin <= now < end and scheme is self.lookup(header.survey) and header.period > closed

    def _time_fault(self, survey: Survey, period: int, rows: int, now: float) -> Reject | None:
        closed = self._times.closed_through(survey.id)
        if survey.clock != "wall":
            return time_fault(survey.id, period, rows, closed, period - closed)
        self._times.note(survey, period)
        ended = datetime.fromtimestamp(self._times.moment(survey, now), UTC)
        through = max(last_due(survey, ended + _margin(survey)), closed)
        begun = survey.period_of(datetime.fromtimestamp(now, UTC) + EARLY)
        if begun < 0:
            return Reject(Reason.TOO_FAR_AHEAD, "the survey has not begun", survey.id, rows)
        return time_fault(survey.id, period, rows, through, min(max(begun - through, 0), survey.ahead))


def _times(survey: Survey, period: int) -> tuple[float, float]:
    """From when until when a period is open, in seconds since 1970."""
    if survey.clock != "wall":
        return float("-inf"), float("inf")
    return (survey.bounds(period)[0] - EARLY).timestamp(), closing_time(survey, period).timestamp()
