"""`hearsay send`: send captured reports to Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hearsay.terminal import console


def send(
    directory: Annotated[Path, typer.Argument(help="The directory of a capture (replay --capture).")],
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

    sent, surveys = send_directory(directory, kafka)
    if as_json:
        console.print_json({**vars(sent), "published": surveys})
        return
    if surveys:
        console.out.print(f"Published {', '.join(surveys)}.")
    if sent.records:
        console.out.print(
            f"Sent {sent.records:,} records ({sent.bytes / 1e6:,.1f} MB). All {sent.of_files} files are sent."
        )
    else:
        console.out.print(f"Nothing to send: all {sent.of_files} files were sent before.")
