"""A survey as large as surveys get, end to end on Kafka: what its records and its report take.

L-OSUE, 65,536 values, a horizon of 7 periods. A worker counts a thousand reports of each of 7 periods; `hearsay report`
then reads what it published, in a process of its own. Beside it stands what a bare process takes that imports the same
libraries and only reads, decompresses and decodes the same records.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

from bench._brokers import broker
from bench._tables import Table
from hearsay.running.worker_process import workers
from producers.sinks import KafkaSink
from protocols.arrays import PackedBits
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from protocols.wire import CLOCK, FRAME, Clock, Frame, encode_clock, encode_frame
from servers.settings import KafkaSettings
from stream_app.kafka import KafkaResults, Topics, create, publish, read_topic
from stream_app.results import LIVE, MOBILITY

VALUES, HORIZON, PERIODS = 65_536, 7, 7
FRAMES, ROWS = 4, 250
WAIT_SECONDS = 600
MEGABYTES, CPU_SECONDS = 300, 3.0
GOES = 3
"""The first compiles modules; after that, the machine's other work makes the difference."""
KEY = b"an operator's key for benchmarks"
SCHEME = Scheme(
    parse_survey(
        f"{{id: large, start: 2026-01-05T00:00:00Z, period: 1d, clock: source, eps_inf: 4, eps_1: 2, "
        f"horizon: {HORIZON}, attributes: [{{name: cell, range: {{last: {VALUES - 1}}}, mechanism: l-osue}}]}}"
    )
)
REPORT = """
from hearsay.cli import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
"""
FLOOR = """
import gzip, sys
import numpy, pydantic_settings, pyarrow.compute, rich.console, typer
from pydantic_core import from_json
from kafka import KafkaConsumer, TopicPartition
bootstrap, *topics = sys.argv[1:]
for topic in topics:
    consumer, place = KafkaConsumer(bootstrap_servers=bootstrap), TopicPartition(topic, 0)
    consumer.assign([place])
    consumer.seek_to_beginning()
    end, newest = consumer.end_offsets([place])[place], {}
    while consumer.position(place) < end:
        for records in consumer.poll(timeout_ms=1000).values():
            newest.update({record.key: record.value for record in records})
    consumer.close()
    for value in newest.values():
        from_json(gzip.decompress(value) if value[:2] == b"\\x1f\\x8b" else value)
"""
USED = """
import json, pathlib, sys, time
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
    once = partial(measured, environment=compiled(directory))
    read = [topics.surveys, topics.named(MOBILITY.name), topics.named(LIVE.name)]
    megabytes, seconds = once(FLOOR, kafka.bootstrap, *read)
    table.row("importing libraries, reading and decoding the records: memory, MB", f"{megabytes:,.0f}", "")
    table.row("importing libraries, reading and decoding the records: CPU seconds", f"{seconds:.1f}", "")
    forms = {"html": [str(directory / "page.html")], "json": [], "csv": [str(directory)], "parquet": [str(directory)]}
    for title, options in {
        "report": [],
        **{f"report --{form}": [f"--{form}", *to] for form, to in forms.items()},
    }.items():
        megabytes, seconds = once(REPORT, "report", "--kafka", kafka.bootstrap, *options)
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


def compiled(directory: Path) -> dict[str, str]:
    """An environment in which modules are compiled once, as those of an installed package are."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(directory / "compiled")}


def measured(script: str, *arguments: str, environment: dict[str, str]) -> tuple[float, float]:
    """The memory in MB and the CPU seconds of a script in a process of its own: the least of several goes."""
    command = [sys.executable, "-c", script + USED, *arguments]
    found = []
    for _ in range(GOES):
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=WAIT_SECONDS, check=True
        )
        found.append(json.loads(done.stderr.splitlines()[-1]))
    return max(megabytes for megabytes, _ in found), min(seconds for _, seconds in found)
