"""`hearsay replay` and `hearsay edge`: turn events into reports. `hearsay send`: send those that were captured."""

from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from hearsay.terminal import console

Parsed = TypeVar("Parsed")
NO_ZONE = "there is no time zone {!r}; give one such as Europe/Paris"


def replay(
    events: Annotated[list[Path], typer.Argument()],
    survey_file: Annotated[Path, typer.Option("--survey")],
    person: str = "person",
    time: str = "time",
    mapping: Annotated[list[str] | None, typer.Option("--map")] = None,
    position: list[str] | None = None,
    metres: Annotated[bool, typer.Option("--metres")] = False,
    choose: list[str] | None = None,
    tolerance: str = "0s",
    any_order: Annotated[bool, typer.Option("--any-order")] = False,
    zone: str | None = None,
    offset: str | None = None,
    repeated: str = "refuse",
    time_format: list[str] | None = None,
    until: str | None = None,
    speed: Annotated[float | None, typer.Option(min=0.001)] = None,
    forget_after: str | None = None,
    check: Annotated[bool, typer.Option("--check")] = False,
    most_faults: str = "5%",
    strict: Annotated[bool, typer.Option("--strict")] = False,
    delimiter: str = ",",
    quotes: bool = True,
    encoding: str = "utf-8",
    kafka: console.Kafka = None,
    capture: Path | None = None,
    partitions: Annotated[int, typer.Option(min=1)] = 8,
    data: console.Data = None,
    as_json: console.AsJson = False,
) -> None:
    """Turn recorded events into one report per person and period, as a trusted edge does.

    Persons become device keys as they are read, and appear nowhere else; only noisy reports leave the process. Reports
    are counted in this process, sent with --kafka, or written to a directory with --capture. What was reported cannot
    be taken back, so the beginning of each file is looked at first: with too many faults nothing is sent, and the
    options that help are named. A summary shows how many rows were faulty, with the first line numbers of each fault.
    To resume after Ctrl-C or a crash, run the same command again.

    Whoever has the fleet key and the reports has the true values. With --forget-after, from the first replay of a
    survey on, the noise of a period cannot be computed again that long after its end, by event time.

    Example: hearsay replay events.csv --survey survey.yaml --person msisdn --time at --map cell=area --choose area=most
    """
    with console.progress("starting"):  # to import these takes seconds
        from hearsay.data_directory import directory_of
        from hearsay.reports.page import keep_areas, read_areas
        from hearsay.running.replaying import check_events, replay_events
        from hearsay.survey_files import counted_at, read_survey
        from hearsay.terminal.replays import show_inspection, show_summary
        from producers.events import ANY_ORDER, Options, Rule
        from producers.files import ColumnMapping, FileFormat, Repeated
        from protocols.survey import parse_duration
        from servers.logs import configure_logs

    configure_logs("WARNING")
    if kafka is not None and capture is not None:
        raise typer.BadParameter("choose one of --kafka and --capture")
    survey = read_survey(survey_file, counted_at(data, kafka, capture))
    columns = {attribute: column for column, attribute in _pairs("--map", mapping)}
    named = zone or (survey.time_zone.name if survey.time_zone else None)
    options = Options(
        ColumnMapping(person, time, columns, positions_of(position), metres, offset),
        ANY_ORDER if any_order else _parsed("--tolerance", parse_duration, tolerance),
        {attribute: one_of(Rule, "--choose", name) for attribute, name in _pairs("--choose", choose)},
        None if named is None else _parsed("--zone", ZoneInfo, named, NO_ZONE.format(named)),
        one_of(Repeated, "--repeated", repeated),
        datetime.now(UTC) if until is None else moment_of("--until", until),
        FileFormat(delimiter, quotes, encoding),
        time_format or (),
        strict,
        _parsed("--most-faults", _share, most_faults, f"{most_faults!r} is not a share, such as 5% or 0.05"),
        speed,
    )
    if check:
        inspection = check_events(events, survey, options)
        show_inspection(inspection, survey.calendar, as_json)
        raise typer.Exit(1 if inspection.worst[1] > options.most_faults else 0)
    areas = read_areas(survey_file, survey) if capture is None else None
    summary = replay_events(
        events,
        survey,
        options,
        directory_of(survey.id, data),
        kafka=kafka,
        captured=None if capture is None else (capture, partitions),
        forget_after=None if forget_after is None else _parsed("--forget-after", parse_duration, forget_after),
    )
    keep_areas(areas, survey, directory_of(survey.id, data))
    show_summary(summary, as_json)
    if not as_json:
        following = ("report", survey.id, *console.where(data, kafka)) if capture is None else ("send", capture)
        console.print_next(*following)


