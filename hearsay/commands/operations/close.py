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
    """Close all periods of a survey through one: their results become final, and later reports are late.

    Periods close by themselves at their end plus grace (clock: wall), or when the simulation or replay says so
    (clock: source). This is for the rest: a source that has gone for good, say. Needs the operator's clock key. It
    cannot be undone.

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
            f"there is no survey {survey!r} on {settings.kafka.bootstrap}", f"there is: {', '.join(known) or 'none'}"
        )
    terms = known[survey]
    begun = terms.period_of(datetime.now(UTC)) if terms.clock == "wall" else MAX_PERIOD
    if through > begun:
        raise SurveyError(
            f"period {through} of survey {survey!r} has not begun: its reports would be refused, for good",
            f"close through {begun} at most" if begun >= 0 else f"it begins at {terms.start}",
        )
    with console.progress("closing"), closing(KafkaSink(settings.kafka, topics.reports)) as sink:
        for partition in range(sink.partitions):
            sink.send(partition, CLOCK, encode_clock(Clock(survey, through), key))
        sink.flush()
    if as_json:
        console.print_json({"survey": survey, "closed_through": through, "partitions": topics.partitions})
    else:
        console.out.print(f"[green]✓[/] {survey} is closed through period {through}")
