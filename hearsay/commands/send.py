"""`hearsay send`: captured reports go to Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hearsay.terminal import console


def send(
    directory: Annotated[Path, typer.Argument(help="A directory that reports were captured into.")],
    kafka: console.Kafka = None,
    as_json: console.AsJson = False,
) -> None:
    """Send captured reports to a Kafka cluster: the one named, or the one in HEARSAY_KAFKA_*.

    Files are sent in order and noted when the cluster has them. After Ctrl-C or a crash, run it again: it goes on with
    the file that was not confirmed, and what was sent twice is counted once.

    Example: hearsay send captured/
    """
    from hearsay.running.replaying import send_directory

    sent = send_directory(directory, kafka)
    if as_json:
        console.print_json(vars(sent))
    else:
        console.out.print(f"{sent.records:,} records sent ({sent.bytes / 1e6:,.1f} MB); all {sent.of_files} files are")
