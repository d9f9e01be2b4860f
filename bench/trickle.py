"""What one JSON report costs a worker when reports trickle in, beside a bare loop of aiokafka on the same broker.

A worker without reports has a cost of its own: it polls its partitions and its group. It is measured in every turn, and
what it would have taken is subtracted from what the turn's reports took, until the worker has nothing left to write.
The reports are spread over 4 partitions.

A worker polls ten times a second, so that it learns soon of a report, and takes reports that trickle four times a
second. It writes them every few seconds, so at low rates a report costs a part of a flush. A bare loop (bench/_loop.py)
takes and writes as often, and does nothing else: what it takes in all is shown beside the worker.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from bench._brokers import broker
from bench._tables import Table
from bench.stream import KEY, PARTITIONS, SCHEME, make
from hearsay.running.worker_process import WorkerProcess, workers
from producers.sinks import KafkaSink
from protocols.wire import REPORT, Frame, encode_report
from servers.settings import KafkaSettings
from stream_app.kafka import Topics

SECONDS = 15.0
"""How long reports trickle, and how long a worker is idle, in each turn."""
SETTLE_SECONDS = 6.0
"""A worker writes what it has counted after 5 seconds at most."""
TURNS = 5
RATES = (8, 40, 200)
BACKLOG = 10_000
MICROSECONDS = 50.0
"""What a report of a backlog may cost."""


def run() -> Table:
    with broker() as (kafka, directory):
        return measure(kafka, directory)


def measure(kafka: KafkaSettings, directory: Path) -> Table:
    columns = "", "CPU of the worker, ms/s", "of a bare loop", "us of CPU a report, less idle", "flushes a report"
    table = Table("Small reports: what a worker takes for each", columns)
    topics = make(kafka, "trickle")
    with workers(1, kafka, topics, KEY, directory) as (worker,):
        worker.wait_until_ready()
        sender = Sender(kafka, topics, worker)
        sender.send(1000)
        sender.settle()
        turns = [[cost(worker, do) for do in sender.works] for _ in range(TURNS)]
        worker.leave()
    idle, *others = zip(*turns, strict=True)
    bare = [bare_loop(kafka, topics, lambda: None)]
    bare += [bare_loop(kafka, topics, partial(sender.send_evenly, rate)) for rate in RATES]
    shares = [1e3 * one.share for one in idle]
    table.row("idle", f"{median(shares):.1f} ({min(shares):.1f} to {max(shares):.1f})", f"{1e3 * bare[0]:.1f}", "", "")
    names = [f"{rate} a second" for rate in RATES] + ["a backlog"]
    for name, sent, some, loop in zip(names, sender.sizes, others, [*bare[1:], None], strict=True):
        each = [1e6 * (one.cpu - none.share * one.seconds) / sent for one, none in zip(some, idle, strict=True)]
        shown = ("", "") if loop is None else (f"{1e3 * median(one.share for one in some):.1f}", f"{1e3 * loop:.1f}")
        flushes = median(one.flushes for one in some) / sent
        table.row(name, *shown, f"{median(each):.0f} ({min(each):.0f} to {max(each):.0f})", f"{flushes:.3f}")
        if loop is None and median(each) > MICROSECONDS:
            table.missed.append(f"{name}: {median(each):.0f} us, wanted at most {MICROSECONDS:.0f}")
    return table


def bare_loop(kafka: KafkaSettings, topics: Topics, do: Callable[[], None]) -> float:
    """CPU seconds of the bare loop in each second while something is done, which takes `SECONDS`."""
    written = topics.counting_changelog  # of a worker that has left
    command = [sys.executable, "-m", "bench._loop", kafka.bootstrap, topics.reports, written, str(SECONDS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as loop:
        assert loop.stdout is not None and loop.stdout.readline() == "ready\n"
        do()
        return float(loop.stdout.readline())


def until_all_count(kafka: KafkaSettings, directory: Path, count: int) -> float:
    topics = make(kafka, f"start-{count}")
    began = time.perf_counter()
    with workers(count, kafka, topics, KEY, directory) as group:
        while not all(worker.ready and worker.metric("hearsay_lag_records") == 0 for worker in group):
            time.sleep(0.05)
        return time.perf_counter() - began


class Cost(NamedTuple):
    """What a worker took while something was done: CPU seconds and flushes, in so many seconds."""

    cpu: float
    flushes: float
    seconds: float

    @property
    def share(self) -> float:
        """CPU seconds in a second."""
        return self.cpu / self.seconds


def cost(worker: WorkerProcess, do: Callable[[], None]) -> Cost:
    names = "process_cpu_seconds_total", "hearsay_flush_seconds_count"
    began, before = time.monotonic(), [worker.metric(name) for name in names]
    do()
    cpu, flushes = [worker.metric(name) - first for name, first in zip(names, before, strict=True)]
    return Cost(cpu, flushes, time.monotonic() - began)


class Sender:
    """Sends single JSON reports, each with a token of its own, to a worker."""

    def __init__(self, kafka: KafkaSettings, topics: Topics, worker: WorkerProcess) -> None:
        self._sink = KafkaSink(kafka, topics.reports)
        self._worker = worker
        self._sent = 0

    sizes = (*(int(rate * SECONDS) for rate in RATES), BACKLOG)
    """How many reports each of the works sends, after the first."""

    @property
    def works(self) -> list[Callable[[], None]]:
        """Nothing, then reports at each rate, then a backlog; each until the worker has nothing left to do."""
        sends: list[Callable[[], None]] = [partial(self.send_evenly, rate) for rate in RATES]
        sends.append(partial(self.send, BACKLOG))
        return [partial(time.sleep, SECONDS), *(partial(self._all_of, send) for send in sends)]

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

    def send_evenly(self, rate: int) -> None:
        began = time.monotonic()
        for number in range(int(rate * SECONDS)):
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
            self.send(1)

    def settle(self) -> None:
        """Wait until the worker has counted everything, and has written it."""
        while self._worker.metric("hearsay_reports_total") < self._sent:
            time.sleep(0.2)
        time.sleep(SETTLE_SECONDS)

    def _all_of(self, send: Callable[[], None]) -> None:
        send()
        self.settle()
