"""What a cluster allows this user to do, compared with what its role needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from kafka import KafkaAdminClient
from kafka.errors import GroupAuthorizationFailedError, KafkaError, TopicAuthorizationFailedError

from servers.kafka_clients import connected, not_allowed
from servers.settings import KafkaSettings
from stream_app.kafka.roles import Operation, Right, Role
from stream_app.kafka.topics import ANSWER_SECONDS


def check_rights(kafka: KafkaSettings, role: Role) -> None:
    """Raise NotAllowed, with all of them, if this user lacks rights of a role. A topic that is missing lacks none."""
    missing = list(_missing(allowed(kafka, role), role))
    if missing:
        raise not_allowed(kafka, *missing)


def allowed(kafka: KafkaSettings, role: Role) -> dict[Right, set[Operation] | None]:
    """What the cluster allows this user on whatever the role has rights on. None where it does not say."""
    topics = {right.name: right for right in role.rights if right.resource == "topic"}
    found: dict[Right, set[Operation] | None] = {}
    with connected(KafkaAdminClient, kafka, ANSWER_SECONDS) as admin:
        for described in admin.describe_topics(list(topics)):
            hidden = described["error_code"] == TopicAuthorizationFailedError.errno
            found[topics[described["name"]]] = set() if hidden else _operations(described)
        for right in role.rights:
            if right.resource == "group":
                found[right] = _allowed_on_group(admin, right.name)
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
    named = described.get("authorized_operations")
    spelled: dict[str, Operation] = {
        "READ": "Read",
        "WRITE": "Write",
        "DESCRIBE": "Describe",
        "DESCRIBE_CONFIGS": "DescribeConfigs",
    }
    return None if not named else {spelled[name] for name in named if name in spelled}


def _missing(found: Mapping[Right, set[Operation] | None], role: Role) -> Iterator[str]:
    for right in role.rights:
        given = found.get(right)
        for operation in right.operations:
            if given is not None and operation not in given:
                yield f"{operation} {right.resource} {right.name}"
