"""`hearsay serve`: the embedded app behind HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from gateway.http import most_connections
from gateway.service import Surveys
from hearsay.data_directory import DataDirectory
from hearsay.reports.serving import Published, application, listening
from hearsay.running.collecting import THIS_PROCESS
from hearsay.serving.embedded_log import EmbeddedLog
from hearsay.serving.exposure import Exposure
from hearsay.serving.running import linked_figures, run
from hearsay.serving.try_page import try_pages
from protocols.errors import SurveyError
from protocols.scheme import Scheme
from protocols.survey import Survey
from servers.key_files import secret_in
from stream_app.counting import load_loops
from views.local import collector

DASHBOARD_HOST = "127.0.0.1"


def serve_surveys(surveys: Sequence[Survey], directory: Path, exposure: Exposure, say: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT."""
    exposure.check()
    connections = most_connections()
    viewing = connections // 4  # connections of the dashboard
    for survey in surveys:
        if survey.clock != "wall":
            raise SurveyError(
                f"survey {survey.id!r} has clock: source, and devices cannot close periods",
                "give it clock: wall, and an id of its own",
            )
    data = DataDirectory(directory)
    for survey in surveys:
        data.check_destination(survey.id, THIS_PROCESS)
    schemes = {survey.id: Scheme(survey) for survey in surveys}
    if exposure.credentials:
        for line in linked_figures(schemes.values()):
            say(line)
    app = collector(data.collector, surveys, data.clock_key(), data.presence_key(), sinks=[data.results])
    load_loops()  # before devices wait for it
    to = EmbeddedLog(app, surveys)
    results = application(Published(schemes, directory, None), schemes, at_once=False)
    names = ", ".join(schemes)

    def started(address: str) -> None:
        say(f"Collecting {names} at {address}")
        if exposure.loopback:
            say(f"A device in the browser: {address}/try")
        say(f"Results: hearsay report {next(iter(schemes))} --data {directory}")

    async def dashboard() -> None:
        """Reached from this machine only, whatever address devices use: at the next port, if it is free."""
        next_port = exposure.port and exposure.port + 1
        async with listening(results, DASHBOARD_HOST, next_port, viewing, or_any=True) as address:
            say(f"Results as they come: {address}")
            await asyncio.Event().wait()

    run(
        exposure,
        Surveys(schemes.get, schemes.values),
        to,
        secret_in(directory / "gateway.key"),
        started,
        connections - viewing,
        pages=try_pages(schemes, data.collector) if exposure.loopback else {},
        beside=dashboard,
    )
