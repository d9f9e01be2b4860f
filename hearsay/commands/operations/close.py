"""`hearsay close`: close periods by hand."""

from __future__ import annotations

import sys
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from hearsay.terminal import console
from protocols.errors import SurveyError

if TYPE_CHECKING:
    from protocols.survey import Survey


def close(
    survey: Annotated[str, typer.Argument()],
    through: Annotated[int, typer.Option(min=0)],
    kafka: console.Kafka = None,
    yes: Annotated[bool, typer.Option("--yes")] = False,
    force: Annotated[bool, typer.Option("--force")] = False,
    as_json: console.AsJson = False,
) -> None:
    """Close all periods of a survey up to and including one. Their results become final.

    Reports for them that arrive later are refused as late. Periods are closed automatically: at their end plus grace
    (clock: wall), or by the simulation or replay (clock: source). Use this command for other cases, such as a source
    that will not come back. It needs the operator's clock key, asks first, and cannot be undone.

    Example: hearsay close festival-week --through 6 --yes
    """
    from hearsay.reports.files import next_period
    from producers.kafka_sink import KafkaSink
    from producers.sinks import SourceClock
    from servers.settings import load
    from stream_app.kafka import KafkaMessages, existing, published
    from views.reading import Results

    settings = load().at(kafka)
    topics, key = existing(settings.kafka), settings.clock_key_bytes()
    known = published(settings.kafka, topics)
    if survey not in known:
        raise SurveyError(
            f"there is no survey {survey!r} on {settings.kafka.bootstrap}",
            f"known surveys: {', '.join(known) or 'none'}",
        )
    closed = next_period(Results(KafkaMessages(settings.kafka, topics)), survey) - 1
    if through <= closed:
        raise SurveyError(f"survey {survey!r} is closed through period {closed} already", "close a later period")
    if not force:
        _refuse_future(known[survey].survey, through, closed)
    if not yes:
        if not sys.stdin.isatty():
            raise typer.BadParameter("closing cannot be undone: give --yes where nobody can be asked")
        question = f"Close periods {closed + 1} to {through} of {survey} for good? Reports that come later are refused"
        typer.confirm(question, abort=True)
    with console.progress("closing"), closing(KafkaSink(settings.kafka, topics.reports)) as sink:
        SourceClock(known[survey].survey, key, sink).finish(through)
    if as_json:
        facts = {"survey": survey, "through": through, "closed_before": closed, "partitions": topics.partitions}
        console.print_json(facts)
    else:
        console.out.print(
            f"[green]✓[/] periods {closed + 1} to {through} of {survey} are being closed: "
            "results become final when workers have read this",
            soft_wrap=True,
        )


def _refuse_future(survey: Survey, through: int, closed: int) -> None:
    """Refuse to close a period of which no report can have been counted: all its reports would be refused."""
    if survey.clock == "wall":
        last, why = survey.period_of(datetime.now(UTC)), "has not begun"
    else:
        last, why = closed + survey.ahead, f"is more than {survey.ahead} periods beyond {closed}, the last final one"
    if through > last:
        raise SurveyError(
            f"period {through} of survey {survey.id!r} {why}: if it were closed, all its reports would be refused",
            (f"close through {last} at most" if last >= 0 else f"the survey begins at {survey.start}")
            + ", or give --force if that is what you want",
        )
