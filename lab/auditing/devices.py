"""The audit's own devices: whose values they have, and the way their reports take.

They have the values of a scenario's people, of the rows of a table, or of coins; real device code, a real memo store
and the real wire format. Reports take one of two ways: through this process, or through the reports topic of a Kafka
cluster and back. Either way the survey has an id and the devices have a secret of their own, so nothing of a real
collection is touched.
"""

import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hearsay.running.simulating import populate
from hearsay.terminal.console import Step
from hearsay.terminal.dates import when
from lab.attacks.observed import Observed, Witness
from lab.attacks.reidentify import own_respondent
from lab.auditing.programs import Program
from lab.populations import survey_values
from lab.seeded_keyrings import seeded_keyring
from memo_store.store import MemoStore
from producers.files import TableSource, table_name
from producers.kafka_sink import KafkaSink
from producers.reporting import Reported, Reporter
from producers.scenarios import Presences, Scenario
from producers.simulation import check_scenario
from producers.sinks import Sink, SourceClock
from protocols.arrays import Values
from protocols.errors import SettingsError
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.survey import Survey
from protocols.wire import CONTENT_TYPE_HEADER, FRAME
from servers.redis_server import RedisServer
from servers.settings import Settings, load
from stream_app.kafka import ends, existing, publish, read_topic

STEADY = "steady"
"""The population of an audit if none is named: values never change and all devices report, which helps attackers."""


@dataclass
class People:
    """A scenario of the audit's own."""

    name: str
    devices: int
    periods: int
    attributes: dict[str, tuple[str, ...]]
    presences: Callable[[int], Presences]


def named(survey: Survey, name: str, devices: int | None, periods: int | None, seed: int) -> Scenario:
    """A scenario that fits a survey."""
    steady = {"change": 0.0, "presence": 1.0} if name == STEADY else {}
    people = populate(survey, "telemetry" if steady else name, devices, periods, seed, **steady)
    people.name = name
    check_scenario(survey, people)
    return people


def rows_of(survey: Survey, source: TableSource, periods: int) -> People:
    """A table with one row per person, whose values never change."""
    if sets := [attribute.name for attribute in survey.attributes if attribute.several is not None]:
        raise SettingsError(f"{', '.join(sets)}: a row of a table has no sets here", "take --devices instead of --csv")
    values = survey_values(source, survey)
    return everybody(survey, table_name(source), len(next(iter(values.values()))), periods, lambda period: values)


def everybody(
    survey: Survey, name: str, devices: int, periods: int, values: Callable[[int], Mapping[str, Values]]
) -> People:
    """Devices of which all report in every period."""

    def presences(period: int) -> Presences:
        columns = {name: column.astype(np.int64) for name, column in values(period).items()}
        return Presences(period, np.arange(devices, dtype=np.uint64), columns)

    return People(name, devices, periods, {a.name: a.values for a in survey.attributes}, presences)


def block(people: Scenario, first: int, last: int) -> People:
    """Devices first .. last-1 alone, numbered from 0."""

    def presences(period: int) -> Presences:
        truth = people.presences(period)
        inside = (truth.devices >= first) & (truth.devices < last)
        values = {name: column[inside] for name, column in truth.values.items()}
        return Presences(period, truth.devices[inside] - np.uint64(first), values)

    return People(people.name, last - first, people.periods, people.attributes, presences)


@dataclass
class InProcess:
    """Memo store and wire format, in this process."""

    store: MemoStore
    keyring: Keyring
    name = "this process"
    _runs: int = 0

    def observe(self, survey: Survey, people: Scenario, step: Step) -> Observed:
        self._runs += 1
        respondent = own_respondent(survey, f"audit.{self._runs}", self.keyring)
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
        respondent = own_respondent(survey, f"audit.{secrets.token_hex(8)}", self.keyring)
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
    """Let devices report to a sink, and start them anew half-way; the witness learns their values."""
    devices, periods = people.devices, people.periods

    def show(reported: Reported) -> None:
        done, day = reported.period * devices + reported.done, when(respondent.scheme.survey.calendar, reported.period)
        step(done, periods * devices, f"{day}, {reported.period + 1} of {periods}")

    for period in range(periods):
        if period in (0, witness.observed.restart):
            respondent = Respondent(respondent.scheme, respondent.keyring)
            memos = store.survey(respondent)
            reporter = Reporter(memos, memos.fleet_presence(devices), sink)
        truth = people.presences(period)
        witness.observed.knows(period, truth.devices, truth.values)
        reporter.report(truth, show)


Way = InProcess | ThroughKafka | Program
"""The way reports take from devices to the audit."""


@contextmanager
def ways_of_reports(kafka: str | None, program: str | None, seed: int) -> Iterator[tuple[Way, Way | None]]:
    """Through this process, through a cluster, or from a program; and the same for devices with another secret.

    On a cluster every run has an id of its own, so another secret shows nothing there.
    """
    if program is not None:
        yield Program(program), Program(program)
        return
    with _stored() as store:
        if kafka is not None:  # where others might read the reports, nobody may know the secret
            yield ThroughKafka(store, Keyring(secrets.token_bytes(32)), load().at(kafka)), None
            return
        with _stored() as other:
            yield InProcess(store, seeded_keyring(seed)), InProcess(other, seeded_keyring(seed + 1))


@contextmanager
def _stored() -> Iterator[MemoStore]:
    """A memo store for the time of an audit. Nothing in it has to survive, so it does not wait for the disk."""
    with tempfile.TemporaryDirectory(prefix="hearsay-audit-") as directory:
        server = RedisServer(Path(directory), options={"appendonly": "no", "appendfsync": "no"}).start()
        try:
            with MemoStore(server.url, lasting=False) as store:
                store.accept_loss()
                yield store
        finally:
            server.stop()
