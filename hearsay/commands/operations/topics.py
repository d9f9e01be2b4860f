"""`hearsay topics`: create the topics on a Kafka cluster, and check those that exist."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from hearsay.terminal import console

if TYPE_CHECKING:
    from stream_app.kafka import Topics

app = typer.Typer(help="Create or check the topics on the cluster of HEARSAY_KAFKA_*.", no_args_is_help=True)

# The defaults of `Topics`, which is slow to import.
PARTITIONS, MERGE_PARTITIONS, RETENTION_DAYS = 8, 4, 30
STRIMZI_API = "kafka.strimzi.io/v1"

Some = Annotated[int, typer.Option(min=1)]


@app.command("create")
def create_topics(
    prefix: str | None = None,
    partitions: Some = PARTITIONS,
    merge_partitions: Some = MERGE_PARTITIONS,
    retention_days: Some = RETENTION_DAYS,
    replication: Annotated[int, typer.Option(min=-1)] = -1,
    as_json: console.AsJson = False,
) -> None:
    """Create the missing topics. Existing topics are not changed: `hearsay topics check` compares them.

    Example: hearsay topics create --partitions 24 --replication 3
    """
    from servers.settings import load
    from stream_app.kafka import Topics, create

    kafka = load().kafka
    topics = Topics(prefix or kafka.prefix, partitions, merge_partitions, retention_days)
    with console.progress("creating the topics"):
        created = create(kafka, topics, replication=replication)
    if as_json:
        console.print_json({"created": created})
        return
    for name in created:
        console.out.print(f"[green]✓[/] created {name}")
    if not created:
        console.out.print("All topics exist already.")


@app.command("check")
def check_topics(
    prefix: str | None = None,
    retention_days: Some = RETENTION_DAYS,
    as_json: console.AsJson = False,
) -> None:
    """Show what is not as required: settings of the topics, and logs that are not those that were counted.

    The exit code is 1 if there is something.

    Example: hearsay topics check
    """
    from servers.settings import load
    from stream_app.faust_app import check_cluster
    from stream_app.kafka import visible

    kafka = load().kafka
    with console.progress("checking the topics"):
        topics = replace(visible(kafka, prefix), retention_days=retention_days)
        mismatches = check_cluster(kafka, topics)
    if as_json:
        console.print_json([asdict(mismatch) for mismatch in mismatches])
    elif mismatches:
        for mismatch in mismatches:
            console.out.print(f"[red]✗[/] {escape(str(mismatch))}", soft_wrap=True)
    else:
        console.out.print(
            f"[green]✓[/] all {len(topics.all())} topics are configured as required, their logs are those that "
            f"were counted ({topics.partitions} partitions for counting, {topics.merge_partitions} for merging)"
        )
    if mismatches:
        raise typer.Exit(1)


@app.command("strimzi")
def print_strimzi(
    prefix: str = "hearsay",
    partitions: Some = PARTITIONS,
    merge_partitions: Some = MERGE_PARTITIONS,
    retention_days: Some = RETENTION_DAYS,
    replication: Some = 3,
    cluster: str = "kafka",
) -> None:
    """Print the topics, and a user with its rights for each role, as resources of Strimzi (Kafka on Kubernetes).

    The topics are those that `hearsay topics create` would make. Let one of the two make them, not both.

    Example: hearsay topics strimzi --partitions 24 > kafka.yaml
    """
    import yaml

    from stream_app.kafka import Topics

    topics = Topics(prefix, partitions, merge_partitions, retention_days)
    options = f"--prefix {prefix} --partitions {partitions} --merge-partitions {merge_partitions}"
    options += f" --retention-days {retention_days} --replication {replication} --cluster {cluster}"
    typer.echo(f"# Made by: hearsay topics strimzi {options}")
    typer.echo(yaml.safe_dump_all(resources(topics, cluster, replication), sort_keys=False, width=120), nl=False)


def resources(topics: Topics, cluster: str, replication: int) -> list[dict[str, Any]]:
    """A KafkaTopic for each topic, as `hearsay topics create` would make it, and a KafkaUser for each role.

    `cluster` is the name of the Kafka resource.
    """
    from stream_app.kafka import roles

    def resource(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        metadata = {"name": name, "labels": {"strimzi.io/cluster": cluster}}
        return {"apiVersion": STRIMZI_API, "kind": kind, "metadata": metadata, "spec": spec}

    made = []
    for topic in topics.all():
        name = _name(topic.name)
        spec: dict[str, Any] = {} if name == topic.name else {"topicName": topic.name}
        spec |= {"partitions": topic.partitions, "replicas": replication, "config": topic.configs}
        made.append(resource("KafkaTopic", name, spec))
    for role in roles(topics):
        acls = [
            {
                "resource": {"type": right.resource, "name": right.name, "patternType": "literal"},
                "operations": list(right.operations),
            }
            for right in role.rights
        ]
        allowed = {"authentication": {"type": "scram-sha-512"}, "authorization": {"type": "simple", "acls": acls}}
        made.append(resource("KafkaUser", _name(f"{topics.prefix}-{role.name}"), allowed))
    return made


def _name(text: str) -> str:
    """A name that Kubernetes accepts.

    >>> _name("hearsay.reports"), _name("City_2.reports")
    ('hearsay.reports', 'city-2.reports')
    """
    return re.sub(r"[^a-z0-9.-]", "-", text.lower())
