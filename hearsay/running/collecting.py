"""Composition of a run: a survey, a secret, a memo store and a collector, as context managers.

The collector is either in this process, over files in the data directory, or a Kafka cluster with its workers. The rest
of a run is the same for both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta

from hearsay.data_directory import DataDirectory, left_as_it_was
from hearsay.running.memo_storage import survey_memos
from memo_store.survey_memos import SurveyMemos
from producers.scenarios import Scenario
from producers.simulation import Simulation
from producers.sinks import Sink
from producers.source_clock import require_source_clock
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey import Survey
from servers.settings import Settings
from views.local import collector
from views.reading import Results

PACE_SECONDS = 1.0  # of results while a period is open
THIS_PROCESS = "this process"
CLUSTER = "a Kafka cluster"


@dataclass(frozen=True)
class Origin:
    """Where reports come from: devices with memos, and the sink they report to."""

    memos: SurveyMemos
    sink: Sink
    clock_key: bytes

    def simulation(self, scenario: Scenario) -> Simulation:
        return Simulation(self.memos, self.sink, scenario, self.clock_key)


@dataclass(frozen=True)
class Collection(Origin):
    """An origin whose reports are counted, and the results."""

    results: Results


@contextmanager
def collect(
    data: DataDirectory, survey: Survey, settings: Settings, kafka: str | None, forget_after: timedelta | None = None
) -> Iterator[Collection]:
    """A collection in this process, or on the Kafka cluster at `kafka`. If it is refused, it leaves nothing behind."""
    require_source_clock(survey)
    begun = (
        embedded(data, survey, settings, forget_after)
        if kafka is None
        else on_kafka(data, survey, settings.at(kafka), forget_after)
    )
    with left_as_it_was(data.root), begun as collection:
        yield collection


@contextmanager
def embedded(
    data: DataDirectory, survey: Survey, settings: Settings, forget_after: timedelta | None = None
) -> Iterator[Collection]:
    """A collection in this process, with its state in a data directory."""
    data.check_destination(survey.id, THIS_PROCESS)
    keys = data.clock_key(), data.presence_key()
    with (
        collector(data.collector, [survey], *keys, pace_seconds=PACE_SECONDS, sinks=[data.results]) as app,
        reporting(data, survey, settings, app, data.clock_key(), forget_after) as origin,
    ):
        data.record_destination(survey.id, THIS_PROCESS)
        yield Collection(**vars(origin), results=Results(app.store))


@contextmanager
def on_kafka(
    data: DataDirectory, survey: Survey, settings: Settings, forget_after: timedelta | None = None
) -> Iterator[Collection]:
    """A collection by the workers of a Kafka cluster; publishes the survey first."""
    from producers.sinks import KafkaSink  # its client takes time that a run in this process does not need
    from stream_app.kafka import KafkaMessages, Topics, cluster_id, publish

    topics, clock_key = Topics(settings.kafka.prefix), settings.clock_key_bytes()
    destination = f"{CLUSTER}, {cluster_id(settings.kafka)}, its topics {topics.prefix}.*"
    data.check_destination(survey.id, destination)
    publish(settings.kafka, topics, survey)
    with (
        closing(KafkaSink(settings.kafka, topics.reports)) as sink,
        reporting(data, survey, settings, sink, clock_key, forget_after) as origin,
    ):
        data.record_destination(survey.id, destination)
        yield Collection(**vars(origin), results=Results(KafkaMessages(settings.kafka, topics)))


@contextmanager
def reporting(
    data: DataDirectory,
    survey: Survey,
    settings: Settings,
    sink: Sink,
    clock_key: bytes,
    forget_after: timedelta | None = None,
) -> Iterator[Origin]:
    """Devices of the data directory's keyring that report to a sink."""
    people = Respondent(Scheme(survey), data.fleet_keyring())
    with survey_memos(data, settings, people, forget_after) as memos:
        yield Origin(memos, sink, clock_key)
