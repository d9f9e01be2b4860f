"""The command line: every command in one place, errors as one sentence and a hint.

Exit codes:  0 done   1 refused, with a sentence   2 wrong usage   75 try again later   130 stopped by the user
"""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from typing import Annotated

import typer

from hearsay import console
from hearsay.commands import doctor, runs
from protocols.errors import HearsayError, Stopped

REFUSED, TRY_AGAIN, STOPPED = 1, 75, 130

app = typer.Typer(
    name="hearsay",
    help="Learn about a population over months without learning about anyone in it.",
    epilog="Start with: hearsay demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


@app.callback()
def root(debug: Annotated[bool, typer.Option(help="Show tracebacks instead of one sentence.")] = False) -> None:
    pass


@app.command()
def version() -> None:
    """Print the version. Example: hearsay version"""
    console.out.print(f"hearsay {installed_version('hearsay')}")


app.command()(runs.demo)
app.command()(runs.run)
app.command()(doctor.doctor)


def main() -> None:
    """The console script: what went wrong becomes a sentence and an exit code; --debug shows the traceback."""
    try:
        app()
    except HearsayError as error:
        if "--debug" in sys.argv:
            raise
        console.err.print(f"[red bold]hearsay:[/] {error.message}", soft_wrap=True)
        if error.hint:
            console.err.print(f"[dim]hint:[/] {error.hint}", soft_wrap=True)
        sys.exit(STOPPED if isinstance(error, Stopped) else TRY_AGAIN if error.retriable else REFUSED)
    except KeyboardInterrupt:
        console.err.print("stopped")
        sys.exit(STOPPED)
