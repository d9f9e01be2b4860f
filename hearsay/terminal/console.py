"""Output of commands: one console for each stream, one progress bar, one way to print JSON."""

import json
import logging
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Annotated, Any, Literal

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from servers.printable import printable, printable_json

NARROWEST = 80
"""Tables are made for so many columns at least. A narrower terminal breaks their lines; cut numbers would be wrong."""


def table(*columns: str, left: Collection[str] = ("",), **style: Any) -> Table:
    """A table without lines. Numbers are on the right; the columns in `left` are on the left."""
    made = Table(**{"box": None, "pad_edge": False, "title_justify": "left", **style})
    for column in columns:
        made.add_column(column, justify="left" if column in left else "right")
    return made


class SafeConsole(Console):
    """A console that shows text from outside only as text, in characters that the terminal has."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            shown = segment.text if segment.control else printable(segment.text, self.encoding)
            yield segment if shown is segment.text else segment._replace(text=shown)


out = SafeConsole(highlight=False)
if out.width < NARROWEST:
    out.width = NARROWEST
err = SafeConsole(stderr=True, highlight=False)


class _Notices(logging.Handler):
    """What a library says to whoever waits: a line, in a terminal above the progress bar if there is one."""

    def emit(self, record: logging.LogRecord) -> None:
        err.print(record.getMessage(), markup=False, soft_wrap=True)


_compiling = logging.getLogger("protocols.arrays.compiling")  # by its name: to import it takes long
_compiling.addHandler(_Notices())
_compiling.setLevel(logging.INFO)
_compiling.propagate = False  # a worker's log would say it a second time

# Their texts are in hearsay/commands/options.json, as those of all options.
Kafka = Annotated[str | None, typer.Option(metavar="HOST:PORT")]
Data = Annotated[Path | None, typer.Option(show_default=False)]
SurveyFile = Annotated[Path, typer.Argument(help="A survey file.", show_default=False)]
SurveyId = Annotated[str | None, typer.Argument(help="The survey's id; may be left out if there is only one.")]
LogLevel = Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], typer.Option(metavar="LEVEL")]
AsJson = Annotated[bool, typer.Option("--json")]


Step = Callable[[int, int, str], None]
"""Progress callback: steps done, steps in all, and what is done."""


def no_step(done: int, total: int, what: str) -> None:
    """Default progress callback: does nothing."""


class Lines:
    """Progress for output that is not a terminal: a line every few seconds, none for short work."""

    EVERY_SECONDS = 3.0

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._printed_at = now()

    def __call__(self, done: int, total: int, what: str) -> None:
        if self._now() - self._printed_at >= self.EVERY_SECONDS:
            self._printed_at = self._now()
            err.print(f"{what}: {done:,} of {total:,}", markup=False, soft_wrap=True)


def words(text: str | None) -> list[str]:
    """What an option lists, separated by commas."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def where(data: Path | None, kafka: str | None) -> list[str]:
    """The options with which a command finds results that are not where it looks first."""
    return ["--kafka", kafka] if kafka is not None else ["--data", str(data)] if data is not None else []


def print_next(*words: object) -> None:
    """Name the next command, as a shell takes it."""
    out.print(f"Next: hearsay {shlex.join(map(str, words))}", soft_wrap=True, markup=False)


def print_json(data: Any) -> None:
    """Print JSON on standard output, without colours and wrapping."""
    print_json_parts([json.dumps(data, indent=2, ensure_ascii=not out.encoding.startswith("utf"), default=str)])


def print_json_parts(parts: Iterable[str]) -> None:
    """Print text that is JSON, and that is made in parts."""
    for part in parts:
        sys.stdout.write(printable_json(part))  # typer.echo would look for colours in all of it
    sys.stdout.write("\n")


@contextmanager
def progress(what: str) -> Iterator[Step]:
    """A progress bar on standard error; where that is not a terminal, a line every few seconds."""
    if not err.is_terminal:
        yield Lines()
        return
    from rich.progress import (  # takes time that programs that read the output do not need
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err, transient=True) as bars:
        task = bars.add_task(what, total=None)

        def step(done: int, total: int, what: str) -> None:
            bars.update(task, completed=done, total=total, description=what)

        yield step
