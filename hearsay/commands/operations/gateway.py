"""`hearsay serve` and `hearsay gateway`: HTTP in, without Kafka or in front of it, and the credentials of senders."""

import secrets
import signal
import sys
import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from hearsay.terminal import console
from protocols.errors import StateError

app = typer.Typer()
token_app = typer.Typer(help="Bearer tokens of devices and edges.", no_args_is_help=True)
app.add_typer(token_app, name="token")
keys_app = typer.Typer(help="The keys of credentials that the gateways of a cluster share.", no_args_is_help=True)
app.add_typer(keys_app, name="keys")

PANEL = "Who may send"
Port = Annotated[int, typer.Option(metavar="PORT", min=0, max=65535)]
File = Annotated[Path | None, typer.Option(metavar="FILE", rich_help_panel=PANEL)]
Edge = Annotated[list[str] | None, typer.Option(metavar="NAME", rich_help_panel=PANEL)]
BehindProxy = Annotated[bool, typer.Option("--behind-proxy", rich_help_panel=PANEL)]
Origin = Annotated[list[str] | None, typer.Option(metavar="ORIGIN", rich_help_panel=PANEL)]
Name = Annotated[list[str] | None, typer.Option(metavar="NAME")]
PerMinute = Annotated[float, typer.Option(metavar="N", min=0.1, rich_help_panel=PANEL)]
State = Annotated[Path, typer.Option(metavar="FILE")]
STATE = Path("hearsay-data/gateway.state")
KEYS_PANEL = "Keys of several gateways"
PeerFile = Annotated[Path | None, typer.Option(metavar="FILE", rich_help_panel=KEYS_PANEL)]
WebPort = Annotated[int | None, typer.Option(metavar="PORT", min=0, max=65535)]


def serve(
    survey_files: Annotated[list[Path], typer.Argument(metavar="SURVEY...", show_default=False)],
    data: Path = Path("hearsay-data/serve"),
    host: str = "127.0.0.1",
    port: Port = 8080,
    tokens: File = None,
    tls_certificate: File = None,
    tls_key: File = None,
    client_ca: File = None,
    edge: Edge = None,
    behind_proxy: BehindProxy = False,
    origin: Origin = None,
    name: Name = None,
    devices_per_minute: PerMinute = 30,
    edges_per_minute: PerMinute = 3000,
    web_host: str = "127.0.0.1",
    web_port: WebPort = None,
    log_level: console.LogLevel = "WARNING",
) -> None:
    """Collect surveys from real devices in one process, without Kafka, until it is stopped.

    Devices fetch the terms and post their reports over HTTP; /try is such a device in a browser on this machine. Every
    report that was answered with 201 is on disk and counted once, also after kill -9. Periods are closed at their end
    plus grace. `hearsay report --data` reads the results, also while this runs.

    Without credentials only this machine may send. For others give --tokens or --client-ca.

    Example: hearsay serve survey.yaml
    """
    with console.progress("starting"):  # to import these takes a second
        from hearsay.serving.embedded_log import read_surveys, serve_surveys
        from hearsay.serving.running import Exposure
        from servers.logs import configure_logs

    exposure = Exposure(
        host, port, tokens, tls_certificate, tls_key, client_ca, tuple(edge or ()), behind_proxy, tuple(origin or ()),
        tuple(name or ()), devices_per_minute, edges_per_minute, web_host, web_port,
    )  # fmt: skip
    configure_logs(log_level)
    schemes, refused = read_surveys(survey_files, data)
    serve_surveys(schemes, data, exposure, say, refused)


