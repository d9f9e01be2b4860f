"""`hearsay edge`: turn events into reports as they come."""

from pathlib import Path
from typing import Annotated

import typer

from hearsay.commands.replay import moment_of
from hearsay.terminal import console


def edge(
    edge_file: Annotated[Path, typer.Argument(metavar="EDGE", show_default=False)],
    check: list[Path] | None = None,
    once: Annotated[bool, typer.Option("--once")] = False,
    end: Annotated[str | None, typer.Option(metavar="TIME")] = None,
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
    from hearsay.running.edging import Edging
    from hearsay.running.replaying import check_events
    from hearsay.terminal.replays import edge_json, inspection_json, show_edge, show_inspection
    from servers.logs import configure_logs

    edging = Edging.of(edge_file)
    if check:
        inspection = check_events(check, edging.survey, edging.options)
        if as_json:
            console.print_json(inspection_json(inspection))
        else:
            show_inspection(inspection, edging.survey.calendar)
        raise typer.Exit(1 if inspection.worst[1] else 0)
    until = None if end is None else moment_of("--end", end)
    configure_logs("WARNING" if once or until else log_level)
    state = edging.run(kafka, once or until is not None, until)
    if as_json:
        console.print_json(edge_json(state))
    else:
        show_edge(state)
        console.print_next("report", edging.survey.id, *console.where(edging.data, kafka))
