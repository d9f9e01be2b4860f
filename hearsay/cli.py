"""The command line: the table of all commands. It is quick to import, and so is `hearsay --help`."""

import gc
import json
import os
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

HERE = Path(__file__).parent / "commands"
# By panel of `hearsay --help`: a command's module and function, and its line there. Its module is imported when it is
# called: that takes long. Nothing but these names leads to the lab.
PANELS: dict[str, dict[str, tuple[str, str]]] = json.loads((HERE / "commands.json").read_text("utf-8"))
COMMANDS = {name: command for panel in PANELS.values() for name, command in panel.items()}


_type_shown = TyperOption.display_type_rich
# Flags take no value; typer writes <bool> behind each of them, also behind --help, which no parameter of ours reaches.
TyperOption.display_type_rich = (  # type: ignore[method-assign]
    lambda self, ctx: None if self.is_flag else _type_shown(self, ctx)
)


class Commands(TyperGroup):
    """The commands of the table, by panel: as lines to be listed, until one is called."""

    def __init__(self, **settings: Any) -> None:
        lines = {
            name: TyperCommand(name=name, help=line, rich_help_panel=panel)
            for panel, commands in PANELS.items()
            for name, (_, line) in commands.items()
        }
        super().__init__(**{**settings, "commands": lines})

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        return name, name and _imported(name), rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from hearsay.terminal.quick_help import import_help

        import_help()
        super().format_help(ctx, formatter)


def _imported(command: str) -> Any:
    module, _, name = COMMANDS[command][0].partition(":")
    found = getattr(import_module(module if module.startswith("lab.") else f"hearsay.commands.{module}"), name)
    holder = typer.Typer(add_completion=False, callback=lambda: None, rich_markup_mode="markdown")
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=command)
    else:
        holder.command(command)(found)
    called = typer.main.get_group(holder).commands[command]
    texts = json.loads((HERE / "options.json").read_text("utf-8"))
    _explain(called, command, texts, texts["*"])
    return called


def _explain(command: Any, path: str, texts: Mapping[str, Mapping[str, str]], known: Mapping[str, str]) -> None:
    """Give each parameter its text: the one that options.json has for its command, for its group, or for all."""
    known = {**known, **texts.get(path, {})}
    for parameter in command.params:
        parameter.help = parameter.help or known.get(parameter.name)
    for name, inner in getattr(command, "commands", {}).items():
        _explain(inner, f"{path} {name}", texts, known)


app = typer.Typer(
    name="hearsay",
    cls=Commands,
    help="Collect data from devices over months, under local differential privacy.",
    epilog="Start with: hearsay demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",  # the list of commands has no Markdown: hearsay.terminal.quick_help
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from hearsay.commands.operations.doctor import version

        version()
        raise typer.Exit


@app.callback()
def root(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


def main() -> None:
    """The console script. An error becomes a sentence and an exit code; --debug shows the traceback.

    typer handles Ctrl-C: it ends with code 130, unless a command handles the signal itself.
    """
    _open_closed_streams()
    sys.meta_path.insert(0, WithoutPandas())
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # to look for them takes long; no command uses any
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices are small: threads wait for each other, and burn CPU
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # what a terminal cannot show
    _warn_of_former_name()
    try:
        try:
            app()
        finally:
            gc.freeze()  # otherwise Python searches all objects for cycles once more before it ends
            sys.stdout.flush()  # here an error, such as a full disk, can still be explained
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        from hearsay.terminal.explaining import explain

        if isinstance(error, ModuleNotFoundError):
            from hearsay.extras import explained, fetch

            called = next((word for word in sys.argv[1:] if word in COMMANDS), "")
            if missing := explained(error, called):
                fetch(missing.extra)
                error = missing
        code = explain(error)
        _discard_unwritten_output()
        sys.exit(code)


class WithoutPandas:  # importlib.abc has a class of finders, and imports tempfile and zip files
    """Makes pandas appear as not installed. pyarrow imports it if it can; no command uses it, and it takes long."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("commands do without pandas", name=fullname)


def _warn_of_former_name() -> None:
    """Say at every start that an installation is shared with the former name: uninstalling that one breaks this one."""
    from servers.distribution import former_name

    if former := former_name():
        sys.stderr.write(f"hearsay: {former.what}; {former.cure}\n")


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
