"""The command line: the table of all commands. It is quick to import, and so is `hearsay --help`."""

import gc
import os
import sys
from importlib import import_module
from importlib.abc import MetaPathFinder
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

# A command's module, function and line in `hearsay --help`. Its module is imported when it is called: that takes long.
# Nothing but these names leads to the lab.
COMMANDS = {
    "demo": ("runs:demo", "Simulate a festival week, collect it end to end, and show the mobility report."),
    "run": ("runs:run", "Simulate a population, collect a survey from it end to end, and show the results."),
    "serve": (
        "operations.gateway:serve",
        "Collect surveys from real devices in one process, without Kafka, until it is stopped.",
    ),
    "replay": ("replay:replay", "Turn recorded events into one report per person and period, as a trusted edge does."),
    "edge": (
        "edge:edge",
        "Turn events into one report per person and period, as files of them are dropped into a directory.",
    ),
    "send": ("replay:send", "Send captured reports to a Kafka cluster: that of --kafka, or that of HEARSAY_KAFKA_*."),
    "report": (
        "report:report",
        "Show final results: visitors of every period, and the answers of the latest period or of the one given.",
    ),
    "forecast": (
        "forecast:forecast",
        "Forecast what is published, with intervals of two kinds: for the truth, and for what will be published.",
    ),
    "synthesize": (
        "lab.commands.synthesize:synthesize",
        "Write records that follow the published tables: of single attributes, and of the pairs that crosses have "
        "asked.",
    ),
    "people": (
        "lab.commands.people:people",
        "Write virtual people, who come out as published: the different people of all windows of days, and their "
        "values.",
    ),
    "plan": (
        "plan:plan",
        "Show what a survey reveals and how precise its results will be; and with --all which mechanisms it uses and "
        "why.",
    ),
    "dossier": (
        "dossier:dossier",
        "Write a page in plain words for a data protection officer: what is asked, and who can learn what from it.",
    ),
    "survey": ("survey:app", "Check, write and publish survey files."),
    "evaluate": (
        "lab.commands.evaluate:evaluate",
        "Compare methods where the truth is known: MSE_avg and RMSE per method and budget, as the papers measure them.",
    ),
    "audit": ("lab.commands.audit:audit", "Attack a survey as well as anybody can, and show what the attacks reach."),
    "dashboard": (
        "operations.dashboard:dashboard",
        "Show results in a browser as they are published, until it is stopped.",
    ),
    "views": (
        "sinks:views",
        "Make results of what workers have counted, for topics and other sinks, until it is stopped.",
    ),
    "sinks": ("sinks:app", "List, check and fill the sinks of results."),
    "worker": ("operations.worker:worker", "Count reports from Kafka and publish results, until it is stopped."),
    "gateway": ("operations.gateway:app", "Take reports over HTTP and write them to Kafka, until it is stopped."),
    "close": (
        "operations.close:close",
        "Close all periods of a survey up to and including one. Their results become final.",
    ),
    "deadletters": ("operations.deadletters:app", "List refused records, and send them again."),
    "recover": (
        "operations.recover:recover",
        "Show the partitions that workers cannot read on and the surveys that are quarantined, and let them go on.",
    ),
    "stack": ("operations.stack:app", "Run a real Kafka and a real Redis on this machine, without containers."),
    "topics": ("operations.topics:app", "Create or check the topics on the cluster of HEARSAY_KAFKA_*."),
    "memo": ("operations.memo:app", "Show the memo store, and accept a loss of its history."),
    "doctor": (
        "operations.doctor:doctor",
        "Check this machine and the servers of its settings, and show what to do about each problem.",
    ),
    "version": ("operations.doctor:version", "Print the version."),
}


PANELS = {
    "Begin": ("demo", "survey", "plan", "dossier", "run"),
    "Collect": ("serve", "replay", "edge", "send", "gateway", "worker", "close"),
    "Read results": ("report", "dashboard", "forecast", "views", "sinks"),
    "Measure": ("evaluate", "audit", "synthesize", "people"),
    "Operate": ("doctor", "stack", "topics", "memo", "deadletters", "recover", "version"),
}


_type_shown = TyperOption.display_type_rich
# Flags take no value; typer writes <bool> behind each of them, also behind --help, which no parameter of ours reaches.
TyperOption.display_type_rich = (  # type: ignore[method-assign]
    lambda self, ctx: None if self.is_flag else _type_shown(self, ctx)
)


class Commands(TyperGroup):
    """The commands of the table, by panel: as lines to be listed, until one is called."""

    def __init__(self, **settings: Any) -> None:
        lines = {
            name: TyperCommand(name=name, help=COMMANDS[name][1], rich_help_panel=panel)
            for panel, names in PANELS.items()
            for name in names
        }
        super().__init__(**{**settings, "commands": lines})

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        return name, name and _imported(name), rest


def _imported(command: str) -> Any:
    module, _, name = COMMANDS[command][0].partition(":")
    found = getattr(import_module(module if module.startswith("lab.") else f"hearsay.commands.{module}"), name)
    holder = typer.Typer(add_completion=False, callback=lambda: None, rich_markup_mode="markdown")
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=command)
    else:
        holder.command(command)(found)
    return typer.main.get_group(holder).commands[command]


app = typer.Typer(
    name="hearsay",
    cls=Commands,
    help="Collect data from devices over months, under local differential privacy.",
    epilog="Start with: hearsay demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
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
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # what a terminal cannot show
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


class WithoutPandas(MetaPathFinder):
    """Makes pandas appear as not installed. pyarrow imports it if it can; no command uses it, and it takes long."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("commands do without pandas", name=fullname)


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
