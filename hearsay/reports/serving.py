"""The dashboard of what was published: where its results are, and serving it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from analytics.mobility import MobilityReport
from gateway.http import Limits, Listener
from hearsay.data_directory import COLLECTOR, known_directory
from hearsay.reports.files import chosen, open_results, with_noted_losses
from hearsay.reports.page import describe
from hearsay.reports.table_files import download
from pages.dashboard import Dashboard, Source, Wanted
from protocols.errors import ServerError
from servers.settings import load
from stream_app.local import DirectoryFollower

if TYPE_CHECKING:
    from stream_app.kafka import TopicFollower

END_SECONDS = 5.0
"""How long open requests may take when the dashboard ends."""
REQUEST_SECONDS = 20.0
"""How long a request may take to arrive, and for how long a viewer may take nothing before it is disconnected.

When it connects again, it is given what it lacks.
"""
FORMS_BYTES = 1 << 20
"""Forms with tokens that are being read, all together."""


class Published:
    """Results on a cluster, or in a data directory; and the directory in which losses are noted, if there is one.

    Where neither is named, the directory is that of the only survey, or the only one that there is.
    `areas` is a file with the shapes of areas, or a directory with such files.
    """

    def __init__(
        self, surveys: Collection[str], data: Path | None, kafka: str | None, areas: Path | None = None
    ) -> None:
        self._surveys = surveys
        only = next(iter(surveys)) if len(surveys) == 1 else None
        self._root = data if data is not None or kafka is not None else known_directory(only)
        self._kafka = kafka
        self.describe = partial(describe, data=self._root, areas=areas)

    def check(self) -> None:
        """Raise an error if the results cannot be read, or a survey is not among them."""
        with open_results(None, self._root, self._kafka) as (results, _):
            results.store.surveys()
            for survey in self._surveys:
                chosen(results, survey)

    def follow(self) -> TopicFollower | DirectoryFollower:
        """Read them from the beginning."""
        if self._kafka is None:
            assert self._root is not None
            return DirectoryFollower(self._root / COLLECTOR)
        from stream_app.kafka import TopicFollower, Topics  # `hearsay serve` does without Kafka

        settings = load().at(self._kafka).kafka
        return TopicFollower(settings, Topics(settings.prefix))

    def adjust(self, report: MobilityReport) -> MobilityReport:
        """A report with the losses that are noted."""
        return report if self._root is None else with_noted_losses(report, self._root)

    def download(self, wanted: Wanted) -> bytes:
        """A table as a file."""
        with open_results(None, self._root, self._kafka) as (results, root):
            return download(results, wanted, root)

    def dashboard(self, token: str | None = None) -> Dashboard:
        """The dashboard of the surveys (none named: of all), for viewers with the token, if there is one."""
        source = Source(self.follow, self._surveys, self.describe, self.adjust)
        return Dashboard(source, download=self.download, token=token)


@asynccontextmanager
async def listening(
    dashboard: Dashboard,
    host: str,
    port: int,
    connections: int,
    names: frozenset[str] | None = frozenset(),
    beside: bool = False,
) -> AsyncIterator[str]:
    """Serve a dashboard at an address, which is returned.

    `beside`: it is beside something else. Then it may be at any port, if this one is taken, and results are read when
    somebody looks.
    """
    limits = Limits(connections, FORMS_BYTES, request_seconds=REQUEST_SECONDS, stop_seconds=END_SECONDS)
    listener = Listener(dashboard, limits, names=names, knows_addresses=True)
    try:
        at = await listener.start(host, port)
    except ServerError:
        if not beside:
            raise
        at = await listener.start(host, 0)
    if not beside:
        dashboard.source.start()
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{at}/"
    finally:
        dashboard.source.stop()
        await listener.stop()
        await asyncio.to_thread(dashboard.source.join)
