"""What one JSON report costs a worker when reports trickle in.

CPU seconds are those of the worker, less what it takes when nothing comes. The reports are spread over 4 partitions.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from bench.brokers import broker
from bench.stream import KEY, PARTITIONS, SCHEME, make
from bench.tables import Table
from hearsay.running.worker_process import WorkerProcess, workers
from producers.sinks import KafkaSink
from protocols.wire import REPORT, Frame, encode_report
from servers.settings import KafkaSettings
from stream_app.kafka import Topics

SECONDS = 20.0
RATES = (8, 40, 200)
BACKLOG = 10_000
MICROSECONDS = 50.0


def run() -> Table:
    with broker() as (kafka, directory):
        return measure(kafka, directory)


def measure(kafka: KafkaSettings, directory: Path) -> Table:
    table = Table("Small reports: what a worker takes for each", ("", "us of CPU a report", "flushes a report"))
    topics = make(kafka, "trickle")
    with workers(1, kafka, topics, KEY, directory) as (worker,):
        worker.wait_until_ready()
        sender = Sender(kafka, topics)
        sender.send(1000)
        sender.wait(worker)
        idle = cost(worker, partial(time.sleep, SECONDS))[0] / SECONDS
        for rate in RATES:
            reports = int(rate * SECONDS)
            began = time.monotonic()
            cpu, flushes = cost(worker, partial(sender.trickle, worker, rate))
            microseconds = 1e6 * (cpu - idle * (time.monotonic() - began)) / reports
            table.row(f"{rate} a second", f"{microseconds:.0f}", f"{flushes / reports:.3f}")
            if microseconds > MICROSECONDS:
                table.missed.append(f"{rate} a second: {microseconds:.0f} us, wanted at most {MICROSECONDS:.0f}")
        cpu, flushes = cost(worker, partial(sender.backlog, worker))
        table.row("a backlog", f"{1e6 * cpu / BACKLOG:.0f}", f"{flushes / BACKLOG:.3f}")
        worker.leave()
    return table


def until_all_count(kafka: KafkaSettings, directory: Path, count: int) -> float:
    topics = make(kafka, f"start-{count}")
    began = time.perf_counter()
    with workers(count, kafka, topics, KEY, directory) as group:
        while not all(worker.ready and worker.metric("hearsay_lag_records") == 0 for worker in group):
            time.sleep(0.05)
        return time.perf_counter() - began


def cost(worker: WorkerProcess, do: Callable[[], None]) -> tuple[float, float]:
    """CPU seconds and flushes of a worker while something is done."""
    names = "process_cpu_seconds_total", "hearsay_flush_seconds_count"
    before = [worker.metric(name) for name in names]
    do()
    cpu, flushes = [worker.metric(name) - first for name, first in zip(names, before, strict=True)]
    return cpu, flushes


class Sender:
    """Sends single JSON reports, each with a token of its own."""

    def __init__(self, kafka: KafkaSettings, topics: Topics) -> None:
        self._sink = KafkaSink(kafka, topics.reports)
        self._sent = 0

    def send(self, reports: int) -> None:
        for _ in range(reports):
            self._sent += 1
            frame = Frame(
                "bench",
                SCHEME.fingerprint,
                0,
                np.array([self._sent], dtype=np.uint64),
                np.ones(1, dtype=np.uint16),
                {"area": np.array([self._sent % 16], dtype=np.uint8)},
            )
            self._sink.send(self._sent % PARTITIONS, REPORT, encode_report(frame, SCHEME))
        self._sink.flush()

    def trickle(self, worker: WorkerProcess, rate: int) -> None:
        began = time.monotonic()
        for number in range(int(rate * SECONDS)):
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
            self.send(1)
        self.wait(worker)

    def backlog(self, worker: WorkerProcess) -> None:
        self.send(BACKLOG)
        self.wait(worker)

    def wait(self, worker: WorkerProcess) -> None:
        while worker.metric("hearsay_reports_total") < self._sent:
            time.sleep(0.2)
