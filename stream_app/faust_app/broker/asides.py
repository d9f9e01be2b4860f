"""Finding the surveys that workers have set aside, and letting them go on: `hearsay recover --survey`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from servers.settings import KafkaSettings
from stream_app.counting.state import Position, position_key, resumed_key
from stream_app.faust_app.broker.changelogs import StateRecord, newest_records, write_state
from stream_app.kafka.topics import Topics
from stream_app.log.asides import Aside, Resumption
from stream_app.merging.state import MergePosition, merge_resumed_key, merged_key


@dataclass(frozen=True)
class AsideSurvey:
    """A survey that is set aside in a partition of a topic. It goes on with `resumption`."""

    survey: str
    topic: str
    partition: int
    aside: Aside
    resumption: StateRecord


def aside_surveys(kafka: KafkaSettings, topics: Topics) -> list[AsideSurvey]:
    """The surveys that are set aside, in the state that workers have written; without those that go on at the start."""
    counted, merged = newest_records(kafka, topics.counting_changelog), newest_records(kafka, topics.merging_changelog)
    found: list[AsideSurvey] = []
    for partition in range(topics.partitions):
        asides = Position.decode(counted[key]).asides if (key := position_key(partition)) in counted else {}
        for survey, aside in asides.items():
            record = _resumption(topics.counting_changelog, partition, resumed_key(partition, survey), aside)
            found.append(AsideSurvey(survey, topics.reports, partition, aside, record))
    for owner in range(topics.merge_partitions):
        asides = MergePosition.decode(merged[key]).asides if (key := merged_key(owner)) in merged else {}
        for survey, aside in asides.items():
            record = _resumption(topics.merging_changelog, owner, merge_resumed_key(owner, survey), aside)
            found.append(AsideSurvey(survey, topics.partials, owner, aside, record))
    written = counted | merged
    return [one for one in found if one.aside.why and not _goes_on(one, written.get(one.resumption.key))]


def resume_surveys(kafka: KafkaSettings, topics: Topics, asides: Iterable[AsideSurvey]) -> None:
    """Let surveys go on when workers are started again. Refused while one is running."""
    write_state(kafka, topics, [one.resumption for one in asides])


def _resumption(changelog: str, partition: int, key: bytes, aside: Aside) -> StateRecord:
    return StateRecord(changelog, partition, key, Resumption(aside.times).encode())


def _goes_on(one: AsideSurvey, record: bytes | None) -> bool:
    return record is not None and Resumption.decode(record).times >= one.aside.times
