"""`hearsay views`: make results apart from workers. `hearsay sinks`: where results go."""

import signal
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from hearsay.terminal import console
from protocols.errors import SettingsError

app = typer.Typer(help="List, check and fill the sinks of results.", no_args_is_help=True)
SINK = "SINK"


def views(
    to: Annotated[list[str] | None, typer.Option(metavar=SINK)] = None,
    once: Annotated[bool, typer.Option("--once")] = False,
    log_level: console.LogLevel = "INFO",
) -> None:
    """Make results of what workers have counted, for topics and other sinks, until it is stopped.

    Workers make results for the topics, and for the sinks of HEARSAY_SINKS. This is a process that does nothing else:
    it needs no key, and no right to read reports. Without --to it writes to the topics. It keeps nothing: each sink
    says how far it is. It may be killed at any moment, and several at once are harmless.

    Needs the cluster of HEARSAY_KAFKA_*.

    Example: hearsay views --to topics --to sqlite:results.sqlite
    """
    from servers.logs import configure_logs
    from servers.settings import load
    from stream_app.kafka import KafkaMessages, Topics
    from views.following import TOPICS, following, opener
    from views.runner import backfill as fill

    kafka = load().kafka
    topics, sinks = Topics(kafka.prefix), to or [TOPICS]
    if once:
        configure_logs("WARNING")
        for sink in sinks:
            with closing(opener(sink, kafka, topics)()) as opened, console.progress("making results") as step:
                fill(KafkaMessages(kafka, topics), opened, step=lambda done, total: step(done, total, "reading finals"))
        return
    configure_logs(log_level)
    stopped = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: stopped.set())
    with following(kafka, topics, sinks):
        stopped.wait()


@app.command("list")
def list_sinks(as_json: console.AsJson = False) -> None:
    """Show the kinds of sinks, and the sinks of HEARSAY_SINKS.

    Example: hearsay sinks list
    """
    from servers.settings import load
    from views.sinks import SINKS

    used = load().sinks.split()
    if as_json:
        kinds = [{"sink": kind.address, "about": kind.about} for kind in SINKS]
        console.print_json({"kinds": kinds, "HEARSAY_SINKS": used})
        return
    table = Table("sink", "what it is", box=None, pad_edge=False)
    for kind in SINKS:
        table.add_row(escape(kind.address), kind.about)
    console.out.print(table)
    console.out.print(f"\nHEARSAY_SINKS: {escape(' '.join(used)) or 'none'}", soft_wrap=True)


@app.command("check")
def check_sink(
    sink: Annotated[str, typer.Argument(metavar=SINK, show_default=False)],
    as_json: console.AsJson = False,
) -> None:
    """Open a sink, see whether it can be written, and show through which period of each survey it is complete.

    Example: hearsay sinks check sqlite:results.sqlite
    """
    from views.sinks import open_sink

    with console.progress("opening the sink"), closing(open_sink(sink)) as opened:
        complete = opened.complete()
    if as_json:
        console.print_json({"sink": sink, "complete": complete})
        return
    console.out.print(f"[green]✓[/] {escape(sink)} can be written", soft_wrap=True)
    _show(complete)
    if not complete:
        console.out.print("  it has no results of this version yet: hearsay sinks backfill", soft_wrap=True)


@app.command("backfill")
def backfill_sink(
    to: Annotated[str, typer.Option(metavar=SINK, show_default=False)],
    data: Path | None = None,
    kafka: console.Kafka = None,
    survey: Annotated[str | None, typer.Option(metavar="ID")] = None,
    as_json: console.AsJson = False,
) -> None:
    """Make all results that a sink lacks, from finals: after it was down, or if it is new or of another version.

    What the sink is complete with is not made again. It may be stopped, and started again.

    Example: hearsay sinks backfill --data hearsay-data/demo --to sqlite:results.sqlite
    """
    from hearsay.reports.files import chosen, open_results
    from servers.logs import configure_logs
    from views.runner import backfill
    from views.sinks import open_sink

    if (data is None) == (kafka is None):
        raise SettingsError("one of --data and --kafka is needed", "name where the finals are")
    configure_logs("WARNING")
    with (
        open_results(survey, data, kafka) as (results, _),
        closing(open_sink(to)) as opened,
        console.progress("filling the sink") as step,
    ):
        wanted = None if survey is None else [chosen(results, survey).id]
        made = backfill(results.store, opened, wanted, lambda done, total: step(done, total, "finals"))
        complete = opened.complete()
    if as_json:
        console.print_json({"sink": to, "periods": made, "complete": complete})
        return
    written = f"results of {made:,} periods written to" if made else "nothing to write to"
    console.out.print(f"[green]✓[/] {written} {escape(to)}", soft_wrap=True)
    _show(complete)


def _show(complete: Mapping[str, int]) -> None:
    for survey, period in sorted(complete.items()):
        console.out.print(f"  {survey}: complete through period {period}")
