"""The health of a worker and its metrics, for Prometheus: how much and how fast, and nothing about any answer.

Surveys with `presence_epsilon` have no metrics that count reports or tokens: these numbers are exact.
"""

import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from faust.types import TP
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from protocols.wire import Lookup
from stream_app.counting.partition_counter import Changes, PartitionCounter
from stream_app.counting.state import Period
from stream_app.log.log_reader import LogReader
from stream_app.log.marks import LogFault

STUCK_SECONDS = 120.0
"""A worker that has done nothing for so long does not live. Compiling loops at the first start may take a minute."""
CHECKS = ("sum", "widths", "negativity", "jump", "flow")

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)

REPORTS = Counter(
    "hearsay_reports", "Reports by survey and what became of them", ["survey", "outcome"], registry=REGISTRY
)
PASSED_OVER = Counter(
    "hearsay_passed_over_records", "Records of surveys that are quarantined", ["survey"], registry=REGISTRY
)
FINALS = Counter("hearsay_finals", "Periods made final", ["survey"], registry=REGISTRY)
FLUSH_SECONDS = Histogram("hearsay_flush_seconds", "How long a flush took, all stages", ["table"], registry=REGISTRY)
RECOVERY_SECONDS = Gauge(
    "hearsay_recovery_seconds", "From the last assignment of partitions until reading on", ["table"], registry=REGISTRY
)

REFUSED_RESULTS = Counter(
    "hearsay_refused_results", "Results that could not be made, by survey", ["survey"], registry=REGISTRY
)
FORECAST = Counter("hearsay_forecast_numbers", "Published numbers with a forecast", ["survey"], registry=REGISTRY)
UNEXPECTED = Counter("hearsay_unexpected", "Those outside its 99 % interval", ["survey"], registry=REGISTRY)
CONTRADICTED = Gauge(
    "hearsay_contradicted",
    "Attributes whose newest final does not fit honest devices, by check",
    ["survey", "check"],
    registry=REGISTRY,
)

Outcomes = Tally[tuple[str, str]]  # rows by survey and outcome
_last_final: dict[str, float] = {}


def outcomes_of(changes: Changes) -> Outcomes:
    """The rows that were counted and refused."""
    rows: Outcomes = Tally({(changes.survey, "counted"): changes.counted})
    return rows + Tally({(changes.survey, reason.value): refused for reason, refused in changes.refused.items()})


def note_outcomes(outcomes: Outcomes) -> None:
    """Add what became of reports to the metrics, once it is written: then nobody counts it again."""
    for (survey, outcome), rows in outcomes.items():
        REPORTS.labels(survey, outcome).inc(rows)


def note_passed_over(reader: LogReader, lookup: Lookup) -> None:
    """Add the records that were passed over to the metrics."""
    passed, reader.passed_over = reader.passed_over, Tally()
    for survey, records in passed.items():
        scheme = lookup(survey)
        if scheme is None or scheme.presence is None:
            PASSED_OVER.labels(survey).inc(records)


def note_finals(finals: Iterable[Period]) -> None:
    for survey, _ in finals:
        FINALS.labels(survey).inc()
        _last_final[survey] = time.monotonic()


def note_refused_result(survey: str) -> None:
    """A result of a period was refused: nothing of the period is published."""
    REFUSED_RESULTS.labels(survey).inc()


def note_forecasts(survey: str, numbers: int, unexpected: int) -> None:
    FORECAST.labels(survey).inc(numbers)
    UNEXPECTED.labels(survey).inc(unexpected)


def note_verdict(survey: str, alarms: Iterable[tuple[str, str]]) -> None:
    """What is unusual about the newest final of a survey, as attributes and checks."""
    found = Tally(check for _, check in alarms)
    for check in CHECKS:
        CONTRADICTED.labels(survey, check).set(found[check])


class PartitionState(NamedTuple):
    """What is read of one of our partitions: its log reader, how many records are not read yet, and what is wrong."""

    tp: TP
    reader: LogReader
    lag: int
    fault: LogFault | None  # why it is not read on
    is_position_refused: bool

    @property
    def place(self) -> tuple[str, str]:
        return self.tp.topic, str(self.tp.partition)


class StateCollector(Collector):
    """Metrics that are read from the state whenever Prometheus asks, by another thread than the one that changes it."""

    def __init__(self, states: Callable[[], Iterable[PartitionState]], lookup: Lookup) -> None:
        self._states = states
        self._lookup = lookup

    def collect(self) -> Iterator[GaugeMetricFamily]:
        states, place = list(self._states()), ("topic", "partition")
        yield _gauge("hearsay_lag_records", "Records not read yet", place, {one.place: one.lag for one in states})
        faults = {(*one.place, one.fault.kind.value): 1 for one in states if one.fault is not None}
        yield _gauge("hearsay_log_fault", "A partition that is not read on: 1", (*place, "fault"), faults)
        quarantined = {(survey, *one.place): 1 for one in states for survey in one.reader.quarantines}
        what = "A survey that is quarantined in a partition: 1"
        yield _gauge("hearsay_survey_quarantined", what, ("survey", *place), quarantined)
        what = "A partition whose position the broker refuses as too large: 1"
        refused = {one.place: 1 for one in states if one.is_position_refused}
        yield _gauge("hearsay_position_refused", what, place, refused)
        open_periods, tokens, token_bytes, lost = (Tally[tuple[str, ...]]() for _ in range(4))
        for counter in (one.reader for one in states if isinstance(one.reader, PartitionCounter)):
            for survey, losses in list(counter.lost.items()):
                scheme = self._lookup(survey)
                most = sum(loss.reports for loss in losses)
                lost[survey,] += most if scheme is None or scheme.presence is None else bool(losses)
            for (survey, _), period in list(counter.open_periods.items()):
                if period.scheme.presence is None:
                    open_periods[survey,] += 1
                    tokens[survey,] += len(period.tokens)
                    token_bytes[survey,] += period.tokens.nbytes
        each = ("survey",)
        yield _gauge("hearsay_open_periods", "Open periods, counted once in each partition", each, open_periods)
        yield _gauge("hearsay_tokens", "Tokens of open periods", each, tokens)
        yield _gauge("hearsay_token_bytes", "Memory of these tokens", each, token_bytes)
        what = "Reports lost at most, of the periods that windows include; with presence_epsilon whether there are any"
        yield _gauge("hearsay_lost_reports", what, each, lost)
        ages = {(survey,): time.monotonic() - at for survey, at in list(_last_final.items())}
        yield _gauge("hearsay_seconds_since_final", "Time since this worker last made a period final", each, ages)


def _gauge(name: str, what: str, labels: tuple[str, ...], values: Mapping[Any, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, what, labels=labels)
    for labelled, value in values.items():
        family.add_metric(labelled, value)
    return family


class Health:
    """Whether a worker lives and is ready. The worker calls `beat` all the time, and sets `ready` once it can tell.

    `merging` gives the partitions of the partials topic that it merges. `refused` are the published surveys that cannot
    be counted here, with the reason.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.ready: Callable[[], bool] = lambda: False
        self.merging: Callable[[], frozenset[int]] = frozenset
        self.refused: Mapping[str, str] = {}
        self._now = now
        self._beat_at = now()

    def beat(self) -> None:
        """Note that the worker is doing something, or is waiting for a broker on purpose."""
        self._beat_at = self._now()

    @property
    def live(self) -> bool:
        return self._now() - self._beat_at < STUCK_SECONDS
