"""What one JSON report costs a worker when reports trickle in.

A worker without reports has a cost of its own: it polls its partitions and its group. It is measured before and after
the reports, when the worker has settled, and the smaller is subtracted. The reports are spread over 4 partitions.
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
SETTLE_SECONDS = 10.0
RATES = (8, 40, 200)
BACKLOG = 10_000
MICROSECONDS = 50.0


def run() -> Table:
    with broker() as (kafka, directory):
        return measure(kafka, directory)


def measure(kafka: KafkaSettings, directory: Path) -> Table:
    columns = "", "CPU of the worker, ms/s", "us of CPU a report, less idle", "flushes a report"
    table = Table("Small reports: what a worker takes for each", columns)
    topics = make(kafka, "trickle")
    with workers(1, kafka, topics, KEY, directory) as (worker,):
        worker.wait_until_ready()
        sender = Sender(kafka, topics)
        sender.send(1000)
        sender.wait(worker)
        time.sleep(SETTLE_SECONDS)  # what it does after its start and after a backlog is neither idle nor a report
        idle, _ = cost(worker, partial(time.sleep, SECONDS))
        taken = [cost(worker, partial(sender.trickle, worker, rate)) for rate in RATES]
        time.sleep(SETTLE_SECONDS)
        idle_after, _ = cost(worker, partial(time.sleep, SECONDS))
        backlog, backlog_flushes = cost(worker, partial(sender.backlog, worker), per_second=False)
        worker.leave()
    least = min(idle, idle_after)
    table.row("idle, before and after", f"{1e3 * idle:.1f} and {1e3 * idle_after:.1f}", "", "")
    for rate, (cpu, flushes) in zip(RATES, taken, strict=True):
        microseconds = 1e6 * (cpu - least) / rate
        table.row(f"{rate} a second", f"{1e3 * cpu:.1f}", f"{microseconds:.0f}", f"{flushes / rate:.3f}")
        if microseconds > MICROSECONDS:
            table.missed.append(f"{rate} a second: {microseconds:.0f} us, wanted at most {MICROSECONDS:.0f}")
    table.row("a backlog", "", f"{1e6 * backlog / BACKLOG:.0f}", f"{backlog_flushes / BACKLOG:.3f}")
    each, any_number = np.polyfit(RATES, [cpu - least for cpu, _ in taken], 1)
    table.remarks.append(
        f"reports that trickle take {1e3 * any_number:.1f} ms/s, whatever their number (takes and flushes), and "
        f"{1e6 * each:.0f} us each"
    )
    return table


def until_all_count(kafka: KafkaSettings, directory: Path, count: int) -> float:
    topics = make(kafka, f"start-{count}")
    began = time.perf_counter()
    with workers(count, kafka, topics, KEY, directory) as group:
        while not all(worker.ready and worker.metric("hearsay_lag_records") == 0 for worker in group):
            time.sleep(0.05)
        return time.perf_counter() - began


def cost(worker: WorkerProcess, do: Callable[[], None], per_second: bool = True) -> tuple[float, float]:
    """CPU seconds and flushes of a worker while something is done, in each second of it or in all."""
    names = "process_cpu_seconds_total", "hearsay_flush_seconds_count"
    began, before = time.monotonic(), [worker.metric(name) for name in names]
    do()
    cpu, flushes = [worker.metric(name) - first for name, first in zip(names, before, strict=True)]
    seconds = time.monotonic() - began if per_second else 1.0
    return cpu / seconds, flushes / seconds


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
