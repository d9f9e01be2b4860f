"""Where events come from: one thread follows what is published, and gives a feed the events that it makes of it.

A final is shown by its mobility report, which has all that its histogram has for a page.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from threading import Event, Thread
from typing import Any, Protocol

import structlog
from pydantic_core import to_json

from analytics.mobility import MobilityReport
from pages.about import survey_event
from pages.dashboard.encoding import segment
from pages.dashboard.feed import Document, Feed, Result
from pages.dashboard.overview import SurveyStatus
from pages.events import Event as PageEvent
from pages.events import event, forecast_event, live_event, mobility_events
from protocols.errors import HearsayError
from protocols.survey import Survey
from stream_app.results import HISTOGRAMS, Come, Followed, Follower, ForecastResult, Live, MobilityResult

POLL_SECONDS = 0.5
"""How long the thread waits for something at most, before it looks whether it has to end."""
CHECK_SECONDS = 5.0
"""How often it asks for the lag, and whether the topics are still the same."""
RETRY_SECONDS = 1.0
STOP_SECONDS = 30.0
MOST_UNREAD = 20
"""How many errors about records are shown, the newest ones."""

log = structlog.get_logger(__name__)


class Log(Protocol):
    """What is published, in order: `TopicFollower` or `DirectoryFollower`."""

    @property
    def identity(self) -> str: ...
    @property
    def places(self) -> int: ...
    @property
    def caught_up(self) -> bool: ...
    def present_identity(self) -> str: ...
    def poll(self, seconds: float) -> Come: ...
    def next_offsets(self) -> tuple[int, ...]: ...
    def seek(self, offsets: tuple[int, ...], /) -> None: ...
    def lag(self) -> int | None: ...
    def close(self) -> None: ...


class Describe(Protocol):
    """Makes the event of a survey. `notes` are what its newest report says about how to read it."""

    def __call__(self, survey: Survey, /, *, notes: tuple[str, ...]) -> PageEvent: ...


Adjust = Callable[[MobilityReport], MobilityReport]
"""Adds what is known elsewhere to a report, such as losses."""


class Source:
    """Follows a log from its beginning, for the surveys named or for all. `feed` has the events, in an event loop.

    Whatever goes wrong with the log is shown to viewers and tried again, until `stop`.
    """

    def __init__(
        self,
        open_log: Callable[[], Log],
        surveys: Collection[str] = (),
        describe: Describe = survey_event,
        adjust: Adjust = lambda report: report,
    ) -> None:
        self.feed = Feed()
        self._open = open_log
        self._describe = describe
        self._adjust = adjust
        self._chosen = frozenset(surveys)
        self._stopping = Event()
        self._thread: Thread | None = None

    def start(self) -> None:
        """Start the thread. Call it in the event loop of the feed."""
        loop = asyncio.get_running_loop()
        self._thread = Thread(target=self._run, args=(loop,), name="results", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the streams of the viewers, and the thread as soon as it waits for nothing."""
        self.feed.close()
        self._stopping.set()

    def join(self) -> None:
        """Wait for the thread to end. Not in the event loop."""
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        def call(function: Callable[..., None], *arguments: Any) -> None:
            if not self._stopping.is_set():
                loop.call_soon_threadsafe(function, *arguments)

        reading = _Reading(self._chosen, self._describe, self._adjust, self.feed, call)
        while not self._stopping.is_set():
            try:
                with closing(self._open()) as followed:
                    reading.follow(followed, self._stopping)
            except HearsayError as error:
                reading.trouble(error)
                self._stopping.wait(RETRY_SECONDS)


