"""Views of what is collected in this process: made after each publication, and kept in the data directory."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from time import monotonic
from typing import Any

import structlog

from protocols.errors import DeliveryError
from protocols.survey import Survey
from stream_app.finals import FinalKey
from stream_app.local import EmbeddedApp, LocalStore
from stream_app.log import FINALS, OPEN, Come, Output
from views.refusing import Refusals
from views.runner import Runner
from views.sinks.sink import open_sink
from views.sinks.topics import StoreTopics

RETRY_SECONDS = 60.0

log = structlog.get_logger(__name__)


class LocalViews:
    """Makes the views of what a store has got since the last call: its messages, and the contents of other sinks.

    `sinks` are their addresses. What is collected never waits for them: if one fails, results are made without them for
    a while. Then all are asked again how far they are.
    """

    def __init__(self, sinks: Sequence[str] = ()) -> None:
        self._sinks = sinks
        self._opened = ExitStack()
        self._runner: Runner | None = None
        self._last = 0
        self._alone_until: float | None = None  # without other sinks
        self._refusals = Refusals()

    def __call__(self, store: LocalStore) -> None:
        if self._alone_until is not None and monotonic() >= self._alone_until:
            self._alone_until = None
            self.close()
        try:
            self._make(store)
        except DeliveryError as error:
            log.warning("results are kept, but not in all sinks", error=error.message, advice=error.hint)
            self._alone_until = monotonic() + RETRY_SECONDS
            self.close()
            self._make(store)

    def _make(self, store: LocalStore) -> None:
        with store.snapshot():  # what comes meanwhile has a later id
            messages = self._news(store)
            self._last = store.last_id
        assert self._runner is not None
        if messages:
            self._runner.apply(Come(store.surveys(), [(0, 0, message) for message in messages]))
        for error in self._runner.failed.values():  # here somebody is waiting for the result
            raise error

    def _news(self, store: LocalStore) -> list[Output]:
        """What has come since the last call; at the first one, what is to be read at a start."""
        if self._runner is None:
            others = self._sinks if self._alone_until is None else ()
            opened = [self._opened.enter_context(closing(open_sink(address))) for address in others]
            self._runner = Runner([StoreTopics(store), *opened], refusals=self._refusals)
            return self._first(self._runner, store)
        return [message for _, message in store.after(self._last, (FINALS, OPEN))]

    def _first(self, runner: Runner, store: LocalStore) -> list[Output]:
        """What is to be read at a start: not all finals, but those that something may be made of."""
        finals = sorted(map(FinalKey.decode, store.keys(FINALS)))
        periods: dict[str, list[int]] = {survey.id: [] for survey in store.surveys()}
        for key in finals:
            periods.setdefault(key.survey, []).append(key.period or 0)
        since = {survey.id: runner.first_needed(survey, periods[survey.id]) for survey in store.surveys()}
        needed = [key.encode() for key in finals if (key.period or 0) >= since.get(key.survey, 0)]
        return [*store.messages_with(FINALS, needed), *store.messages(OPEN)]

    def close(self) -> None:
        """Close other sinks. The next call begins anew."""
        self._runner = None
        self._opened.close()


class ViewsBeside:
    """Makes the views in a thread of its own, over a connection of its own: reports are confirmed meanwhile.

    The estimate of a large grid takes a minute. While one is made, what is published waits for the next one.
    """

    def __init__(self, sinks: Sequence[str] = ()) -> None:
        self._views = LocalViews(sinks)
        self._thread = ThreadPoolExecutor(1, "views")
        self._store: LocalStore | None = None
        self._last: Future[None] | None = None
        self._failed: BaseException | None = None

    def __call__(self, store: LocalStore) -> None:
        """Let what is new be made."""
        if self._store is None:
            self._store = store.another()
        if self._last is not None and not self._last.running() and not self._last.done():
            return  # it has not begun: it will find this, too
        self._last = self._thread.submit(self._views, self._store)
        self._last.add_done_callback(self._note_end)

    def _note_end(self, made: Future[None]) -> None:
        self._failed = self._failed or made.exception()

    def check(self) -> None:
        """Raise what has gone wrong, if something has."""
        if self._failed is not None:
            raise self._failed

    def close(self) -> None:
        """Wait until everything is made, and close the sinks."""
        self._thread.shutdown()
        self._views.close()
        if self._store is not None:
            self._store.close()


def collector(
    directory: Path,
    surveys: Sequence[Survey],
    clock_key: bytes,
    presence_key: bytes,
    *,
    sinks: Sequence[str] = (),
    **options: Any,
) -> EmbeddedApp:
    """A collector in this process that makes and keeps results, also in other sinks. `options` are those of the app."""
    views = LocalViews(sinks)
    return EmbeddedApp(directory, surveys, clock_key, presence_key, published=views, closed=views.close, **options)
