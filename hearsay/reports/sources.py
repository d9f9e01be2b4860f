"""Published results, read from a data directory or from a Kafka cluster."""

from __future__ import annotations

import time

from analytics.mobility import MobilityReport, combine, with_changes, with_shortfall
from hearsay.terminal.console import Step
from protocols.errors import ResultsError, ServerUnavailable
from views.reading import Results

POLL_SECONDS = 1.0
TIMEOUT_SECONDS = 90.0


def next_period(results: Results, survey: str) -> int:
    """The first period that is not final yet: an interrupted run continues there."""
    return max((key.period or 0 for key in results.finals(survey)), default=-1) + 1


def mobility_of(results: Results, survey: str, baseline: range | None = None) -> MobilityReport:
    """All mobility reports of a survey as one, with the late reports and the changes of each window.

    `baseline` are the periods that count as normal.
    """
    reports = results.mobility(survey)
    if not reports:
        raise ResultsError(
            f"no final result of survey {survey!r} is published",
            "a period becomes final when it is closed: wait for its end and grace, or see `hearsay close`",
        )
    live = results.live(survey)
    lates, lost = (live.lates, live.lost) if live else ({}, ())
    report = with_changes(with_shortfall(combine(reports), lates, lost), baseline)
    if baseline is not None and not any(window.baseline for window in report.windows):
        raise ResultsError(
            f"no report of periods {baseline[0]} to {baseline[-1]} is published that others could be compared with",
            f"published: periods {report.windows[0].first} to {max(window.last for window in report.windows)}",
        )
    return report


def wait_for_final(results: Results, survey: str, period: int, step: Step) -> None:
    """Wait until the results of a period are published.

    Raises ServerUnavailable if none are published for TIMEOUT_SECONDS.
    """
    changed, waiting_for = time.monotonic(), _next_published(results, survey)
    while waiting_for <= period:
        step(waiting_for, period + 1, "waiting for results")
        if time.monotonic() - changed > TIMEOUT_SECONDS:
            raise ServerUnavailable(
                f"period {waiting_for} of survey {survey!r} is sent and closed, but its result is not published",
                "start a worker on the same cluster (hearsay worker), then run this again: nothing is sent twice",
            )
        time.sleep(POLL_SECONDS)
        now = _next_published(results, survey)
        if now > waiting_for:
            changed, waiting_for = time.monotonic(), now


def _next_published(results: Results, survey: str) -> int:
    """The first period whose results are not all published."""
    return max(results.periods(survey), default=-1) + 1
