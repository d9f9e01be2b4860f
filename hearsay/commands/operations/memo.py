"""`hearsay memo`: what the memo store holds and devices have spent; accepting a loss of its history."""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from hearsay.terminal import console
from protocols.errors import SettingsError, counted

if TYPE_CHECKING:
    from hearsay.data_directory import DataDirectory
    from memo_store.ledger import QuestionStats, StoreStats, SurveyStats
    from servers.settings import Settings

app = typer.Typer(help="Show the memo store, and accept a loss of its history.", no_args_is_help=True)

Data = Annotated[Path | None, typer.Option("--data", show_default="the only one in hearsay-data")]
QUANTILES = {"half of the devices": 0.5, "90 %": 0.9, "99 %": 0.99, "all": 1.0}
BARS, BAR_WIDTH = 10, 30


@app.command()
def stats(data: Data = None, as_json: console.AsJson = False) -> None:
    """Show how much of their budget devices have spent, how many are at their cap, and how large the store is.

    Memos belong to questions. Surveys that ask the same share them, and what they cost is shown once.

    It needs no key: everybody who may read the Redis can see this. If the devices of the data directory have their
    memos in another store, it is refused, and the message names that store.

    Example: hearsay memo stats --data hearsay-data/festival-week
    """
    from hearsay.running.memo_storage import memo_store, noted_store

    directory, settings = _opened(data)
    if directory is not None and settings.redis.url is None:
        used = noted_store(directory) is not None or (directory.root / "redis").is_dir()
        if not used:
            raise SettingsError(f"{directory.root} has no memo store", "set HEARSAY_REDIS_URL if theirs is there")
    with memo_store(directory, settings) as store, console.progress("reading the store"):
        found = store.stats()
    if as_json:
        console.print_json(asdict(found))
    else:
        _show(found)


@app.command()
def accept_loss(
    data: Data = None,
    nothing_lost: Annotated[bool, typer.Option("--nothing-lost")] = False,
    yes: Annotated[bool, typer.Option("--yes")] = False,
) -> None:
    """Begin a new history: accept that the record of what devices memoised is lost. Or confirm that nothing was lost.

    A survey with a memo_cap is refused while the store does not know how many values its devices have memoised. After
    this command, devices may memoise up to their caps once more: what plans and results state for the cap no longer
    holds for devices that memoised values before the loss; the figures without the cap do. The store and the data
    directory note the loss: reports that are read with the directory then show the figures without the cap. Memos do
    not change: they are derived from the devices' keys.

    For a new Redis use --nothing-lost: its history is confirmed and goes on, and caps hold.

    A data directory refuses every store but the one that its devices have used. With --data, it accepts this store from
    now on, and windows that go back before the next report are marked, because presence is lost.

    Example: hearsay memo accept-loss --data hearsay-data/festival-week
    """
    from hearsay.running.memo_storage import accept_loss, address, memo_store, noted_store

    directory, settings = _opened(data)
    with memo_store(directory, settings, or_another=True) as store:
        known = noted_store(directory)
        other = known if known is not None and known.id != store.id else None
        if nothing_lost:
            if other is not None:
                raise SettingsError(
                    f"the devices of {other.root} have memos in {other.where}, which this store does not have",
                    "accept the loss: leave out --nothing-lost",
                )
            store.confirm_history()
            console.out.print("The history is confirmed. Surveys with a memo_cap are accepted.")
            return
        if other is not None:
            console.out.print(
                f"The devices of {other.root} have their memos in {other.where}. From now on they use "
                f"{address(settings, store)}, which does not have these memos.",
                markup=False,
            )
        if not yes:
            typer.confirm("Devices may memoise up to their caps once more. Begin a new history?", abort=True)
        accept_loss(directory, settings, store)
    console.out.print("A new history has begun. Surveys with a memo_cap are accepted.")


def _opened(data: Path | None) -> tuple[DataDirectory | None, Settings]:
    """The data directory, or none if only HEARSAY_REDIS_URL names the store; and the settings."""
    from hearsay.data_directory import DataDirectory, known_directory
    from servers.logs import configure_logs
    from servers.settings import load

    configure_logs("WARNING")
    settings = load()
    if data is None and settings.redis.url is not None:
        return None, settings
    root = data or known_directory(None)
    if not root.exists():
        raise SettingsError(f"there is no data directory {root}", "name one with --data, or set HEARSAY_REDIS_URL")
    return DataDirectory(root), settings


def _show(found: StoreStats) -> None:
    durability = found.durability
    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_row("size", f"{found.memory / 1e6:.1f} MB in {found.keys} keys")
    unconfirmed = "not confirmed: surveys with a cap are refused"
    facts.add_row("history", "confirmed complete" if found.history_confirmed else unconfirmed)
    if found.has_lost_data:
        facts.add_row("losses", "it has lost data: no memo_cap bounds what its devices have memoised")
    if durability.append_only:
        facts.add_row("persistence", "append-only file" + (f", synced: {durability.fsync}" if durability.fsync else ""))
    for warning in durability.warnings():
        facts.add_row("[yellow]warning[/]", warning)
    console.out.print(facts)
    for survey in found.surveys:
        reported = f"{counted(survey.devices, 'device')}, {counted(survey.reports, 'report')} delivered"
        console.out.print(f"\n[bold]{survey.survey}[/]  {reported}")
        for name, capped in survey.at_cap.items():
            console.out.print(f"{name}: {counted(capped, 'device')} at the cap")
        if survey.spent:
            _show_spent(survey)
    for question in found.questions:
        memos = ", ".join(f"{count:,} memos of {name}" for name, count in question.memos.items())
        devices = counted(question.devices, "device")
        console.out.print(f"\n[bold]question {question.question[:8]}[/]  {memos}, of {devices}")
        console.out.print(f"asked by {', '.join(question.surveys)}")
        _show_spent(question)


def _show_spent(stats: SurveyStats | QuestionStats) -> None:
    shares = ", ".join(f"{stats.quantile(share):.3g} ({name})" for name, share in QUANTILES.items())
    console.out.print(f"budget spent, at most: {shares}")
    console.out.print(_bars(stats))
    console.out.print(f"[dim]({stats.meaning})[/]")


def _bars(stats: SurveyStats | QuestionStats) -> Table:
    """How many devices have spent how much: by amount, or by range where there are many amounts."""
    import numpy as np

    amounts, devices = np.array(stats.spent or ((0.0, 0),)).T
    labels = [f"{amount:.3g}" for amount in amounts]
    if len(amounts) > BARS:
        devices, edges = np.histogram(amounts, bins=BARS, weights=devices)
        labels = [f"{low:.3g} to {high:.3g}" for low, high in pairwise(edges)]
    table = Table("spent", "devices", "", box=None, pad_edge=False)
    for label, count in zip(labels, devices, strict=True):
        table.add_row(label, f"{int(count):,}", "█" * round(BAR_WIDTH * count / max(1, stats.devices)))
    return table
