"""`hearsay gateway` in front of a local broker, against a bare handler of the same server that only parses the JSON.

Single reports at 256 and 1,500 connections, arrays of 1,000 reports, the time of a confirmed answer, and the memory of
a million requests. Gateway, broker and load generator share the machine; the bare handler has no broker to wait for. So
the ratio of CPU is shown beside that of requests: it does not depend on who else uses the machine.

Decides whether the gateway keeps an HTTP server of its own. Run it when the server, the checks of a report or the
writing to Kafka change.
"""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from bench._measuring import Table, broker
from bench._processes import ServerProcess
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from servers.ports import free_port
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, create, publish

SECONDS, ROUNDS = 5.0, 3
AT_LEAST, TIMES = 0.5, 20.0
MANY = 1000
MEMORY_REQUESTS, MORE_MEGABYTES = 1_000_000, 20.0
SCHEME = Scheme(
    parse_survey(
        f"{{id: buttons, start: {datetime.now(UTC):%Y-%m-%dT00:00:00Z}, period: 30d, eps_inf: 2, eps_1: 1, horizon: 7, "
        "attributes: [{name: colour, values: [red, green, blue]}]}"
    )
)
HEAD = f'{{"survey":"buttons","fingerprint":"{SCHEME.fingerprint}","period":"00000000","token":"'
TAIL = '","gap":"0001","answers":{"colour":"01"}}'


def run() -> Table:
    table = Table("The gateway", ("", "bare", "gateway", "ratio", "CPU, us a request", "ratio", "p99, ms"))
    with broker() as (kafka, directory):
        topics = Topics("gateway", partitions=4, merge_partitions=1)
        create(kafka, topics)
        publish(kafka, topics, SCHEME.survey)
        with bare(directory).serving() as plain, gateway(kafka, topics, directory).serving() as own:
            singles = {connections: compare(table, plain, own, connections) for connections in (256, 1500)}
            many = median(load(own, 16, MANY)["per_second"] for _ in range(ROUNDS)) * MANY
            times = many / singles[256]
            table.row(f"reports/s, {MANY:,} a request", "", f"{many:,.0f}", f"{times:.1f} of singles", "", "", "")
            require(table, f"{MANY:,} reports a request: {TIMES:g} times the single reports", times >= TIMES)
            remember(table, own)
    return table


def compare(table: Table, plain: ServerProcess, own: ServerProcess, connections: int) -> float:
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


def measured(server: ServerProcess, connections: int) -> dict[str, float]:
    """Requests a second, CPU seconds of the server for each, and the slowest hundredth of the answers."""
    before = server.cpu_seconds
    found = load(server, connections)
    spent = server.cpu_seconds - before
    return {"rate": found["per_second"], "cpu": spent / found["answered"], "p99": found["p99"]}


def remember(table: Table, server: ServerProcess) -> None:
    """The resident memory after a tenth of a million requests, and after all of them."""
    done, first = 0.0, None
    while done < MEMORY_REQUESTS:
        done += load(server, 256, seconds=10.0)["per_second"] * 10
        if first is None and done >= MEMORY_REQUESTS / 10:
            first = server.resident_megabytes
    last = server.resident_megabytes
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


def load(server: ServerProcess, connections: int, reports: int = 1, seconds: float = SECONDS) -> dict[str, float]:
    command = [sys.executable, "-m", "bench._load", *map(str, (server.port, connections, seconds, reports)), HEAD, TAIL]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 120, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def bare(directory: Path) -> ServerProcess:
    port = free_port()
    return ServerProcess(directory / "bare.log", port, "-m", "bench._bare", str(port))


def gateway(kafka: KafkaSettings, topics: Topics, directory: Path) -> ServerProcess:
    port = free_port()
    words = "-m", "hearsay", "gateway", "--app", topics.prefix, "--port", str(port)
    return ServerProcess(directory / "gateway.log", port, *words, HEARSAY_KAFKA_BOOTSTRAP=kafka.bootstrap)
