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

from protocols.wire import Lookup
from stream_app.counting.partition_counter import Changes, PartitionCounter
from stream_app.counting.state import Period
from stream_app.log.log_reader import LogReader
from stream_app.log.losses import total
from stream_app.log.marks import LogFault
from stream_app.log.quarantines import Quarantine

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

FORECAST = Counter("hearsay_forecast_numbers", "Published numbers with a forecast", ["survey"], registry=REGISTRY)
UNEXPECTED = Counter("hearsay_unexpected", "Those outside its 99 % interval", ["survey"], registry=REGISTRY)

Outcomes = Tally[tuple[str, str]]  # rows by survey and outcome
_last_final: dict[str, float] = {}
_alarms: dict[str, Iterable[tuple[str, str]]] = {}


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


def note_forecasts(survey: str, numbers: int, unexpected: int) -> None:
    FORECAST.labels(survey).inc(numbers)
    UNEXPECTED.labels(survey).inc(unexpected)


def note_verdict(survey: str, alarms: Iterable[tuple[str, str]]) -> None:
    """What is unusual about the newest final of a survey, as attributes and checks."""
    _alarms[survey] = alarms


class StateCollector(Collector):
    """Metrics that are read from the state whenever Prometheus asks, by another thread than the one that changes it.

    `lag` gives how many records of each partition are not read yet, `faults` the partitions that are not read on,
    `quarantines` the surveys that are quarantined in partitions, `refused` the partitions whose position is refused,
    `counters` the counters of our partitions.
    """

    def __init__(
        self,
        lag: Callable[[], Mapping[TP, int]],
        faults: Callable[[], Mapping[TP, LogFault]],
        quarantines: Callable[[], Mapping[TP, Mapping[str, Quarantine]]],
        refused: Callable[[], Iterable[TP]],
        counters: Callable[[], Iterable[PartitionCounter]],
    ) -> None:
        self._lag = lag
        self._faults = faults
        self._quarantines = quarantines
        self._refused = refused
        self._counters = counters

    def collect(self) -> Iterator[GaugeMetricFamily]:
        lag = GaugeMetricFamily("hearsay_lag_records", "Records not read yet", labels=["topic", "partition"])
        for tp, behind in self._lag().items():
            lag.add_metric([tp.topic, str(tp.partition)], behind)
        yield lag
        labels = ["topic", "partition", "fault"]
        faults = GaugeMetricFamily("hearsay_log_fault", "A partition that is not read on: 1", labels=labels)
        for tp, fault in self._faults().items():
            faults.add_metric([tp.topic, str(tp.partition), fault.kind.value], 1)
        yield faults
        labels = ["survey", "topic", "partition"]
        quarantines = GaugeMetricFamily(
            "hearsay_survey_quarantined", "A survey that is quarantined in a partition: 1", labels=labels
        )
        for tp, surveys in self._quarantines().items():
            for survey in surveys:
                quarantines.add_metric([survey, tp.topic, str(tp.partition)], 1)
        yield quarantines
        what = "A partition whose position the broker refuses as too large: 1"
        refused = GaugeMetricFamily("hearsay_position_refused", what, labels=["topic", "partition"])
        for tp in self._refused():
            refused.add_metric([tp.topic, str(tp.partition)], 1)
        yield refused
        open_periods, tokens, token_bytes, lost = Tally[str](), Tally[str](), Tally[str](), Tally[str]()
        for counter in self._counters():
            for survey, losses in list(counter.lost.items()):
                lost[survey] += total(losses)
            for (survey, _), period in list(counter.open_periods.items()):
                if period.scheme.presence is not None:
                    continue
                open_periods[survey] += 1
                tokens[survey] += len(period.tokens)
                token_bytes[survey] += period.tokens.nbytes
        yield _by_survey("hearsay_open_periods", "Open periods, counted once in each partition", open_periods)
        yield _by_survey("hearsay_tokens", "Tokens of open periods", tokens)
        yield _by_survey("hearsay_token_bytes", "Memory of these tokens", token_bytes)
        yield _by_survey("hearsay_lost_reports", "Reports lost at most, of the periods that windows include", lost)
        what = "Attributes whose newest final does not fit honest devices, by check"
        contradicted = GaugeMetricFamily("hearsay_contradicted", what, labels=["survey", "check"])
        for survey, alarms in list(_alarms.items()):
            checks = Tally(check for _, check in alarms)
            for check in CHECKS:
                contradicted.add_metric([survey, check], checks[check])
        yield contradicted
        now = time.monotonic()
        ages = {survey: now - at for survey, at in list(_last_final.items())}
        yield _by_survey("hearsay_seconds_since_final", "Time since this worker last made a period final", ages)


def _by_survey(name: str, what: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, what, labels=["survey"])
    for survey, value in values.items():
        family.add_metric([survey], value)
    return family
