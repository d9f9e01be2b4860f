"""What has come as events: results one by one, and documents about surveys and about how they are doing.

A final is shown by its mobility report, which has all that its histogram has for a page.
"""

from collections import Counter
from collections.abc import Callable, Iterator

import structlog
from pydantic import BaseModel
from pydantic_core import to_json

from analytics.mobility import MobilityReport
from pages.dashboard.feed import Document, Result
from pages.dashboard.streaming import segment
from pages.events import Event, Record, event, forecast_event, live_event, mobility_events, nowcast_event
from protocols.errors import HearsayError
from protocols.survey import Survey
from stream_app.finals import rounded
from stream_app.log import Come
from views.forecasts import ForecastResult
from views.reading import Followed, Follower
from views.results import Histogram, Live, MobilityResult, NowcastResult

MOST_UNREAD = 20
"""How many records that cannot be shown are named, the newest ones."""
LONGEST_KEY = 200

log = structlog.get_logger(__name__)
RECENT = 60
"""Of how many periods the numbers of reports are shown."""
GOOD = "consistent"
"""The verdict that is no alarm."""


class SurveyStatus:
    """The status of one survey. It knows only what was published: a suppressed number is not there."""

    def __init__(self) -> None:
        self.title = ""
        self._finals: dict[int, Record] = {}  # of recent periods
        self._open: list[Record] = []
        self._live: Record = {"closed_through": None, "rejects": {}, "late": 0, "lost": 0}
        self._verdicts: Counter[str] = Counter()  # on the integrity of finals
        self._alarms: dict[int, Record] = {}  # the periods whose verdict is not good, the newest ones

    def note(self, result: BaseModel) -> None:
        """Take in a result."""
        if isinstance(result, Histogram):
            _keep(self._finals, _period(result))
            if result.integrity is not None:
                verdict = result.integrity.verdict
                self._verdicts[verdict] += 1
                if verdict != GOOD:
                    _keep(self._alarms, _period(result) | {"verdict": verdict})
        elif isinstance(result, Live):
            self._open = list(map(_period, result.open))
            self._live = {
                "closed_through": None if result.closed_through < 0 else result.closed_through,
                "rejects": result.rejects,
                "late": sum(result.lates.values()),
                "lost": sum(loss.reports for loss in result.lost),
            }

    def record(self, lag: int | None) -> Record:
        """The document. `lag` is how many records of all surveys are not counted yet; None where it is not shown."""
        return {
            "title": self.title,
            "periods": [self._finals[period] for period in sorted(self._finals)],
            "open": [found for found in self._open if found["period"] not in self._finals],
            "last_final": self._finals[max(self._finals)] if self._finals else None,
            **self._live,
            "lag": lag,
            "integrity": dict(self._verdicts) or None,
            "alarms": [self._alarms[period] for period in sorted(self._alarms)],
        }


def _keep(recent: dict[int, Record], record: Record) -> None:
    recent[record["period"]] = record
    if len(recent) > RECENT:
        del recent[min(recent)]


def _period(found: Histogram) -> Record:
    return found.model_dump(mode="json", include={"period", "begin", "end", "n", "suppressed"})


Describe = Callable[[Survey, tuple[str, ...]], Event]
"""Makes the event of a survey, from it and from what its newest report says about how to read it."""
Adjust = Callable[[MobilityReport], MobilityReport]
"""Adds what is known elsewhere to a report, such as losses."""


class Making:
    """Makes events of what comes, in order, for the surveys named or for all."""

    def __init__(self, chosen: frozenset[str], describe: Describe, adjust: Adjust) -> None:
        self._chosen = chosen
        self._describe = describe
        self._adjust = adjust
        self._follower = Follower()
        self._surveys: dict[str, Survey] = {}
        self._notes: dict[str, tuple[str, ...]] = {}
        self._statuses: dict[str, SurveyStatus] = {}
        self._unread: list[str] = []
        self._sent: dict[str | None, Record] = {}

    def apply(self, come: Come) -> tuple[list[Result], list[Document]]:
        """The events of what has come. A record of which none can be made is named on the pages, and never raises."""
        for error in come.unread:
            self._note_unread("the survey registry", error)
        described = {survey.id for survey in come.surveys if self._shows(survey.id)}
        self._surveys |= {survey.id: survey for survey in come.surveys if survey.id in described}
        results: list[Result] = []
        for place, offset, message in come.messages:
            try:
                found = self._follower.apply(message)
                if found is None or not self._shows(found.key.survey):
                    continue
                made = [*self._events(found)]
            except Exception as error:
                self._note_unread(f"{message.topic}, {message.key.decode('utf-8', 'replace')[:LONGEST_KEY]}", error)
                continue
            survey = found.key.survey
            self._status(survey).note(found.result)
            results += [Result(one["key"], survey, place, offset, segment(to_json(one))) for one in made]
            if isinstance(found.result, MobilityResult) and self._notes.get(survey) != found.result.notes:
                self._notes[survey] = found.result.notes
                described.add(survey)
        return results, [*self._about(described)]

    def statuses(self, lag: int | None, trouble: bool) -> list[Document]:
        """The documents about the surveys, and (without a survey) about the dashboard, that have changed.

        `trouble` is whether nothing can be read now. `lag` is of all surveys together: where one of them hides how many
        devices report, it is not shown; where one has a minimum, it is rounded down to a multiple of the largest.
        """
        if any(survey.presence_epsilon is not None for survey in self._surveys.values()):
            lag = None
        if lag is not None:
            lag = rounded(lag, max((survey.threshold for survey in self._surveys.values()), default=0))
        about: dict[str | None, Record] = {None: {"trouble": trouble, "unread": self._unread}}
        about |= {id: status.record(lag) for id, status in self._statuses.items()}
        changed = {id: record for id, record in about.items() if self._sent.get(id) != record}
        self._sent |= changed
        return [_document(event("status", id, record), overview=True) for id, record in changed.items()]

    def _events(self, found: Followed) -> Iterator[Event]:
        result = found.result
        if isinstance(result, MobilityResult):
            yield from mobility_events(self._adjust(result))
        elif isinstance(result, Live):
            yield live_event(result)
        elif isinstance(result, NowcastResult):
            yield nowcast_event(result)
        elif isinstance(result, ForecastResult) and found.key.survey in self._surveys:
            yield forecast_event(self._surveys[found.key.survey], result)

    def _about(self, surveys: set[str]) -> Iterator[Document]:
        for id in surveys & self._surveys.keys():
            survey = self._surveys[id]
            self._status(id).title = survey.title
            try:
                made = self._describe(survey, self._notes.get(id, ()))
            except Exception as error:
                self._note_unread(f"survey {id}", error)
            else:
                yield _document(made, overview=False)

    def _shows(self, survey: str) -> bool:
        return not self._chosen or survey in self._chosen

    def _status(self, survey: str) -> SurveyStatus:
        return self._statuses.setdefault(survey, SurveyStatus())

    def _note_unread(self, where: str, error: Exception) -> None:
        """Name a record on the pages. Why it cannot be shown is in the log only: an error may quote the record."""
        expected = isinstance(error, HearsayError)
        log.warning("a record cannot be shown", record=where, error=str(error), exc_info=None if expected else error)
        self._unread = [*self._unread, where][-MOST_UNREAD:]


def _document(made: Event, overview: bool) -> Document:
    return Document(made["key"], made["survey"], overview, segment(to_json(made)))
