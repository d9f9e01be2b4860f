"""The metrics of a gateway, for Prometheus: how much and how fast, and nothing about senders.

Surveys with `presence_epsilon` have no metrics that count reports: these numbers are exact.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.process_collector import ProcessCollector

from protocols.scheme import Scheme

SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


class Metrics:
    """A registry of its own for each gateway."""

    CONTENT_TYPE = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._reports = Counter(
            "hearsay_gateway_reports",
            "Reports by survey and what became of them",
            ["survey", "outcome"],
            registry=self._registry,
        )
        self._refused = Counter(
            "hearsay_gateway_refused_requests", "Requests refused as a whole", ["reason"], registry=self._registry
        )
        self.write_seconds = Histogram(
            "hearsay_gateway_write_seconds",
            "From gathered to durable, for a batch",
            buckets=SECONDS,
            registry=self._registry,
        )

    def watch(self, name: str, what: str, value: Callable[[], float]) -> None:
        """A number that is read when Prometheus asks."""
        Gauge(f"hearsay_gateway_{name}", what, registry=self._registry).set_function(value)

    def note(self, scheme: Scheme | None, outcome: str, reports: int = 1) -> None:
        """Count reports; of surveys that are not known, all together."""
        if scheme is None or scheme.presence is None:
            self._reports.labels("" if scheme is None else scheme.survey.id, outcome).inc(reports)

    def refuse(self, reason: str) -> None:
        self._refused.labels(reason).inc()

    def page(self) -> bytes:
        return generate_latest(self._registry)
