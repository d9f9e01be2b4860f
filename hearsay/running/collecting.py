"""Composition of a run: a survey, a secret, a memo store and a collector, as context managers.

The collector is in this process, over files in the data directory, or a Kafka cluster with its workers, now or later.
The rest of a run is the same for all.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from hearsay.data_directory import DataDirectory, left_as_it_was
from hearsay.running.memo_storage import survey_memos
from memo_store.period_keys import Forgetting, require_longer_than_grace
from memo_store.survey_memos import SurveyMemos
from producers.sinks import DirectorySink, Sink, require_source_clock
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
class Collection:
    """Devices with memos, the sink they report to, and the results; of reports that are captured there are none yet."""

    memos: SurveyMemos
    sink: Sink
    clock_key: bytes
    results: Results | None


@contextmanager
def collect(
    data: DataDirectory,
    survey: Survey,
    settings: Settings,
    kafka: str | None,
    forgetting: Forgetting | None = None,
    captured: tuple[Path, int] | None = None,
) -> Iterator[Collection]:
    """A collection in this process, on the Kafka cluster at `kafka`, or captured for one: a directory, and partitions.

    From now on the devices of the directory's keyring report to no other destination. A collection that is refused
    leaves nothing behind.
    """
    require_source_clock(survey)
    require_longer_than_grace(survey, None if forgetting is None else forgetting.after)
    settings, scheme = settings.at(kafka), Scheme(survey)
    if captured is not None:
        opened = _captured(data, scheme, settings, *captured)
    else:
        opened = _in_this_process(data, survey) if kafka is None else _on_kafka(data, survey, settings)
    with (
        left_as_it_was(data.root),
        opened as (destination, sink, clock_key, results),
        survey_memos(data, settings, Respondent(scheme, data.fleet_keyring()), forgetting) as memos,
    ):
        data.record_destination(survey.id, destination, survey.version)
        yield Collection(memos, sink, clock_key, results)


Opened = tuple[str, Sink, bytes, Results | None]
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
    from producers.kafka_sink import KafkaSink  # its client takes time that a run in this process does not need
    from stream_app.kafka import KafkaMessages, Topics, cluster_id, publish

    topics, clock_key = Topics(settings.kafka.prefix), settings.clock_key_bytes()
    destination = f"{CLUSTER}, {cluster_id(settings.kafka)}, its topics {topics.prefix}.*"
    data.check_destination(survey.id, destination)
    publish(settings.kafka, topics, survey)
    with closing(KafkaSink(settings.kafka, topics.reports)) as sink:
        yield destination, sink, clock_key, Results(KafkaMessages(settings.kafka, topics))


@contextmanager
def _captured(
    data: DataDirectory, scheme: Scheme, settings: Settings, directory: Path, partitions: int
) -> Iterator[Opened]:
    """A directory of reports, for a cluster with this number of partitions."""
    data.check_destination(scheme.survey.id, CLUSTER)
    clock_key = settings.clock_key_bytes()
    with closing(DirectorySink(directory, partitions, scheme)) as sink:
        yield CLUSTER, sink, clock_key, None
