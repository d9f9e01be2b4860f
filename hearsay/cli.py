"""The command line: the table of all commands. It is quick to import, and so is `hearsay --help`."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

# A command is imported when it is called, and imports what it needs when it runs: libraries take long to import.
COMMANDS = {
    "demo": "hearsay.commands.runs:demo",
    "run": "hearsay.commands.runs:run",
    "serve": "hearsay.commands.operations.serve:serve",
    "replay": "hearsay.commands.replay:replay",
    "send": "hearsay.commands.send:send",
    "report": "hearsay.commands.report:report",
    "forecast": "hearsay.commands.forecast:forecast",
    "synthesize": "hearsay.commands.synthesize:synthesize",
    "plan": "hearsay.commands.plan:plan",
    "survey": "hearsay.commands.survey:app",
    "evaluate": "hearsay.commands.evaluate:evaluate",
    "audit": "hearsay.commands.audit:audit",
    "dashboard": "hearsay.commands.operations.dashboard:dashboard",
    "worker": "hearsay.commands.operations.worker:worker",
    "gateway": "hearsay.commands.operations.gateway:app",
    "close": "hearsay.commands.operations.close:close",
    "deadletters": "hearsay.commands.operations.deadletters:app",
    "recover": "hearsay.commands.operations.recover:recover",
    "stack": "hearsay.commands.operations.stack:app",
    "topics": "hearsay.commands.operations.topics:app",
    "memo": "hearsay.commands.operations.memo:app",
    "doctor": "hearsay.commands.operations.doctor:doctor",
    "version": "hearsay.commands.version:version",
}


class Commands(TyperGroup):
    """The commands of the table, in its order."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        found = getattr(import_module(module), name)
        holder = typer.Typer(add_completion=False, callback=lambda: None, rich_markup_mode="markdown")
        if isinstance(found, typer.Typer):
            holder.add_typer(found, name=cmd_name)
        else:
            holder.command(cmd_name)(found)
        return typer.main.get_group(holder).commands[cmd_name]


app = typer.Typer(
    name="hearsay",
    cls=Commands,
    help="Collect data from devices over months, under local differential privacy.",
    epilog="Start with: hearsay demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


@app.callback()
def root(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    pass


def main() -> None:
    """The console script. An error becomes a sentence and an exit code; --debug shows the traceback.

    typer handles Ctrl-C: it ends with code 130, unless a command handles the signal itself.
    """
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # what a terminal cannot show
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # here an error, such as a full disk, can still be explained
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        from hearsay.terminal.explaining import explain

        code = explain(error)
        _discard_unwritten_output()
        sys.exit(code)


def _open_closed_streams() -> None:
    """Open closed standard streams (`>&-`) on /dev/null: otherwise the next opened file would take their number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            setattr(sys, name, os.fdopen(number, "w" if number else "r"))


def _discard_unwritten_output() -> None:
    """Python flushes standard output at exit; where that fails, it would print its own message and set its own code."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
