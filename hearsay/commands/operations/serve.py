"""`hearsay serve`: collect from real devices in one process, without Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from hearsay.terminal import console

PANEL = "Who may send"
Host = Annotated[str, typer.Option(help="Address to listen on. Other machines need credentials.")]
Port = Annotated[int, typer.Option(metavar="PORT", help="Port to listen on; 0: any.", min=0, max=65535)]
Tokens = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Bearer tokens (hearsay gateway token new).", rich_help_panel=PANEL),
]
TlsCertificate = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Serve TLS with this certificate.", rich_help_panel=PANEL)
]
TlsKey = Annotated[Path | None, typer.Option(metavar="FILE", help="The certificate's key.", rich_help_panel=PANEL)]
ClientCa = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Authority whose client certificates may send.", rich_help_panel=PANEL),
]
Edge = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Common name of a certificate that is an edge's.", rich_help_panel=PANEL),
]
BehindProxy = Annotated[bool, typer.Option("--behind-proxy", help="A proxy in front ends TLS.", rich_help_panel=PANEL)]
Origin = Annotated[
    list[str] | None,
    typer.Option(metavar="ORIGIN", help="Web pages of this origin may report (CORS).", rich_help_panel=PANEL),
]
Name = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Name of a proxy in front, if it listens on this machine only."),
]
DevicesPerMinute = Annotated[
    float, typer.Option(metavar="N", help="Requests a minute of one device.", min=0.1, rich_help_panel=PANEL)
]
EdgesPerMinute = Annotated[
    float, typer.Option(metavar="N", help="Requests a minute of one edge.", min=0.1, rich_help_panel=PANEL)
]
WebHost = Annotated[str, typer.Option(help="Address of --web-port.")]
WebPort = Annotated[
    int | None,
    typer.Option(
        metavar="PORT",
        help="Serve /live, /ready and /metrics at this port, too. 0: a free one; the log says which.",
        min=0,
        max=65535,
    ),
]
LogLevel = Annotated[
    Literal["DEBUG", "INFO", "WARNING", "ERROR"],
    typer.Option(metavar="LEVEL", help="DEBUG, INFO, WARNING or ERROR."),
]


def serve(
    survey_files: Annotated[list[Path], typer.Argument(metavar="SURVEY...", help="Survey files.", show_default=False)],
    data: Annotated[
        Path, typer.Option(help="Directory for the log, the state and the results. Start again to go on.")
    ] = Path("hearsay-data/serve"),
    host: Host = "127.0.0.1",
    port: Port = 8080,
    tokens: Tokens = None,
    tls_certificate: TlsCertificate = None,
    tls_key: TlsKey = None,
    client_ca: ClientCa = None,
    edge: Edge = None,
    behind_proxy: BehindProxy = False,
    origin: Origin = None,
    name: Name = None,
    devices_per_minute: DevicesPerMinute = 30,
    edges_per_minute: EdgesPerMinute = 3000,
    web_host: WebHost = "127.0.0.1",
    web_port: WebPort = None,
    log_level: LogLevel = "WARNING",
) -> None:
    """Collect surveys from real devices in one process, without Kafka, until it is stopped.

    Devices fetch the terms and post their reports over HTTP; /try is such a device in the browser. Every report that
    was answered with 201 is on disk and counted once, also after kill -9. Periods are closed at their end plus grace.
    `hearsay report --data` reads the results, also while this runs.

    Without credentials only this machine may send. For others give --tokens or --client-ca.

    Example: hearsay serve survey.yaml
    """
    from hearsay.serving.exposure import Exposure, per_minute
    from hearsay.serving.local import serve_surveys
    from hearsay.survey_files import read_survey
    from servers.logs import configure_logs

    exposure = Exposure(
        host, port, tokens, tls_certificate, tls_key, client_ca, tuple(edge or ()), behind_proxy, tuple(origin or ()),
        tuple(name or ()), per_minute(devices_per_minute), per_minute(edges_per_minute), web_host, web_port,
    )  # fmt: skip
    configure_logs(log_level)
    serve_surveys([read_survey(path) for path in survey_files], data, exposure, say)


def say(text: str) -> None:
    console.err.print(text, soft_wrap=True, markup=False)
