"""`hearsay deadletters`: what was refused and why, and sending it again."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from hearsay.commands.replay import one_of
from hearsay.terminal import console
from producers.stopping import Stop, ctrl_c_asks
from protocols.errors import SettingsError, Stopped, SurveyError, counted

if TYPE_CHECKING:
    from protocols.wire import Reason
    from servers.settings import KafkaSettings
    from stream_app.kafka import DeadLetter

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
AT_ONCE = 500
"""After how many records they are confirmed and noted: so many may be sent twice if the process is killed."""


@dataclass
class Group:
    """The dead letters of one reason and one survey ("" where it could not be read)."""

    reason: Reason
    survey: str
    oldest: datetime
    newest: datetime
    records: int = 0
    rows: int = 0
    resubmitted: int = 0  # of the records


@dataclass
class Resubmission:
    """What was sent again; and what was not, because it would be refused again: rows by the reason, and the surveys."""

    records: int = 0
    rows: int = 0
    clocks: int = 0
    before: int = 0  # records that were sent again earlier
    kept: Counter[Reason] = field(default_factory=Counter)
    unknown: set[str] = field(default_factory=set)


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
    from protocols.wire import Reason
    from servers.settings import load

    chosen = None if reason is None else one_of(Reason, "--reason", reason)
    with console.progress("reading dead letters") as step:
        groups = _summarise(load().at(kafka).kafka, chosen, survey, step)
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
    from protocols.wire import Reason
    from servers.settings import load

    chosen = one_of(Reason, "--reason", reason)
    if chosen not in PASSING:
        raise SettingsError(
            f"records that were refused as {chosen} would be refused again",
            f"reasons that can pass are {' and '.join(PASSING)}",
        )
    with console.progress("reading dead letters") as step, ctrl_c_asks() as stop:
        done = _sent(load().at(kafka).kafka, chosen, survey, step, stop)
    if not done.records and done.unknown:
        raise SurveyError(
            f"nothing was sent: no survey {', '.join(sorted(done.unknown))} is published",
            "publish it (`hearsay survey publish FILE`), then run this again",
        )
    if as_json:
        kept = {reason.value: rows for reason, rows in done.kept.items()}
        console.print_json({**asdict(done), "kept": kept, "unknown": sorted(done.unknown)})
    else:
        _show(done, chosen)
    if done.kept and not done.records:
        raise typer.Exit(1)


def _summarise(kafka: KafkaSettings, reason: Reason | None, survey: str | None, step: console.Step) -> list[Group]:
    """The dead letters by reason and survey, the largest group first."""
    from stream_app.kafka import dead_letters, existing

    resubmitted: set[str] = set()
    groups: dict[tuple[Reason, str], Group] = {}
    keys: dict[str, Group] = {}
    for letter in dead_letters(kafka, existing(kafka), resubmitted):
        if not _wanted(letter, reason, survey):
            continue
        place = letter.reason, letter.survey
        group = groups.setdefault(place, Group(*place, letter.at, letter.at))
        group.records += 1
        group.rows += 0 if letter.is_clock else letter.rows
        group.newest = max(group.newest, letter.at)
        keys[letter.key] = group
        step(len(keys), len(keys), "dead letters")
    for key in resubmitted & keys.keys():
        keys[key].resubmitted += 1
    return sorted(groups.values(), key=lambda group: -group.rows)


def _sent(kafka: KafkaSettings, reason: Reason, survey: str | None, step: console.Step, stop: Stop) -> Resubmission:
    """Send the dead letters of a reason to the reports topic again, each to its partition and in its order.

    Letters that would be refused again are not sent. Tokens see to it that no report is counted twice, also if the
    process is killed between sending letters and noting it.
    """
    from producers.kafka_sink import KafkaSink
    from protocols.wire import Reason
    from stream_app.kafka import RESUBMITTED, Refusals, dead_letters, existing, last_finals, noted, published

    topics = existing(kafka)
    resubmitted, done = set[str](), Resubmission()
    total = sum(_wanted(letter, reason, survey) for letter in dead_letters(kafka, topics, resubmitted))
    refusals = Refusals(published(kafka, topics), last_finals(kafka, topics))
    waiting: list[DeadLetter] = []
    with closing(KafkaSink(kafka, topics.reports)) as sink, closing(KafkaSink(kafka, topics.deadletters)) as notes:

        def confirm() -> None:
            sink.flush()
            if waiting:
                notes.send(0, RESUBMITTED, noted([letter.key for letter in waiting]))
                notes.flush()
            waiting.clear()

        wanted = (letter for letter in dead_letters(kafka, topics, set()) if _wanted(letter, reason, survey))
        # Letters that are written meanwhile are left for the next time: they may be answers to what is sent here.
        for number, letter in enumerate(islice(wanted, total), start=1):
            if stop():
                confirm()
                raise Stopped(f"stopped after {number - 1} of {total} dead letters", "run it again to continue there")
            if letter.key in resubmitted:
                done.before += 1
                continue
            refusal = refusals.of(letter)
            if refusal is not None:
                done.kept[refusal] += 0 if letter.is_clock else letter.rows
                if refusal is Reason.UNKNOWN_SURVEY:
                    done.unknown.add(letter.survey)
                continue
            # A period must not be closed before it is noted that its reports were sent: sent once more, they would be
            # late, and results would show them as missing.
            if len(waiting) >= AT_ONCE or (letter.is_clock and waiting and not waiting[-1].is_clock):
                confirm()
            sink.send(letter.partition, letter.content_type, letter.value)
            waiting.append(letter)
            done.records += 1
            done.clocks += letter.is_clock
            done.rows += 0 if letter.is_clock else letter.rows
            step(number, total, f"{done.rows:,} reports sent again")
        confirm()
    return done


def _wanted(letter: DeadLetter, reason: Reason | None, survey: str | None) -> bool:
    return reason in (None, letter.reason) and survey in (None, letter.survey)


def _show(done: Resubmission, reason: Reason) -> None:
    if done.records:
        closing = f" and {done.clocks:,} clock records" if done.clocks else ""
        console.out.print(
            f"Sent {counted(done.rows, 'report')}{closing} again. Workers count those that they did not count before."
        )
    elif not done.kept:
        before = f" {done.before:,} records were sent again before." if done.before else ""
        console.out.print(f"There is nothing to send again as {reason}.{before}")
    for why, rows in done.kept.items():
        console.out.print(f"Not sent: {counted(rows, 'report')}, because {STILL[why]}.")
