"""`hearsay replay`: turn recorded events into reports."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from hearsay.terminal import console

if TYPE_CHECKING:
    from producers.replay import Rule


def replay(
    events: Annotated[Path, typer.Argument(help="A .csv (.csv.gz, .csv.zst) or .parquet file of events.")],
    survey_file: Annotated[Path, typer.Option("--survey", help="A survey file with clock: source.")],
    person: Annotated[str, typer.Option(help="The column with the person.")] = "person",
    time: Annotated[str, typer.Option(help="The column with the time: ISO 8601, or whole Unix seconds.")] = "time",
    mapping: Annotated[
        list[str] | None, typer.Option("--map", help="column=attribute, for each column with another name.")
    ] = None,
    choose: Annotated[
        list[str] | None, typer.Option(help="attribute=first, last or most: which value of a period to report. [last]")
    ] = None,
    tolerance: Annotated[str, typer.Option(help="How far events may be out of order, such as 15m or 2h.")] = "0s",
    zone: Annotated[str | None, typer.Option(help="The time zone of times without one, such as Europe/Paris.")] = None,
    until: Annotated[
        str | None, typer.Option(help="Events from this time on are faults (ISO 8601 with a zone). [now]")
    ] = None,
    speed: Annotated[
        float | None, typer.Option(help="Multiple of real time; as fast as possible if left out.", min=0.001)
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first faulty row.")] = False,
    delimiter: Annotated[str, typer.Option(help="The column separator of a CSV file.")] = ",",
    quotes: Annotated[bool, typer.Option(help="Whether cells of a CSV file may be quoted.")] = True,
    kafka: console.Kafka = None,
    capture: Annotated[Path | None, typer.Option(help="Write reports to this directory, for `hearsay send`.")] = None,
    partitions: Annotated[int, typer.Option(help="With --capture: partitions of the reports topic.", min=1)] = 8,
    data: Annotated[
        Path, typer.Option("--data", help="Directory for keys, memos and results. Run again to resume.")
    ] = Path("hearsay-data/replay"),
    as_json: console.AsJson = False,
) -> None:
    """Turn recorded events into one report per person and period, as a trusted edge does.

    Persons become device keys as they are read, and appear nowhere else; only noisy reports leave the process. Reports
    are counted in this process, sent with --kafka, or written to a directory with --capture. A summary shows how many
    rows were faulty, with the first line numbers of each fault. To resume after Ctrl-C or a crash, run the same command
    again.

    Example: hearsay replay events.csv --survey survey.yaml --person msisdn --time at --map cell=area --choose area=most
    """
    from hearsay.running.replaying import replay_events, show_summary, summary_json
    from hearsay.survey_files import read_survey
    from producers.replay import ColumnMapping, Options

    if kafka is not None and capture is not None:
        raise typer.BadParameter("choose one of --kafka and --capture")
    columns = {attribute: column for column, attribute in _pairs("--map", mapping)}
    options = Options(
        ColumnMapping(person, time, columns),
        _tolerance(tolerance),
        {attribute: _rule(name) for attribute, name in _pairs("--choose", choose)},
        _zone(zone),
        _moment(until),
        delimiter,
        quotes,
        strict,
    )
    survey = read_survey(survey_file)
    summary = replay_events(
        events, survey, options, data, speed=speed, kafka=kafka, capture=capture, partitions=partitions
    )
    if as_json:
        console.print_json(summary_json(summary))
    else:
        show_summary(summary)


def _pairs(option: str, given: list[str] | None) -> list[tuple[str, str]]:
    pairs = []
    for text in given or []:
        left, equals, right = text.partition("=")
        if not (left and equals and right):
            raise typer.BadParameter(f"{option}: {text!r} is not of the form left=right")
        pairs.append((left, right))
    return pairs


def _rule(name: str) -> Rule:
    from producers.replay import Rule

    try:
        return Rule(name)
    except ValueError:
        raise typer.BadParameter(f"--choose: {name!r} is not one of {', '.join(Rule)}") from None


def _tolerance(text: str) -> timedelta:
    from protocols.survey import parse_duration

    try:
        tolerance: timedelta = parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(f"--tolerance: {error}") from None
    return tolerance


def _zone(name: str | None) -> ZoneInfo | None:
    try:
        return None if name is None else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise typer.BadParameter(f"--zone: there is no time zone {name!r}; give one such as Europe/Paris") from None


def _moment(text: str | None) -> datetime:
    if text is None:
        return datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = datetime.min
    if moment.tzinfo is None:
        raise typer.BadParameter(f"--until: {text!r} is not a time with a zone, such as 2026-01-31T00:00:00Z")
    return moment
