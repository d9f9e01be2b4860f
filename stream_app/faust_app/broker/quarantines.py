"""Finding the surveys that workers have quarantined, and letting them go on: `hearsay recover --survey`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from servers.settings import KafkaSettings
from stream_app.counting.state import Position, position_key, resumed_key
from stream_app.faust_app.broker.changelogs import StateRecord, newest_records, write_state
from stream_app.kafka.topics import Topics
from stream_app.log.quarantines import Quarantine, Resumption
from stream_app.merging.state import MergePosition, merge_resumed_key, merged_key


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
    counted, merged = newest_records(kafka, topics.counting_changelog), newest_records(kafka, topics.merging_changelog)
    found: list[QuarantinedSurvey] = []
    for partition in range(topics.partitions):
        quarantines = Position.decode(counted[key]).quarantines if (key := position_key(partition)) in counted else {}
        for survey, quarantine in quarantines.items():
            record = _resumption(topics.counting_changelog, partition, resumed_key(partition, survey), quarantine)
            found.append(QuarantinedSurvey(survey, topics.reports, partition, quarantine, record))
    for owner in range(topics.merge_partitions):
        quarantines = MergePosition.decode(merged[key]).quarantines if (key := merged_key(owner)) in merged else {}
        for survey, quarantine in quarantines.items():
            record = _resumption(topics.merging_changelog, owner, merge_resumed_key(owner, survey), quarantine)
            found.append(QuarantinedSurvey(survey, topics.partials, owner, quarantine, record))
    written = counted | merged
    return [one for one in found if one.quarantine.why and not _goes_on(one, written.get(one.resumption.key))]


def resume_surveys(kafka: KafkaSettings, topics: Topics, quarantines: Iterable[QuarantinedSurvey]) -> None:
    """Let surveys go on when workers are started again. Refused while one is running."""
    write_state(kafka, topics, [one.resumption for one in quarantines])


def _resumption(changelog: str, partition: int, key: bytes, quarantine: Quarantine) -> StateRecord:
    return StateRecord(changelog, partition, key, Resumption(quarantine.times).encode())


def _goes_on(one: QuarantinedSurvey, record: bytes | None) -> bool:
    return record is not None and Resumption.decode(record).times >= one.quarantine.times
