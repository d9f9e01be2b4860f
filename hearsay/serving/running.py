"""Running a gateway until it is asked to stop, or can write no longer."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterable, Mapping
from math import isfinite
from typing import Any

import structlog

from gateway.door import warm_up
from gateway.http import Limits, Listener
from gateway.service import Gateway, Holder, Log, Metrics, Page, TokenKeys, Watching, Writer, metrics_page
from hearsay.serving.exposure import Exposure
from protocols.scheme import Scheme

TEND_SECONDS = 1.0
WATCHERS = Limits(connections=100, held_bytes=1 << 20)
log = structlog.get_logger(__name__)


async def run(
    exposure: Exposure,
    surveys: Mapping[str, Scheme],
    to: Log,
    keys: TokenKeys | None,
    say: Callable[[str], None],
    connections: int,
    ready: Callable[[], bool] = lambda: True,
    holder: Holder | None = None,
    pages: Mapping[str, Page] | None = None,
    beside: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, then answer what was asked. Raises what ended the writing, if something did.

    At most so many `connections` are open. `beside` runs in the same event loop for as long: further servers of this
    process are started there.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    for scheme in surveys.values():
        warm_up(scheme)
    metrics = Metrics()
    writer = Writer(to, surveys.get, metrics, holder=holder)
    application = Gateway(
        surveys,
        to,
        writer,
        metrics,
        exposure.senders(keys),
        ready=lambda: writer.failed is None and ready(),
        origins=frozenset(exposure.origins),
        shows_metrics=exposure.loopback,
        pages=pages or {},
    )
    names = frozenset(map(str.lower, exposure.names))
    listener = Listener(application, Limits(connections), exposure.tls(), names)
    metrics.watch("waiting_reports", lambda: writer.shown_waiting)
    metrics.watch("held_bytes", lambda: listener.held_bytes)
    metrics.watch("connections", lambda: listener.connections)
    metrics.watch("ready", application.ready)
    writer.start()
    listeners = [listener]
    if exposure.web_port is not None:
        web = Listener(Watching({**application.health, **metrics_page(metrics.registry)}), WATCHERS, names=names)
        at = await web.start(exposure.web_host, exposure.web_port, "--web-port")
        listeners.append(web)
        log.info("health and metrics are served", port=at)
    port = await listener.start(exposure.host, exposure.port)
    say(f"{exposure.address}:{port}")
    waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(wait) for wait in (stop.wait(), writer.ended())]
    if keys is not None:
        waits.append(asyncio.ensure_future(_tend(keys)))
    if beside is not None:
        waits.append(asyncio.ensure_future(beside()))
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    crashed = [wait.exception() for wait in waits if wait.done()]
    for wait in waits:
        wait.cancel()
    for each in listeners:
        await each.stop()
    if writer.failed is not None:
        raise writer.failed
    await writer.finish()
    for error in crashed:
        if error is not None:
            raise error
    if holder is not None:
        holder.close()


async def _tend(keys: TokenKeys) -> None:
    while True:
        await asyncio.sleep(TEND_SECONDS)
        keys.tend()


def linked_figures(schemes: Iterable[Scheme], reports: int = 30) -> list[str]:
    """What to say where senders have credentials: what reports reveal to somebody who can link them, by survey."""
    lines = [
        "Credentials let this process link the reports of a sender as they come; its files do so no longer than a "
        "period is open. Linked reports reveal at most:"
    ]
    for scheme in schemes:
        promise = scheme.guarantees
        stays, changes = promise.for_ever.whole, promise.any(reports).whole
        lines.append(
            f"{scheme.survey.id}: {_figure(promise.per_report.whole)} in one report; "
            f"{_figure(stays)} in all reports while values stay; "
            f"{_figure(changes)} in {reports} reports whatever the values do"
        )
    return lines


def _figure(loss: float | None) -> str:
    return "no bound" if loss is None or not isfinite(loss) else f"epsilon {loss:.3g}"
