"""Views of what is collected in this process: made after each publication, and kept in the data directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from protocols.survey import Survey
from stream_app.local import EmbeddedApp, LocalStore
from stream_app.log.come import Come
from stream_app.log.flushes import FINALS, OPEN
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
        messages = store.after(self._last, (FINALS, OPEN))
        if messages:
            self._last = messages[-1][0]
            self._runner.apply(Come(store.surveys(), [(0, id, message) for id, message in messages]))


def collecting(
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
