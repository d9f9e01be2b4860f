"""Composition of a run: a survey, a secret, a memo store and a collector, as context managers.

The collector is either in this process, over files in the data directory, or a Kafka cluster with its workers. The rest
of a run is the same for both.
"""

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
    settings = settings.at(kafka)
    opened = _in_this_process(data, survey) if kafka is None else _on_kafka(data, survey, settings)
    with (
        left_as_it_was(data.root),
        opened as (destination, sink, clock_key, results),
        reporting(data, survey, settings, destination, sink, clock_key, forget_after) as origin,
    ):
        yield Collection(**vars(origin), results=results)


Opened = tuple[str, Sink, bytes, Results]
"""A collector: its name as a data directory notes it, its sink, the key that closes periods there, and its results."""


@contextmanager
def _in_this_process(data: DataDirectory, survey: Survey) -> Iterator[Opened]:
    data.check_destination(survey.id, THIS_PROCESS)
    clock_key, sinks = data.clock_key(), [data.results]
    keys = clock_key, data.presence_key()
    with collector(data.collector, [survey], *keys, pace_seconds=PACE_SECONDS, sinks=sinks) as app:
        yield THIS_PROCESS, app, clock_key, Results(app.store)


@contextmanager
def _on_kafka(data: DataDirectory, survey: Survey, settings: Settings) -> Iterator[Opened]:
    """The workers of a cluster, on which the survey is published first."""
    from producers.sinks import KafkaSink  # its client takes time that a run in this process does not need
    from stream_app.kafka import KafkaMessages, Topics, cluster_id, publish

    topics, clock_key = Topics(settings.kafka.prefix), settings.clock_key_bytes()
    destination = f"{CLUSTER}, {cluster_id(settings.kafka)}, its topics {topics.prefix}.*"
    data.check_destination(survey.id, destination)
    publish(settings.kafka, topics, survey)
    with closing(KafkaSink(settings.kafka, topics.reports)) as sink:
        yield destination, sink, clock_key, Results(KafkaMessages(settings.kafka, topics))


@contextmanager
def reporting(
    data: DataDirectory,
    survey: Survey,
    settings: Settings,
    destination: str,
    sink: Sink,
    clock_key: bytes,
    forget_after: timedelta | None,
) -> Iterator[Origin]:
    """Devices of the data directory's keyring that report to a sink, from now on to no other destination."""
    people = Respondent(Scheme(survey), data.fleet_keyring())
    with survey_memos(data, settings, people, forget_after) as memos:
        data.record_destination(survey.id, destination)
        yield Origin(memos, sink, clock_key)
