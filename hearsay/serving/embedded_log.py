"""The log of `hearsay serve`: the embedded app, which counts what is written and closes periods by the time of day."""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime

from protocols.errors import DeliveryError, StateError
from protocols.survey import Survey
from protocols.wire import CLOCK, FRAME, Clock, encode_clock, last_due
from stream_app.local import EmbeddedApp


class EmbeddedLog:
    """Frames are synced before `write` returns, results are published by `tend`. A failure must end the process."""

    def __init__(self, app: EmbeddedApp, surveys: Sequence[Survey], now: Callable[[], float] = time.time) -> None:
        self.partitions = app.partitions
        self._app = app
        self._surveys = surveys
        self._now = now
        self._unpublished = True
        self._thread = ThreadPoolExecutor(1, "counting")
        self._closed = {survey.id: app.closed_through(survey.id) for survey in surveys}
        self._close_due()
        app.flush()

    async def write(self, frames: list[tuple[int, bytes]]) -> None:
        await self._in_thread(self._write, frames)

    def _write(self, frames: list[tuple[int, bytes]]) -> None:
        with _fatal():
            self._close_due()
            for partition, value in frames:
                self._app.send(partition, FRAME, value)
            self._app.sync()
            self._unpublished = True

    async def tend(self) -> None:
        """Close the periods that are due, and publish what changed."""
        await self._in_thread(self._publish)

    def _publish(self) -> None:
        with _fatal():
            self._close_due()
            if self._unpublished:
                self._unpublished = False
                self._app.flush()

    def closed_through(self, survey: str) -> int:
        return self._closed.get(survey, -1)

    async def close(self) -> None:
        await self._in_thread(self._publish)
        self._thread.shutdown()
        self._app.close()

    async def _in_thread(self, do: Callable[..., None], *arguments: object) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, do, *arguments)

    def _close_due(self) -> None:
        """Close every period whose end plus grace has passed. Reports that are written after this are late for it."""
        now = datetime.fromtimestamp(self._now(), UTC)
        for survey in self._surveys:
            due = last_due(survey, now)
            if due > self._closed[survey.id]:
                record = encode_clock(Clock(survey.id, due), self._app.clock_key)
                for partition in range(self.partitions):
                    self._app.send(partition, CLOCK, record)
                self._closed[survey.id] = due
                self._unpublished = True


@contextmanager
def _fatal() -> Iterator[None]:
    """What is counted in memory is ahead of what could be written: only a new start makes both agree."""
    try:
        yield
    except (DeliveryError, OSError) as error:
        why = error.message if isinstance(error, DeliveryError) else error.strerror
        short = isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)
        needed = "there are enough file descriptors (ulimit -n)" if short else "the disk has space"
        raise StateError(
            f"reports cannot be written: {why}", f"make sure {needed}, then start again: nothing is lost"
        ) from error