@app.callback(invoke_without_command=True)
def gateway(
    context: typer.Context,
    prefix: Annotated[str | None, typer.Option("--app")] = None,
    host: str = "127.0.0.1",
    port: Port = 8080,
    tokens: File = None,
    tls_certificate: File = None,
    tls_key: File = None,
    client_ca: File = None,
    edge: Edge = None,
    behind_proxy: BehindProxy = False,
    origin: Origin = None,
    name: Name = None,
    devices_per_minute: PerMinute = 30,
    edges_per_minute: PerMinute = 3000,
    state: State = STATE,
    pull: Annotated[str | None, typer.Option(metavar="URL", rich_help_panel=KEYS_PANEL)] = None,
    peer_port: Annotated[int | None, typer.Option(metavar="PORT", min=0, max=65535, rich_help_panel=KEYS_PANEL)] = None,
    peer: Annotated[list[str] | None, typer.Option(metavar="NAME", rich_help_panel=KEYS_PANEL)] = None,
    peer_certificate: PeerFile = None,
    peer_key: PeerFile = None,
    peer_ca: PeerFile = None,
    hold: Annotated[int, typer.Option(metavar="M", min=0, max=10_000)] = 0,
    hold_data: Annotated[Path, typer.Option(metavar="DIR")] = Path("hearsay-data/gateway"),
    web_host: str = "127.0.0.1",
    web_port: WebPort = None,
    log_level: console.LogLevel = "INFO",
) -> None:
    """Take reports over HTTP and write them to Kafka, until it is stopped.

    Start as many as you like, behind a load balancer. An answer of 201 says that all replicas have the report; a
    gateway that cannot write answers 503, and devices send the same again. The surveys are those of the registry
    (hearsay survey publish).

    Needs a Kafka cluster (HEARSAY_KAFKA_BOOTSTRAP) with its topics; with credentials of devices also keys in --state
    (hearsay gateway keys new), which other gateways take over (--pull).

    Example: hearsay gateway --port 8081
    """
    if context.invoked_subcommand is not None:
        return
    from gateway.service import StateFile
    from hearsay.serving.kafka_log import serve_kafka
    from hearsay.serving.key_sharing import KeySharing
    from hearsay.serving.running import Exposure
    from servers.logs import configure_logs
    from servers.settings import load

    exposure = Exposure(
        host, port, tokens, tls_certificate, tls_key, client_ca, tuple(edge or ()), behind_proxy, tuple(origin or ()),
        tuple(name or ()), devices_per_minute, edges_per_minute, web_host, web_port,
    )  # fmt: skip
    configure_logs(log_level)
    sharing = KeySharing(host, peer_port, frozenset(peer or ()), pull, peer_certificate, peer_key, peer_ca)
    # While it waits for a broker: the first process of a container ignores SIGTERM unless it handles it.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    serve_kafka(load(), prefix, exposure, sharing, StateFile(state), hold, hold_data, say)


@token_app.command("new")
def new(
    file: Annotated[Path, typer.Option(metavar="FILE")] = Path("tokens"),
    role: Annotated[Literal["device", "edge"], typer.Option(metavar="ROLE")] = "device",
    note: str = "",
    as_json: console.AsJson = False,
) -> None:
    """Make a bearer token: its hash is added to a file, and the token itself is shown once.

    A gateway that runs reads the file again within seconds. Remove a line to revoke a token.

    Example: hearsay gateway token new --file tokens --note "the phone of the tests"
    """
    from gateway.door import credential_line
    from servers.private_files import open_private

    token = f"hs_{secrets.token_urlsafe(32)}"
    unended = file.is_file() and file.read_bytes()[-1:] not in (b"", b"\n")
    with open_private(file, "a") as tokens:
        tokens.write("\n" * unended + credential_line(token, role, note))
    if as_json:
        console.print_json({"token": token, "role": role, "file": str(file)})
    else:
        console.err.print(f"its hash is in {file}; the token itself is kept nowhere:", markup=False, soft_wrap=True)
        typer.echo(token)


