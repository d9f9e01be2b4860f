"""Roles: who does what on the cluster, and the rights (ACLs) that each needs. Nobody needs more.

Whoever may write to a topic may also describe it, and whoever may read it, too: Kafka implies it. It is named all the
same, because what is written here is what operators grant. Nobody may create or delete topics: `hearsay topics create`
is run by an administrator of the cluster, or topics are made by an operator such as Strimzi.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from stream_app.kafka.topics import Topics
from stream_app.log.results import RESULTS

Operation = Literal["Read", "Write", "Describe", "DescribeConfigs"]
"""As Kafka, its tools and Strimzi spell it."""


@dataclass(frozen=True)
class Right:
    """What may be done with one topic or one consumer group."""

    resource: Literal["topic", "group"]
    name: str
    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class Role:
    """A user of the cluster: what it is, and its rights."""

    name: str
    who: str
    rights: tuple[Right, ...]

    def may(self, operation: Operation, name: str, resource: Literal["topic", "group"] = "topic") -> bool:
        """Whether the role has a right.

        >>> edge = {role.name: role for role in roles(Topics())}["edge"]
        >>> edge.may("Write", "hearsay.reports"), edge.may("Read", "hearsay.reports")
        (True, False)
        """
        return any(
            right.resource == resource and right.name == name and operation in right.operations for right in self.rights
        )


def roles(topics: Topics) -> list[Role]:
    """Every role, with its rights on these topics."""
    results = [topics.named(topic.name) for topic in RESULTS]
    finals = [topics.finals, topics.open]
    changelogs = [topics.counting_changelog, topics.merging_changelog]
    reports, surveys = [topics.reports], [topics.surveys]
    sending = (*_topics(reports, "Write", "Describe"), *_topics(surveys, "Read", "Describe"))
    reading = _topics([*surveys, *finals, *results], "Read", "Describe")
    return [
        Role("gateway", "takes reports from devices and sends them", sending),
        Role("edge", "makes and sends reports: a fleet, a replay, `hearsay send`", sending),
        Role(
            "worker",
            "counts, merges and makes results. It sends clock records of surveys with `clock: wall`",
            (
                *_topics([*reports, topics.partials, *changelogs, *finals, *results], "Read", "Write", "Describe"),
                *_topics([topics.deadletters], "Write", "Describe"),
                *_topics(surveys, "Read", "Describe"),
                Right("group", topics.prefix, ("Read", "Describe")),
            ),
        ),
        Role(
            "views",
            "makes results of finals, apart from workers",
            (*_topics([*surveys, *finals], "Read", "Describe"), *_topics(results, "Read", "Write", "Describe")),
        ),
        Role("publisher", "publishes surveys", _topics(surveys, "Read", "Write", "Describe")),
        Role("analyst", "reads results: `hearsay report`, exports", reading),
        Role("dashboard", "shows results", reading),
        Role(
            "operator",
            "runs `hearsay topics check`, `recover`, `close` and `deadletters`. It can read every report",
            (
                *_topics([*reports, *changelogs, topics.deadletters], "Read", "Write", "Describe", "DescribeConfigs"),
                *_topics([*surveys, topics.partials, *finals, *results], "Read", "Describe", "DescribeConfigs"),
                Right("group", topics.prefix, ("Describe",)),
            ),
        ),
    ]


def _topics(names: Iterable[str], *operations: Operation) -> tuple[Right, ...]:
    return tuple(Right("topic", name, operations) for name in names)
