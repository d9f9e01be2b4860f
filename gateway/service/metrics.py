"""The metrics of a gateway, for Prometheus: how much and how fast, and nothing about senders.

Surveys with `presence_epsilon` have no metrics that count reports, and their batches are not timed: these numbers are
exact.
"""

from collections.abc import Callable
from math import nan

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.process_collector import ProcessCollector

from protocols.scheme import Scheme

WATCHED = {
    "waiting_reports": "Reports gathered or being written",
    "held_bytes": "Bytes of requests being read or answered",
    "connections": "Open connections",
    "ready": "1 if reports can be taken",
    "key_hours": "In how many hours the first period begins that has no key of credentials",
}
"""Numbers that are read when Prometheus asks."""
SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


class Metrics:
    """A registry of its own for each gateway."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._reports = Counter(
            "hearsay_gateway_reports",
            "Reports by survey and what became of them",
            ["survey", "outcome"],
            registry=self.registry,
        )
        self.refused = Counter(
            "hearsay_gateway_refused_requests",
            "Requests refused as a whole, or to be sent again",
            ["reason"],
            registry=self.registry,
        )
        self.write_seconds = Histogram(
            "hearsay_gateway_write_seconds",
            "From gathered to durable, for a batch",
            buckets=SECONDS,
            registry=self.registry,
        )
        self.key_pulls = Counter(
            "hearsay_gateway_key_pulls",
            "Attempts to take over the keys of another gateway, and what became of them",
            ["outcome"],
            registry=self.registry,
        )
        self._watched = {
            name: Gauge(f"hearsay_gateway_{name}", text, registry=self.registry) for name, text in WATCHED.items()
        }
        self._watched["key_hours"].set(nan)  # where no keys are shared, none of them end

    def watch(self, name: str, value: Callable[[], float]) -> None:
        """Say where one of `WATCHED` is read."""
        self._watched[name].set_function(value)

    def note(self, scheme: Scheme | None, outcome: str, reports: int = 1) -> None:
        """Count reports; of surveys that are not known, all together."""
        if scheme is None or scheme.presence is None:
            self._reports.labels("" if scheme is None else scheme.survey.id, outcome).inc(reports)
