"""Two edges over a topic of a town's calls, a worker, a broker and a Redis that are killed; and what is published.

`make edge-chaos`, or `python -m tests.chaos --only edge --faults 4 --people 2000 --days 4`.
"""

import json
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from random import Random
from shutil import copy
from typing import Any

import numpy as np
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from analytics.mobility.model import WindowReport
from bench._processes import ServerProcess
from protocols.arrays import Floats
from protocols.survey import micros
from servers.kafka_broker import KafkaBroker
from servers.kafka_clients import DURABLE, connected
from servers.private_files import private_directory
from tests.helpers.counting import Counting
from tests.helpers.eventually import eventually
from tests.helpers.failover import ReplicatedRedis
from tests.helpers.nursery import run
from tests.helpers.town_calls import LATENESS, MARKER, PARIS, START, Call, arrivals, as_record

KEY = bytes(range(32))
Say = Callable[[str], None]
PARTITIONS, DAYS_AHEAD = 6, 3
PARTS = 8
"""Of the calls of a day: kills are between them."""
WAIT_SECONDS = 900.0
AREAS = tuple(f"area-{number:02d}" for number in range(40))
ODD_AREA, ODD_MICROSECOND = "cell-4711-", 471_147
"""Of one call of each day: a search finds them wherever they leak."""
SURVEY = f"""
id: town
start: {{start}}
period: 1d
time_zone: Europe/Paris
horizon: {{days}}
eps_inf: 4
eps_1: 2
clock: source
attributes:
  - {{{{name: area, role: area, values: [{", ".join(AREAS)}]}}}}
"""
EDGE = """
survey: survey.yaml
events: {{topic: {topic}}}
columns: {{person: msisdn, time: at, offset: ahead, area: cell}}
choose: {{area: first}}
lateness: 2h
idle: 1d
data: {data}
"""


class Town:
    """The calls of some days, of which the last four have the end of summer time; and the truth of those in time."""

    def __init__(self, people: int, days: int, seed: int) -> None:
        self.people, self.days, self._seed = people, days, seed
        self.begin = START - timedelta(days=max(0, days - 4))
        self.first = np.full((days, people), np.inf)
        """When each person first called on each day, by the calls that came in time; infinite: there was none."""
        self.area = np.full((days, people), -1)
        """The number of the area of that call; -1: of none that is listed."""
        midnight = self.begin.astimezone(PARIS)
        self._ends = [(midnight + timedelta(days=day + 1)).astimezone(UTC) for day in range(days + 1)]
        self._latest = self.begin

    def day(self, call: Call) -> int:
        return bisect_right(self._ends, call.at)

    def arrivals(self) -> Iterator[list[Call]]:
        """In the order in which they come, day by day, so that not all of them are in memory."""
        waiting: list[tuple[datetime, Call]] = []
        draws, often = np.random.default_rng(self._seed), np.linspace(0, 1, self.people)  # some hardly ever call
        for day in range(self.days):
            begin, turn = self.begin + timedelta(days=day), 7 * day % len(AREAS)  # people change areas, so memos differ
            odd = begin + timedelta(hours=20, microseconds=ODD_MICROSECOND)
            out = np.flatnonzero(draws.random(self.people) < often).tolist()
            waiting += arrivals(out, 1, self._seed + day, begin, AREAS[turn:] + AREAS[:turn])
            waiting.append((odd, Call(0, odd, ODD_AREA)))
            waiting.sort(key=itemgetter(0))
            come = bisect_right(waiting, begin + timedelta(days=1), key=itemgetter(0))
            yield [call for _, call in waiting[:come]]
            waiting = waiting[come:]
        yield [call for _, call in waiting]

    def in_time(self, call: Call) -> bool:
        """Whether a call, the next one that comes, is in time. Then it is part of the truth."""
        self._latest, day = max(self._latest, call.at), self.day(call)
        if day >= self.days or self._latest >= self._ends[day] + LATENESS:
            return False
        if call.at.timestamp() < self.first[day, call.person]:
            self.first[day, call.person] = call.at.timestamp()
            self.area[day, call.person] = -1 if call.area == ODD_AREA else AREAS.index(call.area)
        return True

    def visitors(self, first: int, last: int) -> int:
        return int(np.isfinite(self.first[first : last + 1]).any(axis=0).sum())

    def shares(self, day: int) -> Floats:
        return np.bincount(self.area[day][self.area[day] >= 0], minlength=len(AREAS)) / self.visitors(day, day)


