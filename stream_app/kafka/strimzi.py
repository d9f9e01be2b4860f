"""Topics and roles as resources of Strimzi, which runs Kafka on Kubernetes: what `hearsay topics strimzi` prints."""

from __future__ import annotations

import re
from typing import Any

from stream_app.kafka.roles import Role, roles
from stream_app.kafka.topics import Topic, Topics

API = "kafka.strimzi.io/v1"


def resources(topics: Topics, cluster: str, replication: int) -> list[dict[str, Any]]:
    """A KafkaTopic for each topic, as `hearsay topics create` would make it, and a KafkaUser for each role.

    `cluster` is the name of the Kafka resource.
    """
    labels = {"strimzi.io/cluster": cluster}
    made = [_topic(topic, replication) for topic in topics.all()]
    made += [_user(role, topics.prefix) for role in roles(topics)]
    for resource in made:
        resource["metadata"]["labels"] = dict(labels)
    return made


def _topic(topic: Topic, replication: int) -> dict[str, Any]:
    name = _name(topic.name)
    spec: dict[str, Any] = {"partitions": topic.partitions, "replicas": replication, "config": topic.configs}
    if name != topic.name:
        spec = {"topicName": topic.name, **spec}
    return {"apiVersion": API, "kind": "KafkaTopic", "metadata": {"name": name}, "spec": spec}


def _user(role: Role, prefix: str) -> dict[str, Any]:
    acls = [
        {
            "resource": {"type": right.resource, "name": right.name, "patternType": "literal"},
            "operations": list(right.operations),
        }
        for right in role.rights
    ]
    return {
        "apiVersion": API,
        "kind": "KafkaUser",
        "metadata": {"name": _name(f"{prefix}-{role.name}")},
        "spec": {"authentication": {"type": "scram-sha-512"}, "authorization": {"type": "simple", "acls": acls}},
    }


def _name(text: str) -> str:
    """A name that Kubernetes accepts.

    >>> _name("hearsay.reports"), _name("City_2.reports")
    ('hearsay.reports', 'city-2.reports')
    """
    return re.sub(r"[^a-z0-9.-]", "-", text.lower())
