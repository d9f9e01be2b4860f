"""The pages of a worker over HTTP, from a thread of their own.

A worker's event loop may be busy with one batch for longer than a probe waits. A thread answers in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from threading import Thread

import structlog
import uvloop

from gateway.http import Listener, Response, most_connections
from gateway.service import Watching
from hearsay.serving.running import WATCHERS
from stream_app.faust_app import Health, pages

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
    health = Health()
    up: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]] = Future()

    async def run() -> None:
        listener = Listener(Watching({path: partial(_made, page) for path, page in pages(health).items()}), WATCHERS)
        ending = asyncio.Event()
        try:
            at = await listener.start(host, port, "--web-port: each worker on a machine needs its own")
        except BaseException as error:
            up.set_exception(error)
            return
        up.set_result((asyncio.get_running_loop(), ending, at))
        await ending.wait()
        await listener.stop()

    thread = Thread(target=lambda: uvloop.run(run()), name="pages", daemon=True)
    thread.start()
    loop, ending, at = up.result(START_SECONDS)
    log.info("serving /live, /ready and /metrics", host=host, port=at)
    try:
        yield health
    finally:
        loop.call_soon_threadsafe(ending.set)
        thread.join(STOP_SECONDS)


def _made(page: Callable[[], tuple[int, str, bytes]]) -> Response:
    try:
        status, content_type, body = page()
    except Exception:  # the state changed while it was read: whoever asks again gets an answer
        log.warning("a page could not be made", exc_info=True)
        return AGAIN
    return Response(status, body, content_type)
