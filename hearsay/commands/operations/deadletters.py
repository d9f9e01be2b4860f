"""`hearsay deadletters`: what was refused and why, and sending it again."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from hearsay.terminal import console
from protocols.errors import SettingsError, SurveyError, counted

if TYPE_CHECKING:
    from hearsay.commands.operations.resubmitting import Resubmission
    from protocols.wire import Reason

app = typer.Typer(help="List refused records, and send them again.", no_args_is_help=True)

# The reasons that can pass. A record that was refused for another one would be refused again for ever.
PASSING = ("unknown-survey", "too-far-ahead")
STILL = {
    "late": "their period is closed, and its result does not change",
    "unknown-survey": "their survey is not published",
    "wrong-fingerprint": "they were made under other terms than are published",
    "too-far-ahead": "their period is still too far ahead",
    "undecodable": "they cannot be read",
}


@app.command(name="list")
def list_(
    reason: str | None = None,
    survey: str | None = None,
    kafka: console.Kafka = None,
    as_json: console.AsJson = False,
) -> None:
    """Show refused records by reason and survey: how many, with how many reports, since when, how many sent again.

    Records that were refused stay on the dead-letter topic for as long as its retention.

    Example: hearsay deadletters list
    """
    from hearsay.commands.operations.resubmitting import summarise
    from servers.settings import load

    chosen = None if reason is None else _reason(reason)
    with console.progress("reading dead letters") as step:
        groups = summarise(load().at(kafka).kafka, chosen, survey, step)
    if as_json:
        console.print_json([asdict(group) for group in groups])
        return
    if not groups:
        console.out.print("There are no dead letters.")
        return
    table = Table("reason", "survey", "records", "reports", "sent again", "from", "to", box=None, pad_edge=False)
    for group in groups:
        numbers = (f"{number:,}" for number in (group.records, group.rows, group.resubmitted))
        times = (f"{moment:%Y-%m-%d %H:%M}Z" for moment in (group.oldest, group.newest))
        table.add_row(group.reason, group.survey or "–", *numbers, *times)
    console.out.print(table)
    for passing in PASSING:
        if any(group.reason == passing and group.resubmitted < group.records for group in groups):
            console.print_next("deadletters", "resubmit", "--reason", passing)


@app.command()
def resubmit(
    reason: Annotated[str, typer.Option()],
    survey: str | None = None,
    kafka: console.Kafka = None,
    as_json: console.AsJson = False,
) -> None:
    """Send refused records again, after the cause is gone: the survey is published, or its periods have come.

    Each record goes to its partition, in its old order, with its old bytes. A report is counted once, however often it
    is sent. Records that would be refused again stay dead letters, and it is said why; so do all of closed periods,
    whose results do not change. What was sent again is noted. After Ctrl-C or a crash, run it again.

    Example: hearsay deadletters resubmit --reason unknown-survey
    """
    from hearsay.commands.operations.resubmitting import resubmit as send_again
    from producers.stopping import ctrl_c_asks
    from servers.settings import load

    chosen = _reason(reason)
    if chosen not in PASSING:
        raise SettingsError(
            f"records that were refused as {chosen} would be refused again",
            f"reasons that can pass are {' and '.join(PASSING)}",
        )
    with console.progress("reading dead letters") as step, ctrl_c_asks() as stop:
        done = send_again(load().at(kafka).kafka, chosen, survey, step, stop)
    if not done and done.unknown:
        raise SurveyError(
            f"nothing was sent: no survey {', '.join(sorted(done.unknown))} is published",
            "publish it (`hearsay survey publish FILE`), then run this again",
        )
    if as_json:
        kept = {reason.value: rows for reason, rows in done.kept.items()}
        console.print_json({**asdict(done), "kept": kept, "unknown": sorted(done.unknown)})
    else:
        _show(done, chosen)
    if done.kept and not done:
        raise typer.Exit(1)


def _show(done: Resubmission, reason: Reason) -> None:
    if done:
        closing = f" and {done.clocks:,} clock records" if done.clocks else ""
        console.out.print(
            f"Sent {counted(done.rows, 'report')}{closing} again. Workers count those that they did not count before."
        )
    elif not done.kept:
        before = f" {done.before:,} records were sent again before." if done.before else ""
        console.out.print(f"There is nothing to send again as {reason}.{before}")
    for why, rows in done.kept.items():
        console.out.print(f"Not sent: {counted(rows, 'report')}, because {STILL[why]}.")


def _reason(text: str) -> Reason:
    from protocols.wire import Reason

    try:
        return Reason(text)
    except ValueError:
        raise typer.BadParameter(f"--reason: {text!r} is not one of {', '.join(Reason)}") from None
