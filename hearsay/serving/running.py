"""A gateway: on which address it listens and who may send there, until it is asked to stop or can write no longer.

Nothing is exposed by accident.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import structlog

from gateway.door import Credential, Rate, read_credentials
from gateway.http import Limits, Listener, tls_context
from gateway.service import Gateway, Holder, Log, Metrics, Page, Senders, TokenKeys, Watching, Writer, metrics_page
from protocols.errors import SettingsError, SurveyError
from protocols.scheme import Scheme, confined_to
from servers.ports import is_loopback
from servers.private_files import read_limited

TOKENS_BYTES = 64 << 20
TEND_SECONDS = 1.0
WATCHERS = Limits(connections=100, held_bytes=1 << 20)
log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Exposure:
    """Where to listen, and for whom."""

    host: str = "127.0.0.1"
    port: int = 8080
    tokens: Path | None = None
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    client_authority: Path | None = None
    edges: tuple[str, ...] = ()
    behind_proxy: bool = False
    origins: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """What clients may call a loopback address, besides the names of this machine: the names of a proxy."""
    devices_per_minute: float = 30
    edges_per_minute: float = 3000
    """Requests, as many of which may come at once."""
    web_host: str = "127.0.0.1"
    web_port: int | None = None
    """Where `/live`, `/ready` and `/metrics` are served besides; None: only where reports are taken."""

    @property
    def loopback(self) -> bool:
        return is_loopback(self.host)

    @property
    def only_here(self) -> bool:
        """Whether nobody asks but this machine: there is no proxy."""
        return self.loopback and not self.names and not self.behind_proxy

    @property
    def credentials(self) -> bool:
        return self.tokens is not None or self.client_authority is not None

    def check(self) -> None:
        """Refuse what would let everybody in, or let credentials travel in the clear."""
        if not self.loopback and not self.credentials:
            raise SettingsError(
                f"without credentials a gateway listens on the loopback address only, not on {self.host}",
                "make bearer tokens with `hearsay gateway token new` and give --tokens, or give --client-ca",
            )
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise SettingsError("TLS needs both a certificate and its key", "give --tls-certificate and --tls-key")
        if self.client_authority is not None and self.tls_certificate is None:
            raise SettingsError(
                "client certificates are verified by the gateway itself, which needs TLS",
                "give --tls-certificate and --tls-key; behind a proxy that ends TLS, use bearer tokens",
            )
        if not all(map(isfinite, (self.devices_per_minute, self.edges_per_minute))):
            raise SettingsError(
                "so many requests a minute cannot be counted", "correct --devices-per-minute and --edges-per-minute"
            )
        if not self.loopback and self.tls_certificate is None and not self.behind_proxy:
            raise SettingsError(
                f"bearer tokens would travel in the clear to {self.host}",
                "give --tls-certificate and --tls-key, or --behind-proxy if a proxy in front ends TLS",
            )

    def senders(self, keys: TokenKeys | None) -> Senders:
        return Senders(
            keys or (lambda header: None),
            None if self.tokens is None else TokenFile(self.tokens),
            self.client_authority is not None,
            frozenset(self.edges),
            _per_minute(self.devices_per_minute),
            _per_minute(self.edges_per_minute),
        )


class TokenFile:
    """The credentials in a file, which may be changed at any time: it is read again when it was."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_at = self._changed_at()
        self._credentials = self._read()

    def __call__(self) -> dict[str, Credential]:
        changed_at = self._changed_at()
        if changed_at != self._read_at:
            self._read_at = changed_at
            try:
                self._credentials = self._read()
            except SettingsError as error:
                log.error("the tokens cannot be read; those known hold", error=error.message)
        return self._credentials

    def _changed_at(self) -> tuple[int, int]:
        try:
            status = self._path.stat()
        except OSError:
            return 0, 0
        return status.st_mtime_ns, status.st_size

    def _read(self) -> dict[str, Credential]:
        try:
            return read_credentials(read_limited(self._path, TOKENS_BYTES).decode(), str(self._path))
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise SettingsError(
                f"the tokens in {self._path} cannot be read: {why}", "make one with `hearsay gateway token new`"
            ) from None


def _per_minute(requests: float) -> Rate:
    return Rate(requests / 60, max(1, int(requests)))


async def run(
    exposure: Exposure,
    surveys: Mapping[str, Scheme],
    to: Log,
    keys: TokenKeys | None,
    say: Callable[[str], None],
    started: Callable[[str], None],
    beside: Callable[[Metrics], Awaitable[None]],
    connections: int,
    *,
    ready: Callable[[], bool] = lambda: True,
    holder: Holder | None = None,
    pages: Mapping[str, Page] | None = None,
    refused: Mapping[str, str] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, then answer what was asked. Raises what ended the writing, if something did.

    At most so many `connections` are open. `beside` runs in the same event loop for as long: further servers of this
    process are started there, and have their numbers in the same metrics. `refused` are the surveys that are not
    served, with the reason.
    """
    if exposure.credentials:
        for line in linked_figures(surveys.values()):
            say(line)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    writer = Writer(to, surveys.get, holder=holder)
    metrics = writer.metrics
    application = Gateway(
        surveys,
        writer,
        exposure.senders(keys),
        ready=lambda: writer.failed is None and ready(),
        origins=frozenset(exposure.origins),
        shows_metrics=exposure.only_here,
        pages=pages or {},
        refused_surveys={} if refused is None else refused,  # a registry adds to it
    )
    names = frozenset(map(str.lower, exposure.names))
    certificate, key = exposure.tls_certificate, exposure.tls_key
    tls = None if certificate is None or key is None else tls_context(certificate, key, exposure.client_authority)
    listener = Listener(application, Limits(connections), tls, names)
    metrics.watch("waiting_reports", lambda: writer.shown_waiting)
    metrics.watch("held_bytes", lambda: listener.held_bytes)
    metrics.watch("connections", lambda: listener.connections)
    metrics.watch("ready", application.ready)
    listeners = [listener]
    if exposure.web_port is not None:
        web = Listener(Watching({**application.health, **metrics_page(metrics.registry)}), WATCHERS, names=names)
        at = await web.start(exposure.web_host, exposure.web_port, "--web-port")
        listeners.append(web)
        log.info("health and metrics are served", port=at)
    port = await listener.start(exposure.host, exposure.port)
    host = f"[{exposure.host}]" if ":" in exposure.host else exposure.host
    started(f"{'http' if tls is None else 'https'}://{host}:{port}")
    running = [stop.wait(), writer.ended.wait(), beside(metrics), *([] if keys is None else [_tend(keys)])]
    waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(one) for one in running]
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
        try:
            with confined_to(scheme.survey.id):
                lines.append(_linked_figures(scheme, reports))
        except SurveyError as error:
            log.error("what linked reports reveal is not known", survey=scheme.survey.id, error=error.message)
    return lines


def _linked_figures(scheme: Scheme, reports: int) -> str:
    promise = scheme.guarantees
    stays = promise.for_ever.whole
    changes = promise.any(reports).whole
    return (
        f"{scheme.survey.id}: {_figure(promise.per_report.whole)} in one report; "
        f"{_figure(stays)} in all reports while values stay; "
        f"{_figure(changes)} in {reports} reports whatever the values do"
    )


def _figure(loss: float | None) -> str:
    return "no bound" if loss is None or not isfinite(loss) else f"epsilon {loss:.3g}"
