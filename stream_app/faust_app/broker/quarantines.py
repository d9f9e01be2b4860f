"""Finding the surveys that workers have quarantined, and letting them go on: `hearsay recover --survey`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from servers.settings import KafkaSettings
from stream_app.faust_app.broker.changelogs import StateRecord, changelogs, newest_records, write_state
from stream_app.kafka.topics import Topics
from stream_app.log.quarantines import Quarantine, Resumption


@dataclass(frozen=True)
class QuarantinedSurvey:
    """A survey that is quarantined in a partition of a topic. It goes on with `resumption`."""

    survey: str
    topic: str
    partition: int
    quarantine: Quarantine
    resumption: StateRecord


def quarantined_surveys(kafka: KafkaSettings, topics: Topics) -> list[QuarantinedSurvey]:
    """The surveys that are quarantined, in the state that workers have written; not those that go on at the start."""
    found: list[QuarantinedSurvey] = []
    for log in changelogs(topics):
        newest = newest_records(kafka, log.name)
        for partition, position in log.positions(newest):
            for survey, quarantine in list(position.quarantines.items()):
                position.resume(survey, newest.get(log.key(partition, "resumed", survey)))
                if position.is_quarantined(survey):
                    record = log.record(partition, "resumed", survey, value=Resumption(quarantine.times).encode())
                    found.append(QuarantinedSurvey(survey, log.topic, partition, quarantine, record))
    return found


def resume_surveys(kafka: KafkaSettings, topics: Topics, quarantines: Iterable[QuarantinedSurvey]) -> None:
    """Let surveys go on when workers are started again. Refused while one is running."""
    write_state(kafka, topics, [one.resumption for one in quarantines])
