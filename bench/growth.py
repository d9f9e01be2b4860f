"""How cost grows: in CPU seconds, and compared with linear growth.

A row's slope is the power of the size with which its cost grows: 1 is linear, 0 constant. Rows of `hearsay run` have
three sizes, the smallest next to nothing, and the slope is that of what the larger two add to it. Merging and writing
are measured alone, in this process. Latency and starting are those of workers on a broker.

Sizes take turns, several times, and the least costs count. Beside a slope is what it would be without any one of the
turns: if these differ much, another program was busy, and the slope says little.

Decides whether large surveys can be run, or need another design. Run it when something is kept for every device,
value, period, attribute or survey that was not kept before, or when a loop goes through them.
"""

import time
from functools import partial
from math import log
from pathlib import Path
from statistics import median

import numpy as np

from bench._measuring import Figure, Goes, Table, broker, in_turns, own_seconds
from bench._processes import workers
from bench._runs import (
    CAPPED,
    EVENTS,
    EVENTS_A_DAY,
    GROWING,
    LINEAR,
    VALUES,
    Run,
    in_noise,
    replay_seconds,
    run_seconds,
    slope,
)
from bench.stream import KEY, PARTITIONS, ROWS, SCHEME, make
from producers.kafka_sink import KafkaSink
from protocols.randomness import Keyring
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from protocols.wire import FRAME, Frame, encode_frame
from servers.settings import KafkaSettings
from stream_app.counting.counters import Counts, Statistics
from stream_app.counting.judging import Record
from stream_app.counting.partials import Part, Progress, encode_partial
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.faust_app.task import FLUSH_EVERY_SECONDS, PROVISIONAL_SECONDS, PROVISIONAL_SHARE, QUIET_SECONDS
from stream_app.kafka import KafkaMessages
from stream_app.log.flushes import PARTIALS, Flush, Output
from stream_app.merging.merger import Merger
from views.reading import Results

NEARLY_NOTHING = Run(devices=100, periods=1)
CAPPED_DEVICES, CAPPED_TIMES = 500_000, 2.5
"""With a cap, Redis is asked in every period which values each device has used."""
MANY_ATTRIBUTES, MANY_TIMES, RATIO_GOES = 50, 3.0, 9
"""Each attribute has histograms, nowcasts and tables of its own, however few devices were asked for it."""
MERGED_PARTITIONS = 64
MERGED_SURVEYS = 200, 1_000
LIVE_SHARE = 0.1
MERGES = 3
HORIZONS, HUNDRED, SOME_FINALS, CONSTANT = (100, 400), 100, 15, 1.3
AMPLIFICATION = 20.0
WRITING_REPORTS, WRITING_SECONDS = 875, 200
FIRST_SECONDS, BOTH_SECONDS, WAIT_SECONDS = QUIET_SECONDS + 2 * FLUSH_EVERY_SECONDS, 8.0, 60.0
"""Few reports are counted in memory for a while; what was counted is merged at the next flush."""


def run() -> Table:
    found = Table("Growth: CPU seconds", ("", "sizes", "CPU s", "slope", "at most"))
    run_seconds(NEARLY_NOTHING, goes=1)  # the first one compiles what later ones load
    (nothing,) = run_seconds(NEARLY_NOTHING).least
    found.row("a run of nearly nothing", "", f"{nothing:.2f}", "", "")
    for row in GROWING:
        goes = run_seconds(*map(row.run, row.sizes))
        power = goes.figure(partial(slope, sizes=row.sizes))
        note = ", mostly noise" if in_noise(goes.least) else ""
        add(found, row.what + note, row.sizes, goes, power, row.wanted)
    capped = run_seconds(Run(CAPPED_DEVICES), Run(CAPPED_DEVICES, terms=CAPPED)).times(0, 1).value
    what = f"a run of {CAPPED_DEVICES:,} devices with memo_cap, against one without"
    say(found, what, capped, "times", CAPPED_TIMES)
    times = run_seconds(Run(), Run(attributes=MANY_ATTRIBUTES), goes=RATIO_GOES).times(0, 1).value
    what = f"smp with {MANY_ATTRIBUTES} attributes, the same answers, against one attribute, whole runs"
    say(found, what, times, "times", MANY_TIMES)
    replays(found)
    merged(found)
    horizons(found)
    writing(found)
    with broker() as (kafka, directory):
        starting(found, kafka, directory)
    return found


def replays(found: Table) -> None:
    """Replays of few and of many events: what each event adds, and its share of the whole."""
    goes = replay_seconds(*EVENTS)
    few, many = goes.least
    add_two(found, "events of a replay", EVENTS, goes)
    each = (many - few) / (EVENTS[1] - EVENTS[0]) * 1e6
    found.remarks.append(f"a replay, {EVENTS_A_DAY} events for each report: an event adds {each:.2f} us of CPU")
    found.remarks.append(f"a replay of {EVENTS[1]:,} events, all of it: {many / EVENTS[1] * 1e6:.2f} us an event")


def add(
    found: Table, what: str, sizes: tuple[int, ...], goes: Goes, power: Figure, wanted: float = LINEAR, times: int = 1
) -> None:
    """Add a row, with costs of so many times the work. Say so if its cost grows faster than wanted."""
    shown = ", ".join(f"{size:,}" for size in sizes), ", ".join(f"{cost * times:.2f}" for cost in goes.least)
    found.row(what, *shown, str(power), f"{wanted:.2f}")
    if power.value > wanted:
        found.missed.append(f"{what}: the slope is {power}, not {wanted:.2f}")


