"""The metrics of a worker, for Prometheus: how much and how fast, and nothing about any answer.

Surveys with `presence_epsilon` have no metrics that count reports or tokens: these numbers are exact.
"""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping

from faust.types import TP
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from stream_app.counting.partition_counter import Changes, PartitionCounter
from stream_app.counting.state import Period

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)

REPORTS = Counter(
    "hearsay_reports", "Reports by survey and what became of them", ["survey", "outcome"], registry=REGISTRY
)
FINALS = Counter("hearsay_finals", "Periods made final", ["survey"], registry=REGISTRY)
FLUSH_SECONDS = Histogram("hearsay_flush_seconds", "How long a flush took, all stages", ["table"], registry=REGISTRY)
RECOVERY_SECONDS = Gauge(
    "hearsay_recovery_seconds", "From the last assignment of partitions until reading on", ["table"], registry=REGISTRY
)

_last_final: dict[str, float] = {}


def note_changes(changes: Changes) -> None:
    """Add the rows that were counted and refused to the metrics."""
    if changes.counted:
        REPORTS.labels(changes.survey, "counted").inc(changes.counted)
    for reason, rows in changes.refused.items():
        REPORTS.labels(changes.survey, reason.value).inc(rows)


def note_finals(finals: Iterable[Period]) -> None:
    for survey, _ in finals:
        FINALS.labels(survey).inc()
        _last_final[survey] = time.monotonic()


class StateCollector(Collector):
    """Metrics that are read from the state whenever Prometheus asks.

    `lag` gives how many records of each partition are not read yet, `counters` the counters of our partitions.
    """

    def __init__(self, lag: Callable[[], Mapping[TP, int]], counters: Callable[[], Iterable[PartitionCounter]]) -> None:
        self._lag = lag
        self._counters = counters

    def collect(self) -> Iterator[GaugeMetricFamily]:
        lag = GaugeMetricFamily("hearsay_lag_records", "Records not read yet", labels=["topic", "partition"])
        for tp, behind in self._lag().items():
            lag.add_metric([tp.topic, str(tp.partition)], behind)
        yield lag
        open_periods, tokens, token_bytes = Tally[str](), Tally[str](), Tally[str]()
        for counter in self._counters():
            for (survey, _), period in counter.open_periods.items():
                if period.scheme.presence is not None:
                    continue
                open_periods[survey] += 1
                tokens[survey] += len(period.tokens)
                token_bytes[survey] += period.tokens.nbytes
        yield _by_survey("hearsay_open_periods", "Open periods, counted once in each partition", open_periods)
        yield _by_survey("hearsay_tokens", "Tokens of open periods", tokens)
        yield _by_survey("hearsay_token_bytes", "Memory of these tokens", token_bytes)
        now = time.monotonic()
        ages = {survey: now - at for survey, at in _last_final.items()}
        yield _by_survey("hearsay_seconds_since_final", "Time since this worker last made a period final", ages)


def _by_survey(name: str, what: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, what, labels=["survey"])
    for survey, value in values.items():
        family.add_metric([survey], value)
    return family
