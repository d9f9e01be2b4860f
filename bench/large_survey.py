"""A survey as large as surveys get, end to end on Kafka: what its records and its report take.

L-OSUE, 65,536 values, a horizon of 7 periods. A worker counts a thousand reports of each of 7 periods; `hearsay report`
then reads what it published, in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from bench.brokers import broker
from bench.tables import Table
from hearsay.running.worker_process import workers
from producers.sinks import KafkaSink
from protocols.arrays import PackedBits
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from protocols.wire import CLOCK, FRAME, Clock, Frame, encode_clock, encode_frame
from servers.settings import KafkaSettings
from stream_app.kafka import KafkaResults, Topics, create, publish, read_topic

VALUES, HORIZON, PERIODS = 65_536, 7, 7
FRAMES, ROWS = 4, 250
WAIT_SECONDS = 600
MEGABYTES, CPU_SECONDS = 300, 3.0
KEY = b"an operator's key for benchmarks"
SCHEME = Scheme(
    parse_survey(
        f"{{id: large, start: 2026-01-05T00:00:00Z, period: 1d, clock: source, eps_inf: 4, eps_1: 2, "
        f"horizon: {HORIZON}, attributes: [{{name: cell, range: {{last: {VALUES - 1}}}, mechanism: l-osue}}]}}"
    )
)
REPORT = """
import json, pathlib, sys, time
from hearsay.cli import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
status = dict(line.split(":", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines())
print(json.dumps([int(status["VmHWM"].split()[0]) / 1024, time.process_time()]), file=sys.stderr)
"""


def run() -> Table:
    with broker() as (kafka, directory):
        return measure(kafka, directory)


def measure(kafka: KafkaSettings, directory: Path) -> Table:
    topics = Topics(partitions=1, merge_partitions=1)
    create(kafka, topics)
    publish(kafka, topics, SCHEME.survey)
    table = Table(f"A survey of {VALUES:,} values and a horizon of {HORIZON}, on Kafka", ("", "found", "wanted"))
    with workers(1, kafka, topics, KEY, directory) as (worker,):
        worker.wait_until_ready()
        send(kafka, topics)
        results, limit = KafkaResults(kafka, topics), time.monotonic() + WAIT_SECONDS
        while len(results.periods("large")) < PERIODS:
            if time.monotonic() > limit or not worker.running:
                raise TimeoutError(f"{len(results.periods('large'))} of {PERIODS} periods are final")
            time.sleep(1)
        resident = worker.metric("process_resident_memory_bytes") / (1 << 20)
        worker.leave()
    table.row("the worker's memory, MB", f"{resident:,.0f}", "")
    for name in ("merging_changelog", "counting_changelog"):
        largest = max(len(record.value or b"") for record in read_topic(kafka, getattr(topics, name)))
        table.row(f"largest record of the {name.replace('_', ' ')}, MB", f"{largest / 1e6:.1f}", "8.3")
    forms = {"html": [str(directory / "page.html")], "json": [], "csv": [str(directory)], "parquet": [str(directory)]}
    for title, options in {
        "report": [],
        **{f"report --{form}": [f"--{form}", *to] for form, to in forms.items()},
    }.items():
        megabytes, seconds = report(kafka, options)
        table.row(f"{title}: memory, MB", f"{megabytes:,.0f}", f"{MEGABYTES}")
        table.row(f"{title}: CPU seconds", f"{seconds:.1f}", f"{CPU_SECONDS:g}")
        if megabytes > MEGABYTES or seconds > CPU_SECONDS:
            table.missed.append(f"{title}: {megabytes:,.0f} MB and {seconds:.1f} CPU s")
    return table


def send(kafka: KafkaSettings, topics: Topics) -> None:
    """Reports with every gap that can occur, whose bits are set as those of an even distribution."""
    rng, question = np.random.default_rng(0), SCHEME.questions[0]
    layout = question.mechanism.encoding.answer
    assert isinstance(layout, PackedBits)
    chance = question.channel.support(np.full(VALUES, 1 / VALUES))
    sink = KafkaSink(kafka, topics.reports)
    for period in range(PERIODS):
        for number in range(FRAMES):
            tokens = np.arange(number * ROWS + 1, (number + 1) * ROWS + 1, dtype=np.uint64)
            gaps = rng.integers(1, HORIZON + 1, ROWS).astype(np.uint16)
            answers = layout.pack(rng.random((ROWS, VALUES)) < chance)
            frame = Frame("large", SCHEME.fingerprint, period, tokens, gaps, {"cell": answers})
            sink.send(0, FRAME, encode_frame(frame, SCHEME))
        sink.send(0, CLOCK, encode_clock(Clock("large", period), KEY))
    sink.close()


def report(kafka: KafkaSettings, options: list[str]) -> tuple[float, float]:
    """The memory in MB and the CPU seconds of `hearsay report`."""
    command = [sys.executable, "-c", REPORT, "report", "--kafka", kafka.bootstrap, *options]
    done = subprocess.run(command, env=os.environ, capture_output=True, text=True, timeout=WAIT_SECONDS, check=True)
    megabytes, seconds = json.loads(done.stderr.splitlines()[-1])
    return megabytes, seconds