def add_two(found: Table, what: str, sizes: tuple[int, int], goes: Goes, times: int = 1) -> None:
    """Add a row of two sizes, with no cost that is the same for both."""
    power = goes.figure(lambda costs: log(costs[1] / costs[0]) / log(sizes[1] / sizes[0]))
    add(found, what, sizes, goes, power, times=times)


def say(found: Table, what: str, value: float, unit: str, wanted: float) -> None:
    """Add a remark, and say so if the value is larger than wanted."""
    found.remarks.append(f"{what}: {value:.2f} {unit}, wanted at most {wanted:g}")
    if value > wanted:
        found.missed.append(found.remarks[-1])


def merged(found: Table) -> None:
    """The merge of many surveys that are counted in many partitions."""
    small, large = (Merge(count) for count in MERGED_SURVEYS)
    what = f"surveys of {MERGED_PARTITIONS} partitions"
    add_two(found, f"{what}: all live results", MERGED_SURVEYS, in_turns(MERGES, small.live, large.live))
    some = large.some_live()
    share = some / max(PROVISIONAL_SECONDS, some / PROVISIONAL_SHARE)
    say(found, f"live results of {MERGED_SURVEYS[1]:,} {what}", share, "of a core", LIVE_SHARE)
    add_two(found, f"{what}: finals", MERGED_SURVEYS, in_turns(MERGES, small.finals, large.finals))


def horizons(found: Table) -> None:
    """Finals of surveys with longer and longer horizons, and of one survey long after its horizon.

    They take turns. Two finals of the same survey can differ by half, so of each turn only the ratio counts.
    """
    short, long = HORIZONS
    goes = in_turns(SOME_FINALS, Finals(short, short).next, Finals(long, long).next, Finals(long, 2 * long).next)
    add_two(found, f"horizon: {HUNDRED} finals", HORIZONS, Goes(tuple(turn[:2] for turn in goes.turns)), times=HUNDRED)
    later = median(after_two / after_one for _, after_one, after_two in goes.turns)
    say(found, f"a final after two horizons of {long}, of one after the first", later, "times", CONSTANT)


class Finals:
    """The finals of one survey, after so many periods."""

    def __init__(self, horizon: int, periods: int) -> None:
        scheme = Scheme(parse_survey(Run(horizon=horizon).survey()))
        self._merger = Merger(0, 1, {"growth": scheme}.get, Keyring(bytes(16)))
        self._horizon, self._period = horizon, 0
        for _ in range(periods):
            self.next()

    def next(self) -> float:
        """CPU seconds of the next final."""
        period, merger = self._period, self._merger
        gaps = np.arange(1, min(period + 1, self._horizon) + 1, dtype=np.uint16)
        counts = {"a0": Statistics(gaps, np.full(len(gaps), 10 * VALUES), np.full((len(gaps), VALUES), 10))}
        part = encode_partial(Part("growth", period, 0, 2 * period, True, counts))
        clock = encode_partial(Progress("growth", 0, 2 * period + 1, period, {}, {}))

        def close() -> None:
            merger.apply(merger.next_offset, part)
            merger.apply(merger.next_offset, clock)
            merger.flush(True, True)

        self._period += 1
        return own_seconds(close)


class Merge:
    """A merge of so many surveys, which has a part of each of their partitions."""

    def __init__(self, surveys: int) -> None:
        terms = Run().survey()
        self._schemes = {
            f"s{n}": Scheme(parse_survey(terms.replace("id: growth", f"id: s{n}"))) for n in range(surveys)
        }
        self._merger = Merger(0, MERGED_PARTITIONS, self._schemes.get, Keyring(bytes(16)))
        self._period, self._offset = 0, 0
        self._change(MERGED_PARTITIONS)
        self._merger.flush(True, True)

    def live(self) -> float:
        """CPU seconds for the live results of all surveys."""
        self._change(partitions=1)
        return own_seconds(lambda: self._merger.flush(True, True))

    def some_live(self) -> float:
        """CPU seconds of one flush, with as many live results as one has, while those of all surveys are old."""
        self._change(partitions=1)
        self._merger.flush(False)
        return min(own_seconds(lambda: self._merger.flush(True)) for _ in range(MERGES))

    def finals(self) -> float:
        """CPU seconds for the finals of all surveys, with all that is written for them. The next period has begun."""
        self._offset += 1

        def close() -> None:
            for name in self._schemes:
                for partition in range(MERGED_PARTITIONS):
                    self._apply(Progress(name, partition, self._offset, self._period, {}, {}))
            self._merger.flush(True, True)

        seconds = own_seconds(close)
        self._period += 1
        self._change(MERGED_PARTITIONS)
        self._merger.flush(True, True)
        return seconds

    def _change(self, partitions: int) -> None:
        self._offset += 1
        for name in self._schemes:
            for partition in range(partitions):
                self._apply(Part(name, self._period, partition, self._offset, False, some_counts()))

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


def until_all_count(kafka: KafkaSettings, directory: Path, count: int) -> float:
    """The seconds until a number of workers, started together, have read all there is."""
    topics = make(kafka, f"start-{count}")
    began = time.perf_counter()
    with workers(count, kafka, topics, KEY, directory) as group:
        while not all(worker.ready and worker.metric("hearsay_lag_records") == 0 for worker in group):
            time.sleep(0.05)
        return time.perf_counter() - began


def starting(found: Table, kafka: KafkaSettings, directory: Path) -> None:
    """The first result of a period when a worker is idle, and how long workers need until they count."""
    topics = make(kafka, "first")
    with workers(1, kafka, topics, KEY, directory / "first") as (worker,):
        worker.wait_until_ready()
        time.sleep(3)  # it is idle
        results, sink = Results(KafkaMessages(kafka, topics)), KafkaSink(kafka, topics.reports)
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
