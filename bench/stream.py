"""The worker beside a bare reader and beside Faust as it is usually written, on one broker in one run.

    bare reader       aiokafka reads the frames and does nothing with them
    floor             the same, and their tokens are put into tables and written (bench/_floor.py): whoever finds
                      repeated tokens, and still does after a crash, does at least this
    worker            `hearsay worker` counts them, with and without checking for repeated tokens
    idiomatic Faust   one JSON report a message, a tumbling table (bench/_idiomatic.py)
    recovery          a worker recovers 4 x 1M tokens; a bare reader reads the same changelog

Frames are ready-made: 4,096 rows of L-GRR with 16 values. Broker and workers share the machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import uvloop
from aiokafka import AIOKafkaConsumer, TopicPartition

from bench._floor import floor
from bench.brokers import broker
from bench.tables import Table
from hearsay.running.worker_process import WorkerProcess, workers
from producers.sinks import KafkaSink
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from protocols.wire import FRAME, Frame, encode_frame
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, create, publish, read_topic

ROWS, PARTITIONS = 4096, 4
STATE_FRAMES = PARTITIONS * 245  # about 1M tokens a partition
FRAMES = 8000  # many seconds: what was counted shows once a second
ROUNDS = 2  # of which the best counts: the machine may be busy
JSON_REPORTS = 30_000
WAIT_SECONDS = 600
WITH_TOKENS, WITHOUT_TOKENS, OVER_IDIOMATIC, RECOVERY = 0.3, 0.3, 300, 3
KEY = b"an operator's key for benchmarks"
SCHEME = Scheme(
    parse_survey(
        "{id: bench, start: 2026-01-01T00:00:00Z, period: 1d, clock: source, eps_inf: 2, eps_1: 1, "
        "attributes: [{name: area, range: {last: 15}, mechanism: l-grr}]}"
    )
)


def run() -> Table:
    with broker() as (kafka, directory):
        return measure(kafka, directory)


def measure(kafka: KafkaSettings, directory: Path) -> Table:
    table = Table("Stream app: reports/s, side by side", ("", "reports/s", "of the bare reader"))
    with_tokens, without = make(kafka, "tokens"), make(kafka, "plain")

    with workers(1, kafka, with_tokens, KEY, directory) as (worker,):
        fill(kafka, with_tokens, STATE_FRAMES, seed=0)
        wait_for(worker, STATE_FRAMES * ROWS)
        worker.leave()
        sizes = state_bytes(kafka, with_tokens)
        state, recovery = recover(kafka, with_tokens, worker)
        tokens = max(count(kafka, with_tokens, worker, seed) for seed in range(1, ROUNDS + 1))
        per_token = worker.metric("hearsay_token_bytes") / worker.metric("hearsay_tokens")
        worker.leave()
    with workers(1, kafka, without, KEY, directory / "plain", "--no-check-tokens") as (worker,):
        plain = max(count(kafka, without, worker, seed) for seed in range(1, ROUNDS + 1))
        worker.leave()
    bare = max(uvloop.run(read(kafka, without.reports)) * ROWS for _ in range(ROUNDS))
    written = make(kafka, "floor").reports
    least = max(
        uvloop.run(floor(kafka, without.reports, written, PARTITIONS, FRAMES, {"bench": SCHEME}.get)) * ROWS
        for _ in range(ROUNDS)
    )
    usual = idiomatic(kafka, directory)

    table.row("bare reader", f"{bare:,.0f}", "1")
    table.row("floor", f"{least:,.0f}", f"{least / bare:.2f}")
    table.row("worker, tokens checked", f"{tokens:,.0f}", f"{tokens / bare:.2f}")
    table.row("worker, tokens not checked", f"{plain:,.0f}", f"{plain / bare:.2f}")
    table.row("idiomatic Faust", f"{usual:,.0f}", f"{usual / bare:.5f}")
    table.remarks += [
        f"worker, tokens checked, over the floor: {tokens / least:.2f}",
        f"worker over idiomatic Faust: {tokens / usual:,.0f}x",
        f"recovery of {STATE_FRAMES * ROWS / 1e6:.1f}M tokens: {recovery:.2f} s, "
        f"{recovery / state:.1f}x a bare reader of the same changelog ({state:.2f} s)",
        f"state: {sizes / (STATE_FRAMES * ROWS):.1f} bytes a report in the changelog, "
        f"{per_token:.1f} bytes a token in memory",
    ]
    for name, found, wanted in (
        ("with tokens, of the bare reader", tokens / bare, WITH_TOKENS),
        ("without tokens, of the bare reader", plain / bare, WITHOUT_TOKENS),
        ("over idiomatic Faust", tokens / usual, OVER_IDIOMATIC),
    ):
        if found < wanted:
            table.missed.append(f"{name}: {found:.2f}, wanted at least {wanted}")
    if recovery / state > RECOVERY:
        table.missed.append(f"recovery: {recovery / state:.1f}x a bare reader, wanted at most {RECOVERY}x")
    return table


def make(kafka: KafkaSettings, prefix: str) -> Topics:
    topics = Topics(prefix, PARTITIONS, 1)
    create(kafka, topics)
    publish(kafka, topics, SCHEME.survey)
    return topics


def fill(kafka: KafkaSettings, topics: Topics, frames: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sink = KafkaSink(kafka, topics.reports)
    gaps = np.ones(ROWS, dtype=np.uint16)
    for number in range(frames):
        partition = number % PARTITIONS
        tokens = np.sort(rng.integers(1, 1 << 60, ROWS, dtype=np.uint64)) * np.uint64(PARTITIONS) + np.uint64(partition)
        answers = {"area": rng.integers(0, 16, ROWS).astype(np.uint8)}
        frame = Frame("bench", SCHEME.fingerprint, 0, tokens, gaps, answers)
        sink.send(partition, FRAME, encode_frame(frame, SCHEME))
    sink.flush()
    sink.close()


async def read(kafka: KafkaSettings, topic: str, rate: bool = True) -> float:
    """Records a second over the whole topic; or, for a changelog of few large records, the seconds it takes."""
    consumer = AIOKafkaConsumer(**kafka.client_options(), enable_auto_commit=False, auto_offset_reset="earliest")
    await consumer.start()
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    began = time.perf_counter()
    consumer.assign(partitions)
    ends = await consumer.end_offsets(partitions)
    records = 0
    await consumer.seek_to_beginning(*partitions)
    while any([await consumer.position(tp) < ends[tp] for tp in partitions]):
        records += sum(len(batch) for batch in (await consumer.getmany(timeout_ms=200)).values())
    seconds = time.perf_counter() - began
    await consumer.stop()
    return records / seconds if rate else seconds


def recover(kafka: KafkaSettings, topics: Topics, worker: WorkerProcess) -> tuple[float, float]:
    """Seconds that a bare reader and a worker need for the same changelog, each the best of several rounds."""
    bare, found = [], []
    for _ in range(ROUNDS):
        bare.append(uvloop.run(read(kafka, topics.counting_changelog, rate=False)))
        worker.start().wait_until_ready()
        found.append(worker.metric('hearsay_recovery_seconds{table="counting"}'))
        worker.leave()
    return min(bare), min(found)


def count(kafka: KafkaSettings, topics: Topics, worker: WorkerProcess, seed: int) -> float:
    """Reports a second of a worker that is started when many reports are waiting; it is left running."""
    if worker.running:
        worker.leave()
    fill(kafka, topics, FRAMES, seed)
    worker.start()
    return rate(worker, FRAMES * ROWS)


def wait_for(worker: WorkerProcess, reports: int) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while worker.metric("hearsay_reports_total") < reports:
        assert worker.running, worker.log.read_text()[-2000:]
        assert time.monotonic() < deadline, f"{reports:,} reports were not counted within {WAIT_SECONDS} seconds"
        time.sleep(0.1)


def rate(worker: WorkerProcess, reports: int) -> float:
    """Reports a second, from a tenth of the reports on: compiling and joining the group are not measured."""
    wait_for(worker, reports // 10)
    first, began = worker.metric("hearsay_reports_total"), time.perf_counter()
    wait_for(worker, reports)
    return (worker.metric("hearsay_reports_total") - first) / (time.perf_counter() - began)


def state_bytes(kafka: KafkaSettings, topics: Topics) -> int:
    newest = {record.key: record.value or b"" for record in read_topic(kafka, topics.counting_changelog)}
    return sum(len(key) + len(value) for key, value in newest.items())


def idiomatic(kafka: KafkaSettings, directory: Path) -> float:
    """Reports a second of Faust as its documentation shows it."""
    topics = Topics("idiomatic", PARTITIONS, 1)
    create(kafka, topics)
    sink = KafkaSink(kafka, topics.reports)
    for number in range(JSON_REPORTS):
        sink.send(number % PARTITIONS, "application/json", json.dumps({"area": number % 16}).encode())
    sink.flush()
    sink.close()
    script = Path(__file__).with_name("_idiomatic.py")
    environment = {**os.environ, "BROKER": kafka.bootstrap, "REPORTS": str(JSON_REPORTS), "DATA": str(directory)}
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    found = [line for line in done.stdout.splitlines() if line.startswith("rate ")]
    assert found, done.stderr[-2000:]
    return float(found[0].removeprefix("rate "))
