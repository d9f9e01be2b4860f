"""Synthetic records from results where they are published: a data directory, or a Kafka cluster."""

from __future__ import annotations

from pathlib import Path

from hearsay.learning.synthesizing import Synthesis, synthesize
from hearsay.reports.files import chosen, latest, narrowed, open_results
from hearsay.reports.sources import mobility_of


def follow(
    survey: str | None, data: Path | None, kafka: str | None, window: tuple[int, int] | None, rows: int, seed: int
) -> Synthesis:
    """So many records that follow the window from one period to another; None: the last final."""
    with open_results(survey, data, kafka) as (results, _):
        report = mobility_of(results, chosen(results, survey).id)
    return synthesize(report, latest(report if window is None else narrowed(report, *window)), rows, seed)
