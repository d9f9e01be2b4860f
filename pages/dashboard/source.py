"""Where events come from: one thread follows what is published, and gives a feed the events that it makes of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from contextlib import closing
from threading import Event, Thread
from typing import Any, Protocol

import structlog
from pydantic_core import to_json

from pages.dashboard.encoding import segment
from pages.dashboard.feed import Document, Feed, Result
from pages.dashboard.overview import SurveyStatus
from protocols.errors import HearsayError
from protocols.survey import Survey
from stream_app.results import Come, Followed, Follower

POLL_SECONDS = 0.5
"""How long the thread waits for something at most, before it looks whether it has to end."""
CHECK_SECONDS = 5.0
"""How often it asks for the lag, and whether the topics are still the same."""
RETRY_SECONDS = 1.0
STOP_SECONDS = 30.0
OLDEST_SHOWN = 20
"""How many problems are shown."""

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


class Source:
    """Follows a log from its beginning, for the surveys named or for all. `feed` has the events, in an event loop.

    Whatever goes wrong with the log is shown to viewers and tried again, until `stop`.
    """

    def __init__(self, open_log: Callable[[], Log], surveys: Collection[str] = ()) -> None:
        self.feed = Feed()
        self._open = open_log
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

        reading = _Reading(self._chosen, self.feed, call)
        while not self._stopping.is_set():
            try:
                with closing(self._open()) as followed:
                    reading.follow(followed, self._stopping)
            except HearsayError as error:
                reading.trouble(error)
                self._stopping.wait(RETRY_SECONDS)


class _Reading:
    """What the thread knows of the log that it has read so far."""

    def __init__(self, chosen: frozenset[str], feed: Feed, call: Callable[..., None]) -> None:
        self._chosen = chosen
        self._feed = feed
        self._call = call
        self._identity: str | None = None
        self._clear()

    def _clear(self) -> None:
        self._offsets: tuple[int, ...] = ()
        self._follower = Follower()
        self._surveys: dict[str, SurveyStatus] = {}
        self._lag: int | None = None
        self._trouble = ""
        self._unread: list[str] = []
        self._sent: dict[str, dict[str, Any]] = {}

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
            come = followed.poll(POLL_SECONDS)
            results, documents = self._apply(come)
            if time.monotonic() - checked_at > CHECK_SECONDS:
                if followed.present_identity() != followed.identity:
                    return
                self._lag = followed.lag()
                checked_at = time.monotonic()
            self._offsets = followed.next_offsets()
            documents += self._statuses()
            self._call(self._feed.publish, results, documents, self._offsets, followed.caught_up)

    def trouble(self, error: HearsayError) -> None:
        """Show viewers that the log cannot be read now."""
        if self._trouble != error.message:
            log.warning("results cannot be read; trying again", error=error.message)
        self._trouble = error.message
        self._call(self._feed.publish, [], self._statuses(), self._offsets, False)

    def _apply(self, come: Come) -> tuple[list[Result], list[Document]]:
        for error in come.unread:
            self._note_unread(error)
        documents = [self._survey_document(survey) for survey in come.surveys if self._shows(survey.id)]
        results = []
        for place, offset, message in come.messages:
            try:
                followed = self._follower.apply(message)
            except HearsayError as error:
                self._note_unread(error)
                continue
            if followed is not None and self._shows(followed.key.survey):
                self._status(followed.key.survey).note(followed)
                results.append(_result(place, offset, followed))
        return results, documents

    def _shows(self, survey: str) -> bool:
        return not self._chosen or survey in self._chosen

    def _status(self, survey: str) -> SurveyStatus:
        return self._surveys.setdefault(survey, SurveyStatus(survey))

    def _note_unread(self, error: HearsayError) -> None:
        log.warning("a record cannot be read", error=error.message)
        self._unread = [*self._unread, error.message][-OLDEST_SHOWN:]

    def _survey_document(self, survey: Survey) -> Document:
        self._status(survey.id).describe(survey)
        record = survey.model_dump(mode="json")
        return _document("survey", survey.id, record, overview=False)

    def _statuses(self) -> list[Document]:
        """The documents about the surveys, and about the source, that have changed."""
        noised = any(status.presence_noised for status in self._surveys.values())
        lag = None if noised else self._lag
        records = {id: status.record(lag) for id, status in self._surveys.items()}
        about: dict[str | None, dict[str, Any]] = {None: {"trouble": self._trouble, "unread": self._unread}, **records}
        changed = {id: record for id, record in about.items() if self._sent.get(id or "") != record}
        self._sent |= {id or "": record for id, record in changed.items()}
        return [_document("status", id, record, overview=True) for id, record in changed.items()]


def _result(place: int, offset: int, followed: Followed) -> Result:
    survey, period = followed.key
    kind = followed.topic.kind
    key = f"{kind}/{survey}" if period is None else f"{kind}/{survey}/{period}"
    event = {"kind": kind, "survey": survey, "key": key, "record": followed.result}
    return Result(key, survey, place, offset, segment(to_json(event)))


def _document(kind: str, survey: str | None, record: dict[str, Any], overview: bool) -> Document:
    key = f"{kind}/{survey or ''}"
    event = {"kind": kind, "survey": survey, "key": key, "record": record}
    return Document(key, survey, overview, segment(to_json(event)))
