"""What runs beside a worker: its pages over HTTP, and its views.

A worker's event loop may be busy with one batch for longer than a probe waits: a thread answers in between. Views are
made in threads of their own, so that counting and merging never wait for them.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from threading import Thread

import numpy as np
import structlog
import uvloop

from gateway.http import Listener, Response, most_connections
from gateway.service import Page, Watching, health_pages, metrics_page
from hearsay.serving.running import WATCHERS
from stream_app.faust_app import REGISTRY, Health, note_forecasts, note_refused_result, note_verdict, owner_of
from views.forecasts import ForecastResult
from views.refusing import Refused
from views.results import Histogram
from views.sinks import Made

START_SECONDS = 60.0
STOP_SECONDS = 5.0
AGAIN = Response(500, b"ask again\n", "text/plain")
log = structlog.get_logger(__name__)


@contextmanager
def serve_pages(host: str, port: int) -> Iterator[Health]:
    """Serve the pages for the time of the block, which reports its health. Raises ServerError if the port is taken.

    Port 0 is any free port. The log says which.
    """
    most_connections()  # a worker needs descriptors for its partitions, too
    health, loop = Health(), uvloop.new_event_loop()
    listener = Listener(Watching(worker_pages(health)), WATCHERS)
    thread = Thread(target=loop.run_forever, name="pages", daemon=True)
    thread.start()
    try:
        starting = listener.start(host, port, "--web-port: each worker on a machine needs its own")
        at = asyncio.run_coroutine_threadsafe(starting, loop).result(START_SECONDS)
        log.info("serving /live, /ready and /metrics", host=host, port=at)
        yield health
    finally:
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(listener.stop(), loop).result(STOP_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(STOP_SECONDS)
        if not thread.is_alive():
            loop.close()


def worker_pages(health: Health) -> dict[str, Page]:
    """Every page: `/live`, `/ready` (only once recovery is done) and `/metrics`."""
    of_health = health_pages(lambda: health.live, lambda: health.ready(), lambda: health.refused)
    made = {**of_health, **metrics_page(REGISTRY)}
    return {path: partial(_made, page) for path, page in made.items()}


def _made(page: Page) -> Response:
    try:
        return page()
    except Exception:  # the event loop changed the state meanwhile: whoever asks again gets an answer
        log.warning("a page could not be made", exc_info=True)
        return AGAIN


@dataclass(frozen=True)
class Merged:
    """The surveys that a worker merges: it makes their views."""

    partitions: int
    owned: frozenset[int]

    def __call__(self, survey: str) -> bool:
        return owner_of(survey, self.partitions) in self.owned


def note_refused(refused: Refused) -> None:
    """Count a refused result. The log has said which one it is."""
    note_refused_result(refused.key.survey)


def note(made: Made) -> None:
    """Say in logs and metrics what is unusual about a result."""
    result = made.result
    if isinstance(result, Histogram) and result.integrity is not None:
        note_verdict(result.survey, result.integrity.alarms)
        for attribute, check in result.integrity.alarms:
            about = {"survey": result.survey, "period": result.period, "attribute": attribute, "check": check}
            log.warning("reports do not fit honest devices", **about)
    elif isinstance(result, ForecastResult):
        numbers = sum(int(np.isfinite(table.stretch).sum()) for table in result.tables if table.stretch is not None)
        note_forecasts(result.survey, numbers, sum(len(table.unexpected) for table in result.tables))
