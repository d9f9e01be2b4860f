"""How cost grows: each row is measured at two sizes, in CPU seconds, and compared with linear growth.

A row's slope is the power of the size with which its cost grows: 1 is linear, 0 constant. Runs are those of
`hearsay run`, with all their processes; what a run of nearly nothing takes is subtracted, so sizes are such that much
more is left than that varies by. Merging and writing are measured alone, in this process. Latency and starting are
those of workers on a broker.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from math import log
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.brokers import broker
from bench.stream import KEY, PARTITIONS, ROWS, SCHEME, make
from bench.tables import Table, best_of
from bench.trickle import until_all_count
from hearsay.running.worker_process import workers
from producers.sinks import KafkaSink
from protocols.randomness import Keyring
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from protocols.wire import FRAME, Frame, encode_frame
from servers.settings import KafkaSettings
from stream_app.counting.counters import Counts, Statistics
from stream_app.counting.judging import Record
from stream_app.counting.partials import Part, Progress, encode_partial
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.faust_app.partitions.pace import PROVISIONAL_SECONDS, PROVISIONAL_SHARE
from stream_app.kafka import KafkaResults
from stream_app.log.flushes import PARTIALS, Flush, Output
from stream_app.merging.merger import Merger

DEVICES, PERIODS, VALUES = 20_000, 5, 16
MANY_DEVICES = 100_000
FAKES = "eps: 2, solution: rs+fd"
GOES, NOISE = 2, 0.3
"""How often a run is made (the cheapest counts), and the CPU seconds by which two runs of nearly nothing differ."""
MERGED_PARTITIONS = 64
MERGED_SURVEYS = 200, 1_000
LINEAR, RUN_SECONDS = 1.1, 600
LIVE_SHARE = 0.1
AMPLIFICATION = 20.0
WRITING_REPORTS, WRITING_SECONDS = 875, 200
FIRST_SECONDS, BOTH_SECONDS, WAIT_SECONDS = 1.0, 8.0, 60.0


class Run(NamedTuple):
    """One run of a survey with attributes of the same size."""

    devices: int = DEVICES
    periods: int = PERIODS
    attributes: int = 1
    values: int = VALUES
    horizon: int = 7
    terms: str = "eps_inf: 4, eps_1: 2"
    mechanism: str = "auto"

    def survey(self) -> str:
        asked = ", ".join(
            f"{{name: a{i}, range: {{last: {self.values - 1}}}, mechanism: {self.mechanism}}}"
            for i in range(self.attributes)
        )
        return (
            f"{{id: growth, start: 2026-01-05T00:00:00Z, period: 1d, clock: source, {self.terms}, "
            f"horizon: {self.horizon}, attributes: [{asked}]}}"
        )


class Row(NamedTuple):
    """One thing that grows, from a small to a large size, with the run of each size."""

    what: str
    small: int
    large: int
    run: Callable[[int], Run]
    wanted: float = LINEAR


GROWING = (
    Row("devices", 200_000, 1_000_000, lambda size: Run(devices=size)),
    Row("periods", 10, 50, lambda size: Run(devices=MANY_DEVICES, periods=size)),
    Row("attributes, smp, the same answers", 2, 50, lambda d: Run(attributes=d), log(2) / log(25)),
    Row("attributes, spl", 2, 20, lambda d: Run(50_000, attributes=d, terms="eps_inf: 40, eps_1: 20, solution: spl")),
    Row(
        "attributes, rs+fd",
        2,
        20,
        lambda d: Run(50_000, attributes=d, terms=FAKES, mechanism="grr"),
    ),
    Row("values, direct answers", 1_000, 10_000, lambda k: Run(MANY_DEVICES, values=k, mechanism="l-grr")),
    Row("values, bits", 100, 1_000, lambda k: Run(MANY_DEVICES, values=k, mechanism="l-osue")),
    Row("horizon", 20, 100, lambda h: Run(devices=2_000, periods=100, horizon=h)),
)


def run() -> Table:
    found = Table("Growth: CPU seconds", ("", "from", "to", "CPU s", "CPU s", "slope", "at most"))
    nearly_nothing = Run(devices=100, periods=1)
    cpu_seconds(nearly_nothing)  # the first ones compile what later ones load
    nothing = cpu_seconds(nearly_nothing)
    found.row("a run of nearly nothing", "", "", f"{nothing:.2f}", "", "", "")
    for row in GROWING:
        before, after = (max(cpu_seconds(row.run(size)) - nothing, NOISE) for size in (row.small, row.large))
        add(found, row.what, (row.small, row.large), (before, after), row.wanted)
    merged(found)
    writing(found)
    with broker() as (kafka, directory):
        starting(found, kafka, directory)
    return found


def add(found: Table, what: str, sizes: tuple[int, int], costs: tuple[float, float], wanted: float) -> None:
    """Add a row, and say so if its cost grows faster than wanted."""
    (small, large), (before, after) = sizes, costs
    slope = log(after / before) / log(large / small)
    found.row(what, f"{small:,}", f"{large:,}", f"{before:.2f}", f"{after:.2f}", f"{slope:.2f}", f"{wanted:.2f}")
    if slope > wanted:
        found.missed.append(f"{what}: the slope is {slope:.2f}, not {wanted:.2f}")


def say(found: Table, what: str, value: float, unit: str, wanted: float) -> None:
    """Add a remark, and say so if the value is larger than wanted."""
    found.remarks.append(f"{what}: {value:.2f} {unit}, wanted at most {wanted:g}")
    if value > wanted:
        found.missed.append(found.remarks[-1])


def cpu_seconds(one: Run) -> float:
    """What `hearsay run` and its servers take, the least of some goes."""
    return min(_cpu_seconds(one) for _ in range(GOES))


def _cpu_seconds(one: Run) -> float:
    with tempfile.TemporaryDirectory(prefix="hearsay-bench-") as name:
        survey = Path(name) / "survey.yaml"
        survey.write_text(one.survey())
        size = ["--devices", str(one.devices), "--periods", str(one.periods)]
        command = [sys.executable, "-m", "hearsay", "run", str(survey), *size, "--data", f"{name}/data"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            command, env={**os.environ, "NO_COLOR": "1"}, capture_output=True, text=True, timeout=RUN_SECONDS
        )
        assert done.returncode == 0, done.stderr[-2000:]
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def merged(found: Table) -> None:
    """The merge of many surveys that are counted in many partitions."""
    small, large = (Merge(count) for count in MERGED_SURVEYS)
    what = f"surveys of {MERGED_PARTITIONS} partitions"
    add(found, f"{what}: all live results", MERGED_SURVEYS, (small.live(), large.live()), LINEAR)
    some = large.some_live()
    share = some / max(PROVISIONAL_SECONDS, some / PROVISIONAL_SHARE)
    say(found, f"live results of {MERGED_SURVEYS[1]:,} {what}", share, "of a core", LIVE_SHARE)
    add(found, f"{what}: finals", MERGED_SURVEYS, (small.finals(), large.finals()), LINEAR)


class Merge:
    """A merge of so many surveys, which has a part of each of their partitions."""

    def __init__(self, surveys: int) -> None:
        terms = Run().survey()
        self._schemes = {
            f"s{n}": Scheme(parse_survey(terms.replace("id: growth", f"id: s{n}"))) for n in range(surveys)
        }
        self._merger = Merger(0, MERGED_PARTITIONS, self._schemes.get, Keyring(bytes(16)))
        self._change()
        self._merger.flush(True, True)

    def live(self) -> float:
        """CPU seconds for the live results of all surveys."""
        self._change(offset=2, partitions=1)
        return best_of(1, lambda: self._merger.flush(True, True), time.process_time, warm=False)

    def some_live(self) -> float:
        """CPU seconds of one flush, with as many live results as one has, while those of all surveys are old."""
        self._change(offset=3, partitions=1)
        self._merger.flush(False)
        return best_of(3, lambda: self._merger.flush(True), time.process_time, warm=False)

    def finals(self) -> float:
        """CPU seconds for the finals of all surveys, with all that is written for them."""

        def close() -> None:
            for name in self._schemes:
                for partition in range(MERGED_PARTITIONS):
                    self._apply(Progress(name, partition, 9, 0, {}, {}))
            self._merger.flush(True, True)

        return best_of(1, close, time.process_time, warm=False)

    def _change(self, offset: int = 1, partitions: int = MERGED_PARTITIONS) -> None:
        for name in self._schemes:
            for partition in range(partitions):
                self._apply(Part(name, 0, partition, offset, False, some_counts()))

    def _apply(self, partial: Part | Progress) -> None:
        self._merger.apply(self._merger.next_offset, encode_partial(partial))


def some_counts() -> Counts:
    supports = np.full((1, VALUES), 10)
    return {"a0": Statistics(np.array([1], dtype=np.uint16), np.array([10 * VALUES]), supports)}


def writing(found: Table) -> None:
    """What counting and merging write, beside what came in: few reports for a large counter, flushed every second."""
    terms = Run(values=13_000, horizon=30, mechanism="l-grr").survey()
    scheme = Scheme(parse_survey(terms))
    counter = PartitionCounter(0, 1, {"growth": scheme}.get, KEY)
    merger = Merger(0, 1, {"growth": scheme}.get, Keyring(bytes(16)))
    came_in, written = [0], [0]  # after each second
    for second in range(WRITING_SECONDS):
        value = frame(scheme, second, WRITING_REPORTS)
        counter.apply(Record(counter.next_offset, FRAME, value))
        for item in (flush := counter.flush(second % 3 == 0)):
            if isinstance(item, Output) and item.topic == PARTIALS:
                merger.apply(merger.next_offset, item.value)
        came_in.append(came_in[-1] + len(value))
        written.append(written[-1] + size_of(flush) + size_of(merger.flush(second % 3 == 0)))
    half = WRITING_SECONDS // 2  # before it, a number of writes that is the same in every period
    times = (written[-1] - written[half]) / (came_in[-1] - came_in[half])
    what = f"written, of what came in ({WRITING_REPORTS} reports/s, {scheme.questions[0].k:,} values)"
    say(found, what, times, "times", AMPLIFICATION)


def frame(scheme: Scheme, number: int, rows: int) -> bytes:
    tokens = np.arange(1 + number * rows, 1 + (number + 1) * rows, dtype=np.uint64)
    question = scheme.questions[0]
    answers = (tokens % question.k).astype(question.mechanism.encoding.answer.dtype)
    gaps = (tokens % scheme.survey.horizon + 1).astype(np.uint16)
    return encode_frame(Frame("growth", scheme.fingerprint, 0, tokens, gaps, {question.name: answers}), scheme)


def size_of(flush: Flush) -> int:
    return sum(len(item.value or b"") for item in flush)


def starting(found: Table, kafka: KafkaSettings, directory: Path) -> None:
    """The first result of a period when a worker is idle, and how long workers need until they count."""
    topics = make(kafka, "first")
    with workers(1, kafka, topics, KEY, directory / "first") as (worker,):
        worker.wait_until_ready()
        time.sleep(3)  # it is idle
        results, sink = KafkaResults(kafka, topics), KafkaSink(kafka, topics.reports)
        tokens = np.arange(1, ROWS + 1, dtype=np.uint64) * np.uint64(PARTITIONS)
        answers = {"area": (tokens % 16).astype(np.uint8)}
        one = Frame("bench", SCHEME.fingerprint, 0, tokens, np.ones(ROWS, dtype=np.uint16), answers)
        sink.send(0, FRAME, encode_frame(one, SCHEME))
        sink.close()
        began = time.perf_counter()
        while (live := results.live("bench")) is None or not live.open:
            assert time.perf_counter() - began < WAIT_SECONDS, f"no live result within {WAIT_SECONDS:.0f} seconds"
        say(found, "the first result of a period, of an idle worker", time.perf_counter() - began, "s", FIRST_SECONDS)
        worker.leave()
    found.remarks.append(f"one worker, until it counts: {until_all_count(kafka, directory / 'one', 1):.1f} s")
    say(found, "two workers, until both count", until_all_count(kafka, directory / "two", 2), "s", BOTH_SECONDS)
