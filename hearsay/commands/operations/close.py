"""`hearsay close`: close periods by hand."""

from __future__ import annotations

from typing import Annotated

import typer

from hearsay.terminal import console


def close(
    survey: Annotated[str, typer.Argument(help="The id of a published survey.")],
    through: Annotated[int, typer.Option(help="The last period to close.", min=0)],
    kafka: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="The cluster, if not the one in HEARSAY_KAFKA_*.")
    ] = None,
    as_json: console.AsJson = False,
) -> None:
    """Close all periods of a survey up to and including one. Their results become final.

    Reports for them that arrive later are refused as late. Periods are closed automatically: at their end plus grace
    (clock: wall), or by the simulation or replay (clock: source). Use this command for other cases, such as a source
    that will not come back. It needs the operator's clock key, and cannot be undone.

    Example: hearsay close festival-week --through 6
    """
    from contextlib import closing
    from datetime import UTC, datetime

    from producers.sinks import KafkaSink
    from protocols.errors import SurveyError
    from protocols.survey import MAX_PERIOD
    from protocols.wire import CLOCK, Clock, encode_clock
    from servers.settings import load
    from stream_app.kafka import existing, published

    settings = load() if kafka is None else load().at(kafka)
    topics, key = existing(settings.kafka), settings.clock_key_bytes()
    known = published(settings.kafka, topics)
    if survey not in known:
        raise SurveyError(
            f"there is no survey {survey!r} on {settings.kafka.bootstrap}",
            f"known surveys: {', '.join(known) or 'none'}",
        )
    found = known[survey]
    begun = found.period_of(datetime.now(UTC)) if found.clock == "wall" else MAX_PERIOD
    if through > begun:
        raise SurveyError(
            f"period {through} of survey {survey!r} has not begun: if it were closed, all its reports would be refused",
            f"close through {begun} at most" if begun >= 0 else f"the survey begins at {found.start}",
        )
    with console.progress("closing"), closing(KafkaSink(settings.kafka, topics.reports)) as sink:
        for partition in range(sink.partitions):
            sink.send(partition, CLOCK, encode_clock(Clock(survey, through), key))
        sink.flush()
    if as_json:
        console.print_json({"survey": survey, "closed_through": through, "partitions": topics.partitions})
    else:
        console.out.print(f"[green]✓[/] {survey} is closed through period {through}")
