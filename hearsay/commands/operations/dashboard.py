"""`hearsay dashboard`: live pages of published results."""

import asyncio
import signal
from pathlib import Path
from typing import Annotated

import typer

from hearsay.terminal import console
from protocols.errors import SettingsError


def dashboard(
    surveys: Annotated[list[str] | None, typer.Argument(metavar="SURVEY")] = None,
    data: console.Data = None,
    kafka: console.Kafka = None,
    areas: Path | None = None,
    host: str = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8050,
    name: Annotated[list[str] | None, typer.Option(metavar="NAME")] = None,
    public: Annotated[bool, typer.Option("--public")] = False,
) -> None:
    """Show results in a browser as they are published, until it is stopped.

    A page of all surveys leads to a page of each, which is up to date within a moment: provisional results of open
    periods, and finals. It is a process of its own, and only reads: start, stop and restart it as you like. Pages that
    were open go on where they were.

    Only this machine can reach it, unless --host says otherwise. Then a token is needed (HEARSAY_DASHBOARD_TOKEN or
    HEARSAY_DASHBOARD_TOKEN_FILE), for which the page asks once.

    Example: hearsay dashboard festival-week
    """
    import uvloop

    from gateway.http import most_connections
    from hearsay.reports.serving import Published, listening
    from servers.logs import configure_logs
    from servers.ports import is_loopback
    from servers.settings import load

    published, token = Published(surveys or [], data, kafka, areas), load().dashboard.token
    if not is_loopback(host) and token is None and not public:
        raise SettingsError(
            f"everybody who reaches {host} could look at the results: no token is set",
            "set HEARSAY_DASHBOARD_TOKEN_FILE (openssl rand -hex 16 > FILE), or say --public if that is wanted",
        )
    published.check()
    configure_logs()
    connections = most_connections()
    app = published.dashboard(None if token is None else token.get_secret_value())
    # Without the token, a name is no use.
    called = None if token is not None else frozenset(map(str.lower, name or ()))

    async def run() -> None:
        ended = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        async with listening(app, host, port, connections, called) as address:
            console.out.print(f"The dashboard is at {address} (Ctrl-C ends it)", soft_wrap=True, markup=False)
            console.out.file.flush()
            await ended.wait()

    uvloop.run(run())
