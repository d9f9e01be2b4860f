"""How hearsay speaks to people and to programs: one console, one progress bar, one way to print JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Protocol

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

Kafka = Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Let the workers of this Kafka cluster count.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a program instead of tables for people.")]


class Step(Protocol):
    """Tell the user how far it is: `done` of `total`, doing `what`."""

    def __call__(self, done: int, total: int, what: str) -> None: ...


def print_json(data: Any) -> None:
    """JSON on standard output, as it is: no colours, no wrapping."""
    typer.echo(json.dumps(data, indent=2, ensure_ascii=False, default=str))


@contextmanager
def progress(what: str) -> Iterator[Step]:
    """A progress bar on standard error for anything longer than a second; plain silence when nobody watches."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bars:
        task = bars.add_task(what, total=None)

        def step(done: int, total: int, what: str) -> None:
            bars.update(task, completed=done, total=total, description=what)

        yield step
