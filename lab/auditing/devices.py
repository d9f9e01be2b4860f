"""The audit's own devices: real device code, a real memo store and the real wire format.

Reports take one of two ways: through this process, or through the reports topic of a Kafka cluster and back. Either way
the survey has an id and the devices have a secret of their own, so nothing of a real collection is touched.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hearsay.terminal.console import Step
from lab.attacks.observed import Observed, Witness
from lab.attacks.reidentify import own_scheme
from memo_store.store import MemoStore
from producers.memo_cache import MemoCache
from producers.reporting import Reported, Reporter
from producers.scenarios import Scenario
from producers.sinks import KafkaSink, Sink
from producers.source_clock import SourceClock
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.survey import Survey
from protocols.wire import CONTENT_TYPE_HEADER, FRAME
from servers.redis_server import RedisServer
from servers.settings import Settings
from stream_app.kafka import ends, existing, publish, read_topic

CACHE_BYTES = 64 << 20


class Way(Protocol):
    """The way reports take from devices to the audit."""

    name: str
    keyring: Keyring

    def observe(self, survey: Survey, people: Scenario, step: Step) -> Observed:
        """Let devices with the values of `people` report, and see what arrives."""
        ...


@dataclass
class InProcess:
    """Memo store and wire format, in this process."""

    store: MemoStore
    keyring: Keyring
    name = "this process"
    _runs: int = 0

    def observe(self, survey: Survey, people: Scenario, step: Step) -> Observed:
        self._runs += 1
        respondent = Respondent(own_scheme(survey, f"audit.{self._runs}"), self.keyring)
        witness = Witness(respondent, people.devices, people.periods)
        _report(self.store, respondent, people, witness, witness, step)
        return witness.observed


@dataclass
class ThroughKafka:
    """The same, through the reports topic of a cluster and back.

    The survey is published under an id of its own, which nobody used before. With the operator's clock key its periods
    are closed at the end; without it workers keep them open.
    """

    store: MemoStore
    keyring: Keyring
    settings: Settings
    name = "a Kafka cluster"

    def observe(self, survey: Survey, people: Scenario, step: Step) -> Observed:
        respondent = Respondent(own_scheme(survey, f"audit.{secrets.token_hex(8)}"), self.keyring)
        own, topics = respondent.scheme.survey, existing(self.settings.kafka)
        witness = Witness(respondent, people.devices, people.periods)
        publish(self.settings.kafka, topics, own)
        begin = ends(self.settings.kafka, topics.reports)
        with closing(KafkaSink(self.settings.kafka, topics.reports)) as sink:
            _report(self.store, respondent, people, sink, witness, step)
            if self.settings.clock_key is not None:  # so that workers need not keep these periods open
                SourceClock(own, self.settings.clock_key_bytes(), sink).finish(people.periods - 1)
        for done, record in enumerate(read_topic(self.settings.kafka, topics.reports, begin)):
            step(done, done + 1, f"reading {topics.reports}")
            kinds = dict(record.headers or ())
            if kinds.get(CONTENT_TYPE_HEADER) == FRAME.encode() and own.id.encode() in record.value:
                witness.send(0, FRAME, record.value)
        return witness.observed


def _report(
    store: MemoStore, respondent: Respondent, people: Scenario, sink: Sink, witness: Witness, step: Step
) -> None:
    """Let devices report to a sink; the witness learns their values."""
    memos, devices, periods = store.survey(respondent), people.devices, people.periods
    cache = MemoCache(memos, respondent.scheme, devices, CACHE_BYTES)
    reporter = Reporter(respondent, cache, memos.fleet_presence(devices), sink)

    def show(reported: Reported) -> None:
        done = reported.period * devices + reported.done
        step(done, periods * devices, f"period {reported.period + 1} of {periods}")

    for period in range(periods):
        truth = people.presences(period)
        witness.knows(period, truth.devices, truth.values)
        reporter.report(truth, show)


@contextmanager
def short_lived_store() -> Iterator[MemoStore]:
    """A memo store for the time of an audit. Nothing in it has to survive, so it does not wait for the disk."""
    with tempfile.TemporaryDirectory(prefix="hearsay-audit-") as directory:
        server = RedisServer(Path(directory), options={"appendonly": "no", "appendfsync": "no"}).start()
        try:
            with MemoStore(server.url, lasting=False) as store:
                store.accept_loss()
                yield store
        finally:
            server.stop()
