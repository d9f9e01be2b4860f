"""`hearsay gateway`: HTTP in front of a Kafka cluster, and the credentials of those who may send."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from hearsay.commands.operations.serve import (
    BehindProxy,
    ClientCa,
    DevicesPerMinute,
    Edge,
    EdgesPerMinute,
    Host,
    LogLevel,
    Name,
    Origin,
    Port,
    TlsCertificate,
    TlsKey,
    Tokens,
    WebHost,
    WebPort,
    say,
)
from hearsay.terminal import console

app = typer.Typer()
token_app = typer.Typer(help="Bearer tokens of devices and edges.", no_args_is_help=True)
app.add_typer(token_app, name="token")


@app.callback(invoke_without_command=True)
def gateway(
    context: typer.Context,
    prefix: Annotated[
        str | None, typer.Option("--app", help="Prefix of the topics, if not that of the settings.")
    ] = None,
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
    hold: Annotated[
        int,
        typer.Option(
            metavar="M", help="Hold reports until M of a survey and partition have come; 0: do not.", min=0, max=10_000
        ),
    ] = 0,
    hold_data: Annotated[
        Path, typer.Option(metavar="DIR", help="Where held reports are kept; each gateway needs its own.")
    ] = Path("hearsay-data/gateway"),
    web_host: WebHost = "127.0.0.1",
    web_port: WebPort = None,
    log_level: LogLevel = "INFO",
) -> None:
    """Take reports over HTTP and write them to Kafka, until it is stopped.

    Start as many as you like, behind a load balancer. An answer of 201 says that all replicas have the report; a
    gateway that cannot write answers 503, and devices send the same again. The surveys are those of the registry
    (hearsay survey publish).

    Needs a Kafka cluster (HEARSAY_KAFKA_BOOTSTRAP) with its topics; with credentials also the key that all gateways
    share (HEARSAY_GATEWAY_KEY).

    Example: hearsay gateway --port 8081
    """
    if context.invoked_subcommand is not None:
        return
    import signal
    import sys

    from hearsay.serving.exposure import Exposure, per_minute
    from hearsay.serving.kafka_log import serve_kafka
    from servers.logs import configure_logs
    from servers.settings import load

    exposure = Exposure(
        host, port, tokens, tls_certificate, tls_key, client_ca, tuple(edge or ()), behind_proxy, tuple(origin or ()),
        tuple(name or ()), per_minute(devices_per_minute), per_minute(edges_per_minute), web_host, web_port,
    )  # fmt: skip
    configure_logs(log_level)
    # While it waits for a broker: the first process of a container ignores SIGTERM unless it handles it.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    serve_kafka(load(), prefix, exposure, hold, hold_data, say)


@token_app.command("new")
def new(
    file: Annotated[Path, typer.Option(metavar="FILE", help="The file of --tokens; made if there is none.")] = Path(
        "tokens"
    ),
    role: Annotated[
        Literal["device", "edge"],
        typer.Option(metavar="ROLE", help="device: one report a period; edge: arrays and frames of many devices."),
    ] = "device",
    note: Annotated[str, typer.Option(help="A note for people, kept beside its hash.")] = "",
    as_json: console.AsJson = False,
) -> None:
    """Make a bearer token: its hash is added to a file, and the token itself is shown once.

    A gateway that runs reads the file again within seconds. Remove a line to revoke a token.

    Example: hearsay gateway token new --file tokens --note "the phone of the tests"
    """
    import secrets

    from gateway.door import credential_line
    from servers.private_files import open_private

    token = f"hs_{secrets.token_urlsafe(32)}"
    with open_private(file, "a") as tokens:
        tokens.write(credential_line(token, role, note))
    if as_json:
        console.print_json({"token": token, "role": role, "file": str(file)})
    else:
        console.err.print(f"its hash is in {file}; the token itself is kept nowhere:", markup=False, soft_wrap=True)
        typer.echo(token)
