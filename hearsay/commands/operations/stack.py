"""`hearsay stack`: a real Kafka and a real Redis on this machine, for development."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from hearsay.terminal import console

if TYPE_CHECKING:
    from hearsay.running.stack import ServerStatus, Stack

app = typer.Typer(help="Run a real Kafka and a real Redis on this machine, without containers.", no_args_is_help=True)

Directory = Annotated[Path, typer.Option("--dir")]
HERE = Path(".stack")


@app.command()
def up(
    directory: Directory = HERE,
    port: Annotated[int | None, typer.Option(min=1, max=65535)] = None,
    as_json: console.AsJson = False,
) -> None:
    """Start Kafka and Redis in the background, and create the topics. Repeating it changes nothing.

    Both listen on this machine only. Kafka needs Java 17; it is downloaded the first time (43 MB), with Maven.

    Example: hearsay stack up && export HEARSAY_SETTINGS=.stack/hearsay.env
    """
    stack = _stack(directory)
    with console.progress("starting") as step:
        stack.up(port, step)
    _show(stack, as_json)
    if not as_json:
        console.out.print(f"\nTo use them: export HEARSAY_SETTINGS={stack.settings_file}", soft_wrap=True, markup=False)
        console.out.print("Next: hearsay survey publish SURVEY", markup=False)


@app.command()
def down(directory: Directory = HERE, as_json: console.AsJson = False) -> None:
    """Stop both servers. Their data is kept for the next `up`.

    Example: hearsay stack down
    """
    stack = _stack(directory)
    with console.progress("stopping"):
        stack.down()
    _show(stack, as_json)


@app.command()
def status(directory: Directory = HERE, as_json: console.AsJson = False) -> None:
    """Show which servers answer, and their addresses. The exit code is 1 unless both answer.

    Example: hearsay stack status --json
    """
    found = _show(_stack(directory), as_json)
    if not all(server.answers for server in found):
        raise typer.Exit(1)


@app.command()
def logs(
    directory: Directory = HERE,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1)] = 20,
    as_json: console.AsJson = False,
) -> None:
    """Show the last lines of both logs, and their paths.

    Example: hearsay stack logs -n 50
    """
    stack = _stack(directory)
    tails = {server.log_file: server.tail(lines) for server in (stack.kafka, stack.redis)}
    if as_json:
        console.print_json({str(path): tail.splitlines() for path, tail in tails.items()})
        return
    for path, tail in tails.items():
        console.out.rule(escape(str(path)), align="left")
        console.out.print(tail or "(empty)", markup=False, soft_wrap=True)


@app.command()
def fetch() -> None:
    """Download Kafka's program files, so that `up` works without a network. Repeating it changes nothing.

    Example: hearsay stack fetch
    """
    from servers.kafka_broker import kafka_jars

    with console.progress("downloading Kafka (43 MB, once)"):
        jars = kafka_jars()
    console.out.print(f"Kafka is in {jars}", soft_wrap=True, markup=False)


def _stack(directory: Path) -> Stack:
    from hearsay.running.stack import Stack

    return Stack(directory)


def _show(stack: Stack, as_json: bool) -> list[ServerStatus]:
    """Show the status of the servers, and return it."""
    found = stack.status()
    if as_json:
        console.print_json({"settings": stack.settings_file, "servers": [asdict(server) for server in found]})
        return found
    table = Table("", "server", "address", "pid", box=None, pad_edge=False)
    for server in found:
        mark = "[green]●[/]" if server.answers else "[yellow]●[/]" if server.pid else "[dim]○[/]"
        state = server.address or "not running"
        if server.pid and not server.answers:
            state += " (does not answer)"
        table.add_row(mark, server.name, escape(state), str(server.pid or ""))
    console.out.print(table)
    return found
