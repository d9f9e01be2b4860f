"""The command line: every command in one place. It is quick to import, and so is `hearsay --help`."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

# A command is imported when it is called: most of them bring libraries that take their time.
COMMANDS = {
    "demo": "hearsay.commands.runs:demo",
    "run": "hearsay.commands.runs:run",
    "replay": "hearsay.commands.replay:replay",
    "send": "hearsay.commands.send:send",
    "report": "hearsay.commands.report:report",
    "plan": "hearsay.commands.plan:plan",
    "survey": "hearsay.commands.survey:app",
    "evaluate": "hearsay.commands.evaluate:evaluate",
    "worker": "hearsay.commands.operations.worker:worker",
    "close": "hearsay.commands.operations.close:close",
    "stack": "hearsay.commands.operations.stack:app",
    "topics": "hearsay.commands.operations.topics:app",
    "memo": "hearsay.commands.operations.memo:app",
    "doctor": "hearsay.commands.operations.doctor:doctor",
    "version": "hearsay.commands.version:version",
}


class Commands(TyperGroup):
    """The commands of the table above, in its order."""

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
    help="Learn about a population over months without learning about anyone in it.",
    epilog="Start with: hearsay demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


@app.callback()
def root(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks instead of one sentence.")] = False,
) -> None:
    pass


def main() -> None:
    """The console script: what went wrong becomes a sentence and an exit code; --debug shows the traceback.

    Ctrl-C is typer's: it ends with code 130, unless a command listens for it in order to end well.
    """
    _open_what_is_closed()
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # here a full disk is still a sentence
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        from hearsay.terminal.explaining import explain

        code = explain(error)
        _give_up_unwritten_output()
        sys.exit(code)


def _open_what_is_closed() -> None:
    """Started with `>&-`, by a daemon say: the next file that is opened would take the place of standard output."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            setattr(sys, name, os.fdopen(number, "w" if number else "r"))


def _give_up_unwritten_output() -> None:
    """Python writes what is left when it ends; where that fails it would say so in its own words, and its own code."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
