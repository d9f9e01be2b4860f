"""The log of `hearsay serve`: the embedded app, which counts what is written and closes periods by the time of day."""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime

import structlog

from hearsay.serving.reported_times import ReportedTimes
from protocols.errors import DeliveryError, StateError
from protocols.survey import Survey
from protocols.wire import CLOCK, FRAME, Clock, encode_clock, last_due, named
from stream_app.local import EmbeddedApp

log = structlog.get_logger(__name__)


class EmbeddedLog:
    """Frames are synced before `write` returns, results are published by `tend`. A failure must end the process.

    Periods are closed by the time of day, `now`, if that agrees with the reports (`reported_times.py`).
    """

    def __init__(
        self,
        app: EmbeddedApp,
        surveys: Sequence[Survey],
        now: Callable[[], float] = time.time,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self.partitions = app.partitions
        self.times = ReportedTimes(self.closed_through, elapsed)
        self._app = app
        self._surveys = {survey.id: survey for survey in surveys}
        self._now = now
        self._unpublished = True
        self._thread = ThreadPoolExecutor(1, "counting")
        self._closed = {survey.id: app.closed_through(survey.id) for survey in surveys}
        for survey in surveys:
            self.times.note(survey, app.begun_through(survey.id))
        self._close_due()
        app.flush()

    async def write(self, frames: list[tuple[int, bytes]]) -> None:
        await self._in_thread(self._write, frames)

    def _write(self, frames: list[tuple[int, bytes]]) -> None:
        with _fatal():
            for _, value in frames:
                if (of := named(FRAME, value)) is not None and of.survey in self._surveys:
                    self.times.note(self._surveys[of.survey], of.period)
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
        now = self._now()
        for survey in self._surveys.values():
            due = last_due(survey, datetime.fromtimestamp(self.times.moment(survey, now), UTC))
            if due > self._closed[survey.id]:
                if due > self._closed[survey.id] + 1:
                    first = self._closed[survey.id] + 1
                    log.warning("several periods are closed at once", survey=survey.id, first=first, last=due)
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
