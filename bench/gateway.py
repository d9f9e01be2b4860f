"""`hearsay gateway` in front of a local broker, against a bare handler of the same server that only parses the JSON.

Single reports at 256 and 1,500 connections, arrays of 1,000 reports, the time of a confirmed answer, and the memory of
a million requests. Gateway, broker and load generator share the machine; the bare handler has no broker to wait for. So
the ratio of CPU is shown beside that of requests: it does not depend on who else uses the machine.

Decides whether the gateway keeps an HTTP server of its own. Run it when the server, the checks of a report or the
writing to Kafka change.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from bench._brokers import broker
from bench._tables import Table
from protocols.errors import ServerError
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from servers.ports import free_port
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, create, publish

SECONDS, ROUNDS = 5.0, 3
AT_LEAST, TIMES = 0.5, 20.0
MANY = 1000
MEMORY_REQUESTS, MORE_MEGABYTES = 1_000_000, 20.0
START_SECONDS = 60.0
SCHEME = Scheme(
    parse_survey(
        f"{{id: buttons, start: {datetime.now(UTC):%Y-%m-%dT00:00:00Z}, period: 30d, eps_inf: 2, eps_1: 1, horizon: 7, "
        "attributes: [{name: colour, values: [red, green, blue]}]}"
    )
)
Server = tuple[int, int]  # its port and its process id
HEAD = f'{{"survey":"buttons","fingerprint":"{SCHEME.fingerprint}","period":"00000000","token":"'
TAIL = '","gap":"0001","answers":{"colour":"01"}}'


def run() -> Table:
    table = Table("The gateway", ("", "bare", "gateway", "ratio", "CPU, us a request", "ratio", "p99, ms"))
    with broker() as (kafka, directory):
        topics = Topics("gateway", partitions=4, merge_partitions=1)
        create(kafka, topics)
        publish(kafka, topics, SCHEME.survey)
        with bare() as plain, gateway(kafka, topics, directory) as own:
            port, process = own
            singles = {connections: compare(table, plain, own, connections) for connections in (256, 1500)}
            many = median(load(port, 16, MANY)["per_second"] for _ in range(ROUNDS)) * MANY
            times = many / singles[256]
            table.row(f"reports/s, {MANY:,} a request", "", f"{many:,.0f}", f"{times:.1f} of singles", "", "", "")
            require(table, f"{MANY:,} reports a request: {TIMES:g} times the single reports", times >= TIMES)
            remember(table, port, process)
    return table


def compare(table: Table, plain: Server, own: Server, connections: int) -> float:
    """Single reports, one round each in turn. Returns the gateway's rate."""
    rounds = [(measured(plain, connections), measured(own, connections)) for _ in range(ROUNDS)]
    rates, costs = ([median(round[side][what] for round in rounds) for side in (0, 1)] for what in ("rate", "cpu"))
    ratio = median(own["rate"] / alone["rate"] for alone, own in rounds)
    p99 = median(own["p99"] for _, own in rounds)
    table.row(
        f"requests/s, {connections:,} connections", f"{rates[0]:,.0f}", f"{rates[1]:,.0f}", f"{ratio:.2f}",
        f"{1e6 * costs[0]:.0f}, {1e6 * costs[1]:.0f}", f"{costs[0] / costs[1]:.2f}", f"{1000 * p99:.0f}",
    )  # fmt: skip
    require(table, f"{connections:,} connections: at least {AT_LEAST:g} of the bare handler", ratio >= AT_LEAST)
    return rates[1]


def measured(server: Server, connections: int) -> dict[str, float]:
    """Requests a second, CPU seconds of the server for each, and the slowest hundredth of the answers."""
    port, process = server
    before = cpu_seconds(process)
    found = load(port, connections)
    spent = cpu_seconds(process) - before
    return {"rate": found["per_second"], "cpu": spent / found["answered"], "p99": found["p99"]}


def cpu_seconds(process: int) -> float:
    """Of a process, in its own code and in the system's."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def remember(table: Table, port: int, process: int) -> None:
    """The resident memory after a tenth of a million requests, and after all of them."""
    done, first = 0.0, None
    while done < MEMORY_REQUESTS:
        done += load(port, 256, seconds=10.0)["per_second"] * 10
        if first is None and done >= MEMORY_REQUESTS / 10:
            first = resident(process)
    last = resident(process)
    assert first is not None
    table.row(
        f"resident MB after {MEMORY_REQUESTS / 10:,.0f} and {done:,.0f} requests",
        f"{first:.0f}",
        f"{last:.0f}",
        "",
        "",
        "",
        "",
    )
    require(table, f"memory is flat: {MORE_MEGABYTES:g} MB more at most", last - first <= MORE_MEGABYTES)


def require(table: Table, figure: str, reached: bool) -> None:
    if not reached:
        table.missed.append(figure)


def load(port: int, connections: int, reports: int = 1, seconds: float = SECONDS) -> dict[str, float]:
    command = [sys.executable, "-m", "bench._load", *map(str, (port, connections, seconds, reports)), HEAD, TAIL]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 120, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def resident(process: int) -> float:
    """In megabytes."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextmanager
def bare() -> Iterator[Server]:
    port = free_port()
    with running([sys.executable, "-m", "bench._bare", str(port)], {}, port) as process:
        yield port, process


@contextmanager
def gateway(kafka: KafkaSettings, topics: Topics, directory: Path) -> Iterator[Server]:
    port = free_port()
    command = [sys.executable, "-m", "hearsay", "gateway", "--app", topics.prefix, "--port", str(port)]
    environment = {"HEARSAY_KAFKA_BOOTSTRAP": kafka.bootstrap}
    with running(command, environment, port, directory / "gateway.log") as process:
        yield port, process


@contextmanager
def running(command: list[str], environment: dict[str, str], port: int, log: Path | None = None) -> Iterator[int]:
    """A server in a process, once it answers; its process id."""
    with (log or Path(os.devnull)).open("ab") as output:
        process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not answers(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise ServerError(f"{' '.join(command)} did not start within {START_SECONDS:g} s")
            time.sleep(0.05)
        yield process.pid
    finally:
        process.terminate()
        process.wait(30)


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False
