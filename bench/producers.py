"""A fleet of a million devices beside what it stands on, in one run.

    look-up        the memo store alone, all memos there, a new period committed
    bare Kafka     kafka-python sending the same frames, ready-made, with the settings of our sink
    fleet, store   scenario to acknowledgement by all replicas, every memo from Redis
    fleet, cache   the same, memos from the process's own cache

Rounds alternate, so that whatever else the machine does hits all of them; ratios are of medians. A fleet's round is one
period: who is there, status, memos, reports, frames, acknowledgement, presence recorded, clock. Bare Kafka sends its
frames a few times in a round, or it would be measured over moments too short to be disturbed.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import numpy as np

from bench._tables import Table
from memo_store.store import MemoStore
from producers.fleet import CACHE_BYTES, Fleet
from producers.reporting import Reporter
from producers.scenarios import Scenario, scenario
from producers.sinks import KafkaSink
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from servers.kafka_broker import KafkaBroker
from servers.redis_server import local
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, create

DEVICES, ROUNDS = 1_000_000, 7
BARE_TIMES = 4
WANTED = {"fleet, store": ("look-up", 0.5), "fleet, cache": ("bare Kafka", 0.2)}
CASES = (("l-grr", 10), ("l-osue", 100))
KEY = bytes(32)
Case = tuple[str, int]
Rates = dict[str, float]


class Kept:
    """Frames in memory, ready to be sent."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.records: list[tuple[int, str, bytes]] = []

    def send(self, partition: int, content_type: str, value: bytes) -> None:
        self.records.append((partition, content_type, value))

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


def survey(mechanism: str, k: int, id: str) -> Scheme:
    text = (
        f"{{id: {id}, start: 2026-01-01T00:00:00Z, period: 1d, clock: source, eps_inf: 2, eps_1: 1, horizon: 7, "
        f"attributes: [{{name: area, range: {{last: {k - 1}}}, mechanism: {mechanism}}}]}}"
    )
    return Scheme(parse_survey(text))


def world(k: int) -> Scenario:
    """All devices are there all the time and keep their values: every memo has been made before it is timed."""
    names = tuple(str(i) for i in range(k))
    return scenario(
        "telemetry", devices=DEVICES, periods=ROUNDS + 1, presence=1.0, change=0.0, attributes={"area": names}
    )


def measure(settings: KafkaSettings, topic: str, store: MemoStore, case: Case) -> Rates:
    """Median reports a second of each way."""
    seconds: dict[str, list[float]] = defaultdict(list)

    def clocked(what: str, work: Callable[[], object], times: int = 1) -> None:
        begun = time.perf_counter()
        for _ in range(times):
            work()
        seconds[what].append((time.perf_counter() - begun) / times)

    mechanism, k = case
    keyring, everyone, truth = Keyring.generate(), np.arange(DEVICES, dtype=np.uint64), world(k)
    with closing(KafkaSink(settings, topic)) as sink:
        fleets = {}
        for what, cache in (("fleet, store", 0), ("fleet, cache", CACHE_BYTES)):
            scheme = survey(mechanism, k, f"{mechanism}-{cache}")
            fleets[what] = Fleet(scheme, keyring, store.survey(Respondent(scheme, keyring)), sink, truth, KEY, cache)
            fleets[what].run([0])  # memos are made, tables are built
        alone = survey(mechanism, k, f"{mechanism}-alone")
        memos, kept = store.survey(Respondent(alone, keyring)), Kept(sink.partitions)
        Reporter(Respondent(alone, keyring), memos, memos.presence, kept).report(truth.presences(0))

        def bare() -> None:
            for record in kept.records:
                sink.send(*record)
            sink.flush()

        bare()
        for period in range(1, ROUNDS + 1):
            values = truth.presences(period).values["area"]
            clocked("look-up", partial(memos.lookup, alone.questions[0], everyone, values, period))
            clocked("bare Kafka", bare, BARE_TIMES)
            for what, fleet in fleets.items():
                clocked(what, partial(fleet.run, [period]))
    return {what: DEVICES / float(np.median(taken)) for what, taken in seconds.items()}


def run() -> Table:
    found = Table(
        f"Fleet: scenario to acknowledgement, {DEVICES:,} devices, one process, medians of {ROUNDS} rounds",
        ("", "reports/s", "of its base", "wanted"),
    )
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = KafkaBroker(directory / "kafka").start()
        stack.callback(broker.stop)
        settings, topics = KafkaSettings(bootstrap=broker.bootstrap), Topics("bench")
        create(settings, topics)
        store = stack.enter_context(MemoStore(stack.enter_context(local(directory / "redis")).url))
        for case in CASES:
            _report(found, f"{case[0]} k={case[1]}", measure(settings, topics.reports, store, case))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found.remarks.append(f"peak memory of this process: {peak:,.0f} MB")
    return found


def _report(found: Table, name: str, rates: Rates) -> None:
    for what, rate in rates.items():
        base, target = WANTED.get(what, ("", 0.0))
        ratio = rate / rates[base] if base else 0.0
        cells = (f"{ratio:.2f}", f"{target} of {base}{'' if ratio >= target else '  missed'}") if base else ("", "")
        found.row(f"{name}: {what}", f"{rate:,.0f}", *cells)
        if ratio < target:
            found.missed.append(f"{name}: {what} at {ratio:.2f} of {base} instead of {target}")
