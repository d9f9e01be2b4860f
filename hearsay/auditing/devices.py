"""The audit's own devices: real device code, a real memo store and the real wire format.

Reports take one of two ways: through this process, or through the reports topic of a Kafka cluster and back. Either way
the survey has an id and the devices have a secret of their own, so nothing of a real collection is touched.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from audit.measured import Observed, Witness
from hearsay.terminal.console import Step
from memo_store.store import MemoStore
from producers.memo_cache import MemoCache
from producers.reporting import Reported, Reporter
from producers.scenarios import Presences
from producers.sinks import KafkaSink, Sink
from producers.source_clock import SourceClock
from protocols.errors import WireError
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.wire import CONTENT_TYPE_HEADER, FRAME, Reject, decode_frame
from servers.redis_server import RedisServer
from servers.settings import Settings
from stream_app.kafka import ends, existing, publish, read_topic

PARTITIONS = 4
CACHE_BYTES = 64 << 20

Truths = Callable[[int], Presences]  # of a period


class Way(Protocol):
    """The way reports take from devices to the audit."""

    name: str
    keyring: Keyring

    def observe(self, survey: Survey, devices: int, periods: int, truths: Truths, step: Step) -> Observed:
        """Let devices 0 .. n-1 report, and see what arrives."""
        ...


class Tap:
    """A sink that shows every frame to a witness, from its bytes."""

    partitions = PARTITIONS

    def __init__(self, witness: Witness) -> None:
        self._witness = witness

    def send(self, partition: int, content_type: str, value: bytes) -> None:
        if content_type == FRAME:
            show(self._witness, value)

    def flush(self) -> None:
        """Nothing is waiting."""

    def close(self) -> None:
        """Nothing is open."""


def show(witness: Witness, value: bytes) -> None:
    """Let a witness see a frame of its survey."""
    scheme = witness.scheme
    frame = decode_frame(value, lambda survey: scheme if survey == scheme.survey.id else None)
    if isinstance(frame, Reject):
        raise WireError(f"a frame of the audit's own devices was refused: {frame.detail}", "this is a bug")
    witness.take(frame)


@dataclass
class InProcess:
    """Memo store and wire format, in this process."""

    store: MemoStore
    keyring: Keyring
    name = "this process"
    _runs: int = 0

    def observe(self, survey: Survey, devices: int, periods: int, truths: Truths, step: Step) -> Observed:
        self._runs += 1
        respondent = Respondent(own_scheme(survey, f"audit.{self._runs}"), self.keyring)
        witness = Witness(respondent, devices, periods)
        _report(self.store, respondent, Tap(witness), witness, devices, periods, truths, step)
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

    def observe(self, survey: Survey, devices: int, periods: int, truths: Truths, step: Step) -> Observed:
        scheme = own_scheme(survey, f"audit.{secrets.token_hex(8)}")
        respondent = Respondent(scheme, self.keyring)
        witness, topics = Witness(respondent, devices, periods), existing(self.settings.kafka)
        publish(self.settings.kafka, topics, scheme.survey)
        begin = ends(self.settings.kafka, topics.reports)
        with closing(KafkaSink(self.settings.kafka, topics.reports)) as sink:
            _report(self.store, respondent, sink, witness, devices, periods, truths, step)
            if self.settings.clock_key is not None:  # so that workers need not keep these periods open
                clock = SourceClock(scheme.survey, self.settings.clock_key_bytes(), sink)
                clock.finish(periods - 1)
        for done, record in enumerate(read_topic(self.settings.kafka, topics.reports, begin)):
            step(done, done + 1, f"reading {topics.reports}")
            kinds = dict(record.headers or ())
            if kinds.get(CONTENT_TYPE_HEADER) == FRAME.encode() and scheme.survey.id.encode() in record.value:
                show(witness, record.value)
        return witness.observed


def own_scheme(survey: Survey, name: str) -> Scheme:
    """The same questions under another id; the audit itself says which period it is."""
    return Scheme(survey.model_copy(update={"id": name, "clock": "source", "title": "", "description": ""}))


def _report(
    store: MemoStore,
    respondent: Respondent,
    sink: Sink,
    witness: Witness,
    devices: int,
    periods: int,
    truths: Truths,
    step: Step,
) -> None:
    memos = store.survey(respondent)
    cache = MemoCache(memos, respondent.scheme, devices, CACHE_BYTES)
    reporter = Reporter(respondent, cache, memos.fleet_presence(devices), sink)
    for period in range(periods):

        def show_progress(reported: Reported, period: int = period) -> None:
            step(period * devices + reported.done, periods * devices, f"period {period + 1} of {periods}")

        truth = truths(period)
        witness.knows(period, truth.devices, truth.values)
        reporter.report(truth, show_progress)


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