@keys_app.command("new")
def new_pool(state: State = STATE) -> None:
    """Make the pool of keys of a cluster: at its first gateway, once. That gateway is the keeper.

    The keeper draws a link of random bytes for each of the next 48 hours, and each hour one more, as long as it runs.
    The other gateways pull or import them. A gateway that runs uses them within seconds: for periods that began, or
    surveys that were published, in this hour or the one before, and for all later ones.

    Example: hearsay gateway keys new --state gateway.state
    """
    from gateway.door import KeyState
    from gateway.service import StateFile

    now = time.time()

    def begun(before: KeyState) -> KeyState:
        if before.through is not None:
            raise StateError(
                f"{state} has a pool of keys: with a second one, a credential would count twice in a period",
                "give this one to the other gateways: `hearsay gateway keys export` here, `import` there; if they are "
                "running out because the keeper is gone, run `hearsay gateway keys keep`",
            )
        kept = before.model_copy(update={"keeper": True})
        return kept.drawn(now, secrets.token_bytes)

    StateFile(state).update(begun, now)
    say(f"A pool of keys begins in {state}, and this gateway is its keeper. Leave this file out of backups.")


@keys_app.command("keep")
def keep_pool(state: State = STATE) -> None:
    """Make this gateway the keeper of the pool: after the old keeper is gone.

    It draws links for the hours after the last one that it has. So choose the gateway whose
    hearsay_gateway_key_hours is highest. The old keeper must not start again with its file: delete that, and let it
    import a new one. Two keepers draw two pools, and a credential then counts twice in a period.

    Example: hearsay gateway keys keep --state gateway.state
    """
    from gateway.door import KeyState
    from gateway.service import StateFile

    now = time.time()

    def keeping(before: KeyState) -> KeyState:
        if before.through is None:
            raise StateError(
                f"{state} has no keys yet, so it is not known for which hours others have links",
                "import them first; at the first gateway of a cluster, run `hearsay gateway keys new`",
            )
        kept = before.model_copy(update={"keeper": True})
        return kept.drawn(now, secrets.token_bytes)

    kept = StateFile(state).update(keeping, now)
    say(f"The gateway of {state} is the keeper, with links for {kept.hours_left(now):.0f} hours.")


@keys_app.command("export")
def export_keys(state: State = STATE) -> None:
    """Print the keys of a gateway, for `import` at another one of the same cluster.

    Who reads them can name the senders of the periods that are open or begin within 48 hours: let them go through a
    pipe to the other gateway, and nowhere else.

    Example: hearsay gateway keys export --state gateway.state | ssh other hearsay gateway keys import
    """
    from gateway.service import StateFile

    keys = StateFile(state).erase(time.time())
    if not keys.links:
        raise StateError(
            f"{state} has no links of keys",
            "name the file of a running gateway with --state; if all have run out, run `hearsay gateway keys keep`",
        )
    typer.echo(keys.exported().model_dump_json())


@keys_app.command("import")
def import_keys(state: State = STATE) -> None:
    """Read the keys of another gateway of the same cluster from standard input.

    For a new gateway, and for one that does not pull: once a day at least. Without the keys of periods that began
    meanwhile it answers 503 to devices' credentials. One that runs uses them within seconds.

    Example: hearsay gateway keys import --state gateway.state < keys
    """
    from gateway.service import StateFile, read_state

    now = time.time()
    given = read_state(sys.stdin.buffer.read(), "standard input", now)
    StateFile(state).erase(now, given)
    say(f"{state} has the keys of the other gateway.")


@keys_app.command("pull")
def pull_keys(
    url: Annotated[str, typer.Argument(metavar="URL", show_default=False)],
    peer_certificate: Annotated[Path, typer.Option(metavar="FILE", show_default=False)],
    peer_key: Annotated[Path, typer.Option(metavar="FILE", show_default=False)],
    peer_ca: Annotated[Path, typer.Option(metavar="FILE", show_default=False)],
    state: State = STATE,
) -> None:
    """Take over the keys of another gateway now, as one with --pull does each hour.

    Example: hearsay gateway keys pull https://keeper:8444 --peer-certificate p.crt --peer-key p.key --peer-ca ca.crt
    """
    from gateway.service import PeerTls, StateFile, pull

    tls = PeerTls(peer_certificate, peer_key, peer_ca).client()
    pull(url, tls, StateFile(state))
    say(f"{state} has the keys of the gateway at {url}.")


def say(text: str) -> None:
    console.err.print(text, soft_wrap=True, markup=False)