class _Reading:
    """What the thread knows of the log that it has read so far."""

    def __init__(
        self, chosen: frozenset[str], describe: Describe, adjust: Adjust, feed: Feed, call: Callable[..., None]
    ) -> None:
        self._chosen = chosen
        self._describe = describe
        self._adjust = adjust
        self._feed = feed
        self._call = call
        self._identity: str | None = None
        self._clear()

    def _clear(self) -> None:
        self._offsets: tuple[int, ...] = ()
        self._follower = Follower()
        self._surveys: dict[str, Survey] = {}
        self._notes: dict[str, tuple[str, ...]] = {}
        self._statuses: dict[str, SurveyStatus] = {}
        self._lag: int | None = None
        self._trouble = ""
        self._unread: list[str] = []
        self._sent: dict[str | None, dict[str, Any]] = {}

    def follow(self, followed: Log, stopping: Event) -> None:
        """Read on, until something else is in the log's place."""
        if followed.identity != self._identity:
            self._clear()
            self._identity = followed.identity
            self._call(self._feed.begin, followed.identity, followed.places)
        else:
            followed.seek(self._offsets)
        self._trouble = ""
        checked_at = float("-inf")
        while not stopping.is_set():
            results, documents = self._apply(followed.poll(POLL_SECONDS))
            if time.monotonic() - checked_at > CHECK_SECONDS:
                if followed.present_identity() != followed.identity:
                    return
                self._lag = followed.lag()
                checked_at = time.monotonic()
            offsets, documents = followed.next_offsets(), documents + self._status_documents()
            if results or documents or offsets != self._offsets or not self._feed.caught_up:
                self._offsets = offsets
                self._call(self._feed.publish, results, documents, offsets, followed.caught_up)

    def trouble(self, error: HearsayError) -> None:
        """Show viewers that the log cannot be read now."""
        if self._trouble != error.message:
            log.warning("results cannot be read; trying again", error=error.message)
        self._trouble = error.message
        if self._offsets:
            self._call(self._feed.publish, [], self._status_documents(), self._offsets, False)

    def _apply(self, come: Come) -> tuple[list[Result], list[Document]]:
        for error in come.unread:
            self._note_unread(error)
        described = {survey.id for survey in come.surveys if self._shows(survey.id)}
        self._surveys |= {survey.id: survey for survey in come.surveys if survey.id in described}
        results: list[Result] = []
        for place, offset, message in come.messages:
            try:
                found = self._follower.apply(message)
            except HearsayError as error:
                self._note_unread(error)
                continue
            if found is None or not self._shows(found.key.survey):
                continue
            self._status(found.key.survey).note(found)
            if isinstance(found.result, MobilityResult) and self._notes.get(found.key.survey) != found.result.notes:
                self._notes[found.key.survey] = found.result.notes
                described.add(found.key.survey)
            results += [
                Result(made["key"], found.key.survey, place, offset, segment(to_json(made)))
                for made in self._events(found)
            ]
        return results, [self._described(self._surveys[id]) for id in described if id in self._surveys]

    def _events(self, found: Followed) -> Iterator[PageEvent]:
        result = found.result
        if isinstance(result, MobilityResult):
            yield from mobility_events(self._adjust(result))
        elif isinstance(result, Live):
            yield live_event(result)
        elif isinstance(result, ForecastResult):
            if found.key.survey in self._surveys:
                yield forecast_event(self._surveys[found.key.survey], result)
        elif found.topic is not HISTOGRAMS:
            yield event(found.topic.kind, found.key.survey, result.model_dump(mode="json"), found.key.period)

    def _shows(self, survey: str) -> bool:
        return not self._chosen or survey in self._chosen

    def _status(self, survey: str) -> SurveyStatus:
        return self._statuses.setdefault(survey, SurveyStatus())

    def _note_unread(self, error: HearsayError) -> None:
        log.warning("a record cannot be read", error=error.message)
        self._unread = [*self._unread, error.message][-MOST_UNREAD:]

    def _described(self, survey: Survey) -> Document:
        self._status(survey.id).describe(survey)
        return _document(self._describe(survey, notes=self._notes.get(survey.id, ())), overview=False)

    def _status_documents(self) -> list[Document]:
        """The documents about the surveys, and (without a survey) about the source, that have changed."""
        # The lag is of all surveys together: where one of them hides how many devices report, it is not shown.
        noised = any(status.presence_noised for status in self._statuses.values())
        lag = None if noised else self._lag
        about: dict[str | None, dict[str, Any]] = {None: {"trouble": self._trouble, "unread": self._unread}}
        about |= {id: status.record(lag) for id, status in self._statuses.items()}
        changed = {id: record for id, record in about.items() if self._sent.get(id) != record}
        self._sent |= changed
        return [_document(event("status", id, record), overview=True) for id, record in changed.items()]


def _document(made: PageEvent, overview: bool) -> Document:
    return Document(made["key"], made["survey"], overview, segment(to_json(made)))