class EdgeOrdeal:
    """Calls are written while one part after the other is killed. The same seed brings the same calls and kills."""

    def __init__(
        self, broker: KafkaBroker, counting: Counting, town: Town, seed: int, say: Callable[[str], None]
    ) -> None:
        self._broker, self._counting, self._town, self._random, self._say = broker, counting, town, Random(seed), say
        self._kafka, self._directory = counting.kafka, counting.directory
        self._topic, self._written, self._peak = f"{counting.topics.prefix}-calls", 0, 0.0
        self._late: list[Call] = []

    def run(self, kills: int) -> None:
        with connected(KafkaAdminClient, self._kafka, WAIT_SECONDS) as admin:
            admin.create_topics([NewTopic(self._topic, PARTITIONS, 1)])
        self._redis = ReplicatedRedis(self._directory / "redis").start()
        self._environment = {
            **self._counting.environment,
            "HEARSAY_CLOCK_KEY": KEY.hex(),
            "HEARSAY_REDIS_URL": self._redis.url,
        }
        start = self._town.begin.astimezone(PARIS).isoformat()
        (self._directory / "survey.yaml").write_text(SURVEY.format(start=start, days=self._town.days))
        try:
            with self._counting.workers(key=KEY) as (self._worker,):
                self._edges = [self._edge(name) for name in ("data", "twin")]
                try:
                    self._disturb(kills)
                finally:
                    for edge in self._edges:
                        self._kill(edge)
                self._compare()
        finally:
            self._redis.stop()

    def _edge(self, data: str) -> ServerProcess:
        path = self._directory / f"{data}.yaml"
        path.write_text(EDGE.format(topic=self._topic, data=data))
        words = ("-m", "hearsay", "edge", str(path), "--kafka", self._kafka.bootstrap)
        if data != "data":  # all have the key of the first one, which makes it
            key = self._directory / "data" / "fleet.key"
            eventually(key.exists, WAIT_SECONDS)
            copy(key, private_directory(self._directory / data))
        return ServerProcess(self._directory / f"{data}.log", 0, *words, **self._environment).start()

    def _disturb(self, kills: int) -> None:
        """Write all calls, and kill: the next part in turn, at moments that are spread over the days."""
        faults = {
            "of an edge": lambda: self._kill(self._random.choice(self._edges)),
            "of the worker": lambda: self._kill(self._worker),
            "of the broker": self._kill_broker,
            "of Redis, which fails over": self._redis.fail_over,
        }
        due = [((number + self._random.random()) * self._town.days / kills, number) for number in range(kills)]
        with connected(KafkaProducer, self._kafka, WAIT_SECONDS, **DURABLE) as producer:
            for day, calls in enumerate(self._town.arrivals()):
                self._until_sent(day - DAYS_AHEAD)
                for part in range(PARTS):
                    for call in calls[len(calls) * part // PARTS : len(calls) * (part + 1) // PARTS]:
                        self._write(producer, call)
                    producer.flush()
                    while due and due[0][0] <= day + part / PARTS:
                        _, number = due.pop(0)
                        kind = list(faults)[number % len(faults)]
                        time.sleep(self._random.uniform(0, 4))
                        self._say(f"kill {number + 1} of {kills}: {kind}, {self._written:,} calls written")
                        faults[kind]()
                        self._revive()
            self._until_sent(self._town.days - 2)
            for call in self._late:  # whoever reads them has sent their periods
                producer.send(self._topic, *as_record(call))

    def _write(self, producer: KafkaProducer, call: Call) -> None:
        if self._town.in_time(call):
            value, key = as_record(call)
            producer.send(self._topic, value, key)
            self._written += 1
        else:
            self._late.append(call)

    def _kill_broker(self) -> None:
        self._broker.kill()
        time.sleep(self._random.uniform(0, 2))
        self._broker.start()

    def _kill(self, process: ServerProcess) -> None:
        if process.running:
            if process is not self._worker:
                self._peak = max(self._peak, process.peak_megabytes)
            process.kill()

    def _revive(self) -> None:
        """Start what has ended, as a supervisor does: an edge ends when it cannot reach the broker or Redis."""
        for process in (self._worker, *self._edges):
            if not process.running:
                process.start()

    def _until_sent(self, day: int) -> None:
        """Wait until all partitions have sent a day, as their owners say."""

        def sent() -> bool:
            self._revive()
            return self._counting.sent_by_edges(PARTITIONS) >= day

        if day >= 0:
            eventually(sent, WAIT_SECONDS)

    def _compare(self) -> None:
        found = self._end()
        assert found["rows"] == self._written + len(self._late), (found["rows"], self._written, len(self._late))
        assert found["late"] == dict(Counter(str(self._town.day(call)) for call in self._late)), found["late"]
        results, days = self._counting.results, range(self._town.days)
        eventually(lambda: results.periods("town") == list(days), WAIT_SECONDS)
        reports = results.mobility("town")
        counted = {
            (one.first, one.last): one.visitors and one.visitors.value
            for report in reports
            for one in (*report.windows, *report.triangle)
        }
        wanted = {(first, last): self._town.visitors(first, last) for last in days for first in range(last + 1)}
        assert counted == wanted
        self._say(
            f"{self._written:,} calls in time and {len(self._late):,} late; {found['reports']:,} reports; "
            f"unique visitors of {len(wanted)} windows are exact, {wanted[0, days[-1]]:,} in all"
        )
        self._cover([report.window(day, day) for day, report in enumerate(reports)])
        self._search()
        people = max(self._town.visitors(day, day) for day in days)
        self._say(f"an edge had at most {self._peak:.0f} MB, with up to {people:,} people in a period of both edges")

    def _end(self) -> dict[str, Any]:
        """What an edge says when it has sent the last day. The other one erases what its kill has left."""
        last = self._town.begin.astimezone(PARIS) + timedelta(days=self._town.days)
        for words in (("data", "--end", last.isoformat(), "--json"), ("twin", "--once", "--json")):
            path = str(self._directory / f"{words[0]}.yaml")
            ended = run("edge", path, *words[1:], "--kafka", self._kafka.bootstrap, **self._environment)
            assert ended.returncode == 0, ended.stdout + ended.stderr
        state: dict[str, Any] = json.loads(ended.stdout)
        return state

    def _cover(self, days: Sequence[WindowReport]) -> None:
        """How often intervals hold the true share; and intervals of half the width, which must be found out."""
        held = []
        for day, window in enumerate(days):
            shares, truth = window.attribute("area").values, self._town.shares(day)
            assert shares is not None
            value, low, high = (np.asarray(getattr(shares.share, part)) for part in ("value", "low", "high"))
            held.append([(low <= truth) & (truth <= high), (value + low <= 2 * truth) & (2 * truth <= value + high)])
        coverage, control = np.mean(held, axis=(0, 2))
        error = np.sqrt(0.95 * 0.05 / (len(days) * len(AREAS)))
        self._say(f"95 % intervals held {coverage:.3f} of {len(days) * len(AREAS):,} true shares (error {error:.3f})")
        assert abs(coverage - 0.95) <= 0.01 + 3 * error < abs(control - 0.95), (coverage, control)

    def _search(self) -> None:
        """No person, time or value of a call is in plain in a file, in a log or on a topic but that of the calls."""
        odd = self._town.begin + timedelta(hours=20, microseconds=ODD_MICROSECOND)
        marks = [MARKER.encode(), ODD_AREA.encode(), f":00:00.{ODD_MICROSECOND}".encode()]
        marks += [micros(odd + timedelta(days=day)).to_bytes(8, "little") for day in range(self._town.days)]
        files = [path for path in self._directory.parent.rglob("*") if path.is_file()]
        events = [path for path in files if path.parent.name.startswith(f"{self._topic}-")]
        for path in set(files) - set(events):
            assert not _marked(path.read_bytes(), marks), path
        with connected(KafkaAdminClient, self._kafka, WAIT_SECONDS) as admin:
            topics = set(admin.list_topics()) - {self._topic}
        for topic in topics:  # their files may be compressed
            for record in self._counting.read(topic):
                assert not _marked((record.key or b"") + (record.value or b""), marks), (topic, record.offset)
        found = {mark for path in events for mark in _marked(path.read_bytes(), marks)}
        assert found == set(marks[:3]), "the search does not find what the events topic has"
        self._say(f"no person, time or value in {len(files) - len(events):,} files and {len(topics)} topics")


def _marked(text: bytes, marks: Sequence[bytes]) -> list[bytes]:
    return [mark for mark in marks if mark in text]
