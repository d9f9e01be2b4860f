"""The worker beside a bare reader and beside Faust as it is usually written, on one broker in one run.

    bare reader       aiokafka reads the frames and does nothing with them
    worker            `hearsay worker` counts them, with and without checking for repeated tokens
    first period      the same, in a worker that has closed no period yet: its tables of tokens grow
    idiomatic Faust   one JSON report a message, a tumbling table (bench/_idiomatic.py)
    recovery          a worker recovers 4 x 1M tokens; a bare reader reads the same changelog

Frames are ready-made: 4,096 rows of L-GRR with 16 values. Broker and workers share the machine. Readers and workers
take turns, which take about as long; a ratio is the median over turns, and beside it are the lowest and the highest.

A worker is paused while the reports of a round are sent. Where tokens are checked, each round is a period of its own,
and closed: a survey runs for months, so its workers have seen periods before, and tables have room for as many tokens.

Decides whether what we changed in Faust is worth its upkeep (docs/decisions/0006-what-we-changed-in-faust.md). Run it
with a new version of Faust or aiokafka, or when the worker's path from a fetched batch to its counters changes.
"""

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median

import numpy as np
import uvloop
from aiokafka import AIOKafkaConsumer, TopicPartition

from bench._measuring import Table, broker, in_turns
from bench._processes import WorkerProcess, workers
from producers.kafka_sink import KafkaSink
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from protocols.wire import CLOCK, FRAME, Clock, Frame, encode_clock, encode_frame
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, create, publish, read_topic

ROWS, PARTITIONS = 4096, 4
STATE_FRAMES = PARTITIONS * 245  # about 1M tokens a partition
FRAMES = 8000  # many seconds: what was counted shows once a second
ROUNDS = 5
READS = 3  # in a turn of the bare reader
JSON_REPORTS = 30_000
WAIT_SECONDS = 600
WITH_TOKENS, WITHOUT_TOKENS, OVER_IDIOMATIC, RECOVERY = 0.3, 0.3, 300, 3
SESSION = ("--session", "300")  # seconds: a worker that is paused stays in its group
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

    ready = make(kafka, "ready")
    fill(kafka, ready, FRAMES, 0)
    with (
        workers(1, kafka, with_tokens, KEY, directory, *SESSION) as (worker,),
        workers(1, kafka, without, KEY, directory / "plain", *SESSION, "--no-check-tokens") as (counter,),
    ):
        fill(kafka, with_tokens, STATE_FRAMES, 0)
        wait_for(worker, STATE_FRAMES * ROWS)
        worker.leave()
        sizes = state_bytes(kafka, with_tokens)
        state, recovery = recover(kafka, with_tokens, worker)
        close(kafka, with_tokens, worker.start(), 0)
        worker.leave()
        first = count(kafka, with_tokens, worker.start(), 1)
        per_token = worker.metric("hearsay_token_bytes") / worker.metric("hearsay_tokens")
        close(kafka, with_tokens, worker, 1)
        periods = itertools.count(2)

        def read_bare() -> float:
            return mean([1 / uvloop.run(read(kafka, ready.reports)) / ROWS for _ in range(READS)])

        def count_a_period() -> float:
            period = next(periods)
            rate = count(kafka, with_tokens, worker, period)
            close(kafka, with_tokens, worker, period)
            return 1 / rate

        goes = in_turns(ROUNDS, read_bare, count_a_period, lambda: 1 / count(kafka, without, counter, 0))
        worker.leave()
        counter.leave()
    bare, tokens, plain = (1 / median(seconds) for seconds in zip(*goes.turns, strict=True))
    tokens_of_bare, plain_of_bare = goes.times(1, 0), goes.times(2, 0)
    usual = idiomatic(kafka, directory)

    table.row("bare reader", f"{bare:,.0f}", "1")
    table.row("worker, tokens checked", f"{tokens:,.0f}", str(tokens_of_bare))
    table.row("worker, tokens checked, first period", f"{first:,.0f}", f"{first / bare:.2f}")
    table.row("worker, tokens not checked", f"{plain:,.0f}", str(plain_of_bare))
    table.row("idiomatic Faust", f"{usual:,.0f}", f"{usual / bare:.5f}")
    table.remarks += [
        f"worker over idiomatic Faust: {tokens / usual:,.0f}x",
        f"recovery of {STATE_FRAMES * ROWS / 1e6:.1f}M tokens: {recovery:.2f} s, "
        f"{recovery / state:.1f}x a bare reader of the same changelog ({state:.2f} s)",
        f"state: {sizes / (STATE_FRAMES * ROWS):.1f} bytes a report in the changelog, "
        f"{per_token:.1f} bytes a token in memory",
    ]
    for name, found, wanted in (
        ("with tokens, of the bare reader", tokens_of_bare.value, WITH_TOKENS),
        ("without tokens, of the bare reader", plain_of_bare.value, WITHOUT_TOKENS),
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


def fill(kafka: KafkaSettings, topics: Topics, frames: int, period: int) -> None:
    """Send so many frames of a period, with tokens that were never sent."""
    rng = np.random.default_rng()
    sink = KafkaSink(kafka, topics.reports)
    gaps = np.ones(ROWS, dtype=np.uint16)
    for number in range(frames):
        partition = number % PARTITIONS
        tokens = np.sort(rng.integers(1, 1 << 60, ROWS, dtype=np.uint64)) * np.uint64(PARTITIONS) + np.uint64(partition)
        answers = {"area": rng.integers(0, 16, ROWS).astype(np.uint8)}
        frame = Frame("bench", SCHEME.fingerprint, period, tokens, gaps, answers)
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


def count(kafka: KafkaSettings, topics: Topics, worker: WorkerProcess, period: int) -> float:
    """Reports a second of a worker that was paused until many reports of a period were waiting."""
    counted = worker.wait_until_ready().metric("hearsay_reports_total")
    worker.pause()
    fill(kafka, topics, FRAMES, period)
    worker.resume()
    wait_for(worker, counted + FRAMES * ROWS // 10)  # compiled code is loaded by then
    first, began = worker.metric("hearsay_reports_total"), time.perf_counter()
    wait_for(worker, counted + FRAMES * ROWS)
    return (worker.metric("hearsay_reports_total") - first) / (time.perf_counter() - began)


def wait_for(worker: WorkerProcess, reports: float) -> None:
    _wait(worker, f"{reports:,.0f} reports were not counted", lambda: worker.metric("hearsay_reports_total") >= reports)


def close(kafka: KafkaSettings, topics: Topics, worker: WorkerProcess, period: int) -> None:
    """Close a period, and wait until the worker has done so."""
    worker.wait_until_ready()
    sink = KafkaSink(kafka, topics.reports)
    for partition in range(PARTITIONS):
        sink.send(partition, CLOCK, encode_clock(Clock("bench", period), KEY))
    sink.flush()
    sink.close()
    _wait(worker, f"period {period} was not closed", lambda: worker.metric("hearsay_open_periods") == 0)


def _wait(worker: WorkerProcess, complaint: str, done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not done():
        assert worker.running, worker.log.read_text()[-2000:]
        assert time.monotonic() < deadline, f"{complaint} within {WAIT_SECONDS} seconds"
        time.sleep(0.25)  # each look costs the worker some milliseconds


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
