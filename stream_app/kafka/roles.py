"""Roles: who does what on the cluster, and the rights (ACLs) that each needs. Nobody needs more.

Whoever may write to a topic may also describe it, and whoever may read it, too: Kafka implies it. It is named all the
same, because what is written here is what operators grant. Nobody may create or delete topics: `hearsay topics create`
is run by an administrator of the cluster, or topics are made by an operator such as Strimzi.

What a cluster allows this user to do is compared with what its role needs.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, get_args

from kafka import KafkaAdminClient
from kafka.errors import GroupAuthorizationFailedError, KafkaError, TopicAuthorizationFailedError

from servers.kafka_clients import connected, not_allowed
from servers.settings import KafkaSettings
from stream_app.kafka.topics import ANSWER_SECONDS, Topics, existing
from stream_app.log.flushes import RESULTS

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
    """A user of the cluster, and its rights: docs/deploying.md says what each is for."""

    name: str
    rights: tuple[Right, ...]


def roles(topics: Topics) -> list[Role]:
    """Every role, with its rights on these topics."""
    results = [topics.named(topic.name) for topic in RESULTS]
    finals = [topics.finals, topics.open]
    changelogs = [topics.counting_changelog, topics.merging_changelog]
    reports, surveys = [topics.reports], [topics.surveys]
    sending = (*_topics(reports, "Write", "Describe"), *_topics(surveys, "Read", "Describe"))
    reading = _topics([*surveys, *finals, *results], "Read", "Describe")
    worker = (
        *_topics([*reports, topics.partials, *changelogs, *finals, *results], "Read", "Write", "Describe"),
        *_topics([topics.deadletters], "Write", "Describe"),
        *_topics(surveys, "Read", "Describe"),
        Right("group", topics.prefix, ("Read", "Describe")),
    )
    views = (*_topics([*surveys, *finals], "Read", "Describe"), *_topics(results, "Read", "Write", "Describe"))
    operator = (
        *_topics([*reports, *changelogs, topics.deadletters], "Read", "Write", "Describe", "DescribeConfigs"),
        *_topics([*surveys, topics.partials, *finals, *results], "Read", "Describe", "DescribeConfigs"),
        Right("group", topics.prefix, ("Describe",)),
    )
    return [
        Role("gateway", sending),
        Role("edge", sending),
        Role("worker", worker),
        Role("views", views),
        Role("publisher", _topics(surveys, "Read", "Write", "Describe")),
        Role("analyst", reading),
        Role("dashboard", reading),
        Role("operator", operator),
    ]


def _topics(names: Iterable[str], *operations: Operation) -> tuple[Right, ...]:
    return tuple(Right("topic", name, operations) for name in names)


def check_rights(kafka: KafkaSettings, role: Role) -> None:
    """Raise NotAllowed, with all of them, if this user lacks rights of a role. A topic that is missing lacks none."""
    found = allowed(kafka, role)
    missing = [
        f"{operation} {right.resource} {right.name}"
        for right in role.rights
        for operation in right.operations
        if (given := found.get(right)) is not None and operation not in given
    ]
    if missing:
        raise not_allowed(kafka, *missing)


def visible(kafka: KafkaSettings, prefix: str | None = None) -> Topics:
    """The topics of this cluster, for who compares them with what they must be.

    Raises NotAllowed, with all of them, if this user lacks rights that this needs: of topics that a user may not see,
    brokers say neither what they are nor whether they exist.
    """
    names = Topics(prefix or kafka.prefix)
    read = {names.reports, names.partials, names.counting_changelog, names.merging_changelog}
    needed = [*_topics([topic.name for topic in names.all()], "Describe", "DescribeConfigs")]
    needed += _topics(sorted(read), "Read")
    check_rights(kafka, Role("who checks topics", tuple(needed)))
    return existing(kafka, prefix)


def allowed(kafka: KafkaSettings, role: Role) -> dict[Right, set[Operation] | None]:
    """What the cluster allows this user on whatever the role has rights on. None where it does not say."""
    names = {right.name for right in role.rights if right.resource == "topic"}
    found: dict[Right, set[Operation] | None] = {}
    with connected(KafkaAdminClient, kafka, ANSWER_SECONDS) as admin:
        on_topics: dict[str, set[Operation] | None] = {}
        for described in admin.describe_topics(sorted(names)):
            hidden = described["error_code"] == TopicAuthorizationFailedError.errno
            on_topics[described["name"]] = set() if hidden else _operations(described)
        for right in role.rights:
            is_group = right.resource == "group"
            found[right] = _allowed_on_group(admin, right.name) if is_group else on_topics[right.name]
    return found


def _allowed_on_group(admin: KafkaAdminClient, group: str) -> set[Operation] | None:
    with suppress(KafkaError):  # a cluster that has just started finds no coordinator for some seconds
        try:
            return _operations(admin.describe_groups([group], include_authorized_operations=True)[group])
        except GroupAuthorizationFailedError:
            return set()
    return None


def _operations(described: Mapping[str, Any]) -> set[Operation] | None:
    """The operations in an answer of kafka-python, which spells them DESCRIBE_CONFIGS."""
    named = {name.title().replace("_", "") for name in described.get("authorized_operations") or ()}
    return {operation for operation in get_args(Operation) if operation in named} if named else None
