"""Where events come from: one thread follows what is published, and gives a feed the events that are made of it."""

import asyncio
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future
from contextlib import closing
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import structlog

from pages.about import survey_event
from pages.dashboard.feed import Document, Feed, Result
from pages.dashboard.making import Adjust, Describe, Making
from protocols.errors import HearsayError

if TYPE_CHECKING:
    from stream_app.kafka import TopicFollower
    from stream_app.local import DirectoryFollower

    Log = TopicFollower | DirectoryFollower

POLL_SECONDS = 0.5
"""How long the thread waits for something at most, before it looks whether it has to end."""
CHECK_SECONDS = 5.0
"""How often it asks for the lag, and whether the topics are still the same."""
RETRY_SECONDS = 1.0
STOP_SECONDS = 30.0

log = structlog.get_logger(__name__)


class Source:
    """Follows a log from its beginning, for the surveys named or for all. `feed` has the events, in an event loop.

    Whatever goes wrong with the log is shown to viewers and tried again, until `stop`.
    """

    def __init__(
        self,
        open_log: "Callable[[], Log]",
        surveys: Collection[str] = (),
        describe: Describe = survey_event,
        adjust: Adjust = lambda report: report,
    ) -> None:
        self.feed = Feed()
        self._open = open_log
        self._make: Callable[[], Making] = lambda: Making(frozenset(surveys), describe, adjust)
        self._making = self._make()
        self._identity: str | None = None
        self._offsets: list[int] = []  # the next ones
        self._lag: int | None = None
        self._trouble = ""
        self._stopping = Event()
        self._thread: Thread | None = None

    def start(self) -> None:
        """Start the thread, unless it was started or stopped. Call it in the event loop of the feed."""
        if self._thread is not None or self._stopping.is_set():
            return
        self._loop = asyncio.get_running_loop()
        self._thread = Thread(target=self._run, name="results", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the streams of the viewers, and the thread as soon as it waits for nothing."""
        self.feed.close()
        self._stopping.set()

    def join(self) -> None:
        """Wait for the thread to end. Not in the event loop."""
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                with closing(self._open()) as followed:
                    self._follow(followed)
            except HearsayError as error:
                self._note_trouble(error.message)
            except Exception as error:  # a thread that ended would leave viewers with old results
                log.exception("results cannot be read")
                self._note_trouble(f"unexpected error: {type(error).__name__}")
            self._stopping.wait(RETRY_SECONDS)

    def _follow(self, followed: "Log") -> None:
        """Read on, until something else is in the log's place."""
        if followed.identity == self._identity:
            followed.seek(self._offsets)
        else:
            self._making = self._make()
            self._identity, self._offsets = followed.identity, [0] * followed.places
            self._call(self.feed.begin, followed.identity, followed.places)
        self._trouble = ""
        check, check_at = _asked(followed), time.monotonic()
        while not self._stopping.is_set():
            come = followed.poll(POLL_SECONDS)
            # Nothing fails between reading and publishing: what was read once is not read again.
            results, documents = self._making.apply(come)
            for place, offset, _ in come.messages:
                self._offsets[place] = offset + 1
            self._publish(results, documents, followed.caught_up)
            if check.done() and time.monotonic() >= check_at:
                identity, self._lag = check.result()
                if identity != followed.identity:
                    return
                check, check_at = _asked(followed), time.monotonic() + CHECK_SECONDS

    def _note_trouble(self, message: str) -> None:
        """Show viewers that the log cannot be read now."""
        if self._trouble != message:
            log.warning("results cannot be read; trying again", error=message)
        self._trouble = message
        if self._offsets:
            self._publish([], [], False)

    def _publish(self, results: list[Result], documents: list[Document], caught_up: bool) -> None:
        documents = documents + self._making.statuses(self._lag, bool(self._trouble))
        if results or documents or not self.feed.caught_up:
            self._call(self.feed.publish, results, documents, tuple(self._offsets), caught_up)

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        if not self._stopping.is_set():
            self._loop.call_soon_threadsafe(function, *arguments)


def _asked(followed: "Log") -> Future[tuple[str, int | None]]:
    """Ask about a log: its present identity, and the lag. Reading does not wait for the answer, which may take long."""
    answer: Future[tuple[str, int | None]] = Future()

    def ask() -> None:
        try:
            answer.set_result((followed.present_identity(), followed.lag()))
        except Exception as error:
            answer.set_exception(error)

    Thread(target=ask, name="asking", daemon=True).start()
    return answer
