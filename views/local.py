"""Views of what is collected in this process: made after each publication, and kept in the data directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from protocols.survey import Survey
from stream_app.finals import FinalKey
from stream_app.local import EmbeddedApp, LocalStore
from stream_app.log.come import Come
from stream_app.log.flushes import FINALS, OPEN, Output
from views.runner import Runner
from views.sinks.sink import Sink
from views.sinks.topics import StoreTopics


class LocalViews:
    """Makes the views of what a store has got since the last call: its messages, and what other sinks have of them."""

    def __init__(self, sinks: Sequence[Sink] = ()) -> None:
        self._sinks = sinks
        self._runner: Runner | None = None
        self._last = 0

    def __call__(self, store: LocalStore) -> None:
        if self._runner is None:
            self._runner = Runner([StoreTopics(store), *self._sinks])
            messages = self._first(self._runner, store)
        else:
            messages = [message for _, message in store.after(self._last, (FINALS, OPEN))]
        self._last = store.last_id
        if messages:
            self._runner.apply(Come(store.surveys(), [(0, 0, message) for message in messages]))
        for error in self._runner.failed.values():  # here somebody is waiting for the result
            raise error

    def _first(self, runner: Runner, store: LocalStore) -> list[Output]:
        """What is to be read at a start: not all finals, but those that something may be made of."""
        since = {survey.id: runner.first_needed(survey) for survey in store.surveys()}
        finals = sorted(map(FinalKey.decode, store.keys(FINALS)))
        needed = [key.encode() for key in finals if (key.period or 0) >= since.get(key.survey, 0)]
        return [*store.messages_with(FINALS, needed), *store.messages(OPEN)]


def collector(
    directory: Path,
    surveys: Sequence[Survey],
    clock_key: bytes,
    presence_key: bytes,
    *,
    partitions: int = 1,
    pace_seconds: float = 0.0,
    sinks: Sequence[Sink] = (),
) -> EmbeddedApp:
    """A collector in this process that makes and keeps results."""
    return EmbeddedApp(
        directory,
        surveys,
        clock_key,
        presence_key,
        partitions=partitions,
        pace_seconds=pace_seconds,
        published=LocalViews(sinks),
    )