def edge(
    edge_file: Annotated[Path, typer.Argument(metavar="EDGE", show_default=False)],
    check: list[Path] | None = None,
    once: Annotated[bool, typer.Option("--once")] = False,
    end: Annotated[str | None, typer.Option(metavar="TIME")] = None,
    most_faults: str = "5%",
    kafka: console.Kafka = None,
    as_json: console.AsJson = False,
    log_level: console.LogLevel = "INFO",
) -> None:
    """Turn events into one report per person and period, as they come to a topic or as files in a directory.

    A period is sent when an event was read that is later than its end by the lateness. What is open until then is
    sealed under the fleet's key, and erased when it is sent. The edge may be killed at any moment: started again, it
    goes on, each event counts once, and each person reports a period at most once. Reports are counted in this process,
    or sent with --kafka. Run it on a machine that you trust: it reads the true values.

    Example: hearsay edge edge.yaml --check sample.csv
    """
    from hearsay.running.replaying import check_events, read_edge, run_edge
    from hearsay.terminal.replays import show_edge, show_inspection
    from servers.logs import configure_logs

    declared, survey, options = read_edge(edge_file, kafka)
    if check:
        inspection = check_events(check, survey, options)
        show_inspection(inspection, survey.calendar, as_json)
        raise typer.Exit(1 if inspection.worst[1] else 0)
    until = None if end is None else moment_of("--end", end)
    configure_logs("WARNING" if once or until else log_level)
    bounded = once or until is not None
    permitted = _parsed("--most-faults", _share, most_faults, f"{most_faults!r} is not a share, such as 5% or 0.05")
    ran = run_edge(declared, survey, edge_file.parent, kafka, bounded, until)
    show_edge(ran.state, as_json)
    if bounded:
        ran.require_few_faults(permitted)
    if not as_json:
        console.print_next("report", survey.id, *console.where(edge_file.parent / declared.data, kafka))


def send(
    directory: Annotated[Path, typer.Argument()],
    kafka: console.Kafka = None,
    as_json: console.AsJson = False,
) -> None:
    """Send captured reports to a Kafka cluster: that of --kafka, or that of HEARSAY_KAFKA_*.

    The capture carries its survey: if that is not published yet, it is published first. If other terms are published
    under its id, nothing is sent, because all reports would be refused.

    Files are sent in order, and recorded as sent when the cluster has confirmed them. After Ctrl-C or a crash, run it
    again: it resumes with the first file that was not confirmed. A report that is sent twice is counted once.

    Example: hearsay send captured/
    """
    from hearsay.running.replaying import send_directory
    from protocols.errors import counted

    sent, surveys = send_directory(directory, kafka)
    if as_json:
        console.print_json({**vars(sent), "published": surveys})
        return
    if surveys:
        console.out.print(f"Published {', '.join(surveys)}.")
    if sent.records:
        console.out.print(
            f"Sent {counted(sent.records, 'record')} ({sent.bytes / 1e6:,.1f} MB). All {sent.of_files} files are sent."
        )
    else:
        console.out.print(f"Nothing to send: all {sent.of_files} files were sent before.")


def _pairs(option: str, given: list[str] | None) -> list[tuple[str, str]]:
    pairs = []
    for text in given or []:
        left, equals, right = text.partition("=")
        if not (left and equals and right):
            raise typer.BadParameter(f"{option}: {text!r} is not of the form left=right")
        pairs.append((left, right))
    return pairs


def positions_of(given: list[str] | None) -> dict[str, tuple[str, str]]:
    """The two columns of each attribute's position."""
    found = {}
    for text, attribute in _pairs("--position", given):
        first, comma, second = text.partition(",")
        if not (first and comma and second):
            raise typer.BadParameter(f"--position: {text!r} does not name two columns, such as lat,lon=place")
        found[attribute] = first, second
    return found


def _parsed(option: str, parse: Callable[[str], Parsed], text: str, wrong: str = "") -> Parsed:
    """What the text of an option means. Otherwise it is `wrong`, or what `parse` says."""
    try:
        return parse(text)
    except (ValueError, ZoneInfoNotFoundError) as error:
        raise typer.BadParameter(f"{option}: {wrong or error}") from None


def one_of(choices: type[StrEnum], option: str, name: str) -> Any:
    """The choice that the text of an option names."""
    return _parsed(option, choices, name, f"{name!r} is not one of {', '.join(choices)}")


def _share(text: str) -> float:
    share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if not 0 <= share <= 1:
        raise ValueError(text)
    return share


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(text)
    return moment


def moment_of(option: str, text: str) -> datetime:
    """A time with a zone, from the text of an option."""
    return _parsed(option, _moment, text, f"{text!r} is not a time with a zone, such as 2026-01-31T00:00:00Z")
