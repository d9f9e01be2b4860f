"""How quickly a worker says that it lives and is ready while most of what it reads is rubbish, and what it keeps.

A burst of single JSON reports, nine of ten of which no collector can count, is waiting when the worker starts; then
10,000 a second follow. `/live` and `/ready` are asked all the time, each over a connection of its own. Broker, sender
and worker share the machine.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from aiokafka import AIOKafkaProducer

from bench._brokers import broker
from bench._tables import Table
from bench.stream import KEY, PARTITIONS, SCHEME, make
from hearsay.running.worker_process import WorkerProcess, workers
from protocols.wire import CONTENT_TYPE_HEADER, REPORT
from servers.settings import KafkaSettings

BURST, PER_SECOND, SECONDS = 400_000, 10_000, 20
ANSWER_SECONDS, MORE_MEGABYTES = 1.0, 150
WAIT_SECONDS = 600
PAGES = ("/live", "/ready")


def run() -> Table:
    with broker() as (kafka, directory):
        return measure(kafka, directory)


def measure(kafka: KafkaSettings, directory: Path) -> Table:
    table = Table("Health of a worker under rubbish", ("", "slowest answer, s", "resident, MB"))
    topics = make(kafka, "rubbish")
    with workers(1, kafka, topics, KEY, directory) as (worker,):
        worker.wait_until_ready()
        idle = resident(worker)
        table.row("idle", "", f"{idle:.0f}")
        worker.leave()
        asyncio.run(send(kafka, topics.reports, 0, BURST, None))
        worker.start().wait_until_ready()
        with_burst, most = watched(worker, BURST, lambda: None)
        table.row(f"a burst of {BURST:,}", f"{with_burst:.2f}", f"{most:.0f}")
        table.row("... 10 s later", "", f"{settled(worker):.0f}")
        asked, most = watched(
            worker,
            BURST + PER_SECOND * SECONDS,
            lambda: asyncio.run(send(kafka, topics.reports, BURST, PER_SECOND * SECONDS, PER_SECOND)),
        )
        table.row(f"{PER_SECOND:,} a second", f"{asked:.2f}", f"{most:.0f}")
        after = settled(worker)
        table.row("... 10 s later", "", f"{after:.0f}")
    for what, slowest in (("burst", with_burst), (f"{PER_SECOND:,} a second", asked)):
        if slowest > ANSWER_SECONDS:
            table.missed.append(f"{what}: an answer took {slowest:.2f} s, wanted at most {ANSWER_SECONDS}")
    if after - idle > MORE_MEGABYTES:
        table.missed.append(f"{after - idle:.0f} MB more than at the start, wanted at most {MORE_MEGABYTES}")
    return table


def report(number: int) -> bytes:
    """A single report of which one in ten is good, as far as its form goes."""
    good = {
        "survey": "bench",
        "fingerprint": SCHEME.fingerprint,
        "period": "00000000",
        "token": f"{(number + 1) * PARTITIONS + number % PARTITIONS:016x}",
        "gap": "0001",
        "answers": {"area": f"{number % 16:02x}"},
    }
    rubbish: tuple[dict[str, object], ...] = (
        {},
        {"survey": None},
        {"gap": "0000"},
        {"period": "7fffffff"},
        {"answers": {"area": "ff"}},
        {"answers": {}},
        {"token": "x"},
        {"fingerprint": "0" * 64},
        {"answers": {"area": "0" * 400}},
    )
    if number % 10 == 9:
        return b"{" * 200
    return json.dumps({**good, **rubbish[number % 10]}).encode()


async def send(kafka: KafkaSettings, topic: str, first: int, count: int, per_second: int | None) -> None:
    """Send reports in batches, as fast as possible or so many a second."""
    producer = AIOKafkaProducer(**kafka.client_options(), max_batch_size=1 << 20, max_request_size=4 << 20)
    await producer.start()
    headers = [(CONTENT_TYPE_HEADER, REPORT.encode())]
    began, step = time.monotonic(), 1000
    for start in range(first, first + count, step):
        if per_second is not None:
            await asyncio.sleep(max(0.0, (start - first) / per_second - (time.monotonic() - began)))
        for partition in range(PARTITIONS):
            batch = producer.create_batch()
            for number in range(start + partition, start + step, PARTITIONS):
                batch.append(key=None, value=report(number), timestamp=None, headers=headers)
            await (await producer.send_batch(batch, topic, partition=partition))
    await producer.stop()


def watched(worker: WorkerProcess, reports: int, send_more: object) -> tuple[float, float]:
    """The slowest answer in seconds and the most memory in MB until so many reports are read."""
    assert callable(send_more)
    sender = threading.Thread(target=send_more)
    sender.start()
    slowest = most = 0.0
    deadline = time.monotonic() + WAIT_SECONDS
    done = False
    while not done:
        for page in PAGES:
            slowest = max(slowest, seconds_of(worker, page))
        metrics = worker.page("/metrics")
        most = max(most, resident(worker))
        done = total(metrics) >= reports
        assert worker.running, worker.log.read_text()[-2000:]
        assert time.monotonic() < deadline, f"{reports:,} reports were not read within {WAIT_SECONDS} seconds"
    sender.join(WAIT_SECONDS)
    return slowest, most


def seconds_of(worker: WorkerProcess, page: str) -> float:
    began = time.monotonic()
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{worker.port}{page}", timeout=60) as answer:
            answer.read()
    except urllib.error.HTTPError as error:
        error.read()
    return time.monotonic() - began


def total(metrics: str) -> float:
    lines = [line for line in metrics.splitlines() if line.startswith("hearsay_reports_total{")]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def resident(worker: WorkerProcess) -> float:
    return worker.metric("process_resident_memory_bytes") / 1e6


def settled(worker: WorkerProcess) -> float:
    time.sleep(10)
    return resident(worker)
