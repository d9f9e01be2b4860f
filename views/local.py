"""Views of what is collected in this process: made after each publication, and kept in the data directory."""

from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
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
END_SECONDS = 20.0
"""How long a process that ends waits for results. Whoever stops it often kills it after 30 seconds."""

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

    The estimate of a large grid takes a minute, and nothing can interrupt it. A process that ends does not wait so
    long: what is not made is made at the next start, as after a crash.
    """

    def __init__(self, sinks: Sequence[str] = ()) -> None:
        self._views = LocalViews(sinks)
        self._store: LocalStore | None = None
        self._thread: Thread | None = None
        self._news: SimpleQueue[bool] = SimpleQueue()
        self._failed: Exception | None = None

    def __call__(self, store: LocalStore) -> None:
        """Let what is new be made."""
        if self._thread is None:
            self._store = store.another()
            self._thread = Thread(target=self._keep_making, args=(self._store,), name="views", daemon=True)
            self._thread.start()
        self._news.put(True)

    def _keep_making(self, store: LocalStore) -> None:
        try:
            while self._news.get():
                self._views(store)
        except Exception as error:
            self._failed = error

    def check(self) -> None:
        """Raise what has gone wrong, if something has."""
        if self._failed is not None:
            raise self._failed

    def close(self) -> None:
        """Wait until everything is made, for a while, and close the sinks."""
        if self._thread is None or self._store is None:
            return
        self._news.put(False)
        self._thread.join(END_SECONDS)
        if self._thread.is_alive():
            log.warning("some results are not made yet: the next start makes them", waited_seconds=END_SECONDS)
            return
        self._views.close()
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
