"""`hearsay dashboard`: live pages of published results."""

from pathlib import Path
from typing import Annotated

import typer

from hearsay.terminal import console


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
    from hearsay.reports.serving import Published, serve

    def started(address: str) -> None:
        console.out.print(f"The dashboard is at {address} (Ctrl-C ends it)", soft_wrap=True, markup=False)
        console.out.file.flush()

    serve(Published(surveys or [], data, kafka, areas), host, port, public, started, name or ())
