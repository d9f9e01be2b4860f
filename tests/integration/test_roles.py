"""The roles of a cluster on a real broker: each can do its work, and what it may not is refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hearsay.cli import app
from lab.worker_process import workers
from producers.sinks import KafkaSink
from protocols.errors import NotAllowed
from servers.settings import KafkaSettings, load
from stream_app.kafka import Role, Topics, allowed, create, publish, read_topic, roles
from tests.helpers.eventually import eventually
from tests.helpers.published import read_finals
from tests.helpers.secured import Secured, grant
from tests.helpers.workers import send
from tests.stream_app.worlds import KEY, SCHEME, Reports, Row, Tick

pytestmark = [pytest.mark.long(part="cluster"), pytest.mark.integration, pytest.mark.xdist_group("kafka")]

TOPICS = Topics("roles", partitions=2, merge_partitions=1)
ROLES = {role.name: role for role in roles(TOPICS)}
As = Callable[[str], KafkaSettings]


@pytest.fixture(scope="module")
def granted(secured: Secured) -> Secured:
    """The broker with a user for each role, who has its rights."""
    create(KafkaSettings(bootstrap=secured.broker.bootstrap), TOPICS)
    for role in ROLES.values():
        grant(secured.broker, role)
    for name, role in ROLES.items():
        eventually(partial(secured.knows, name, role))
    return secured


@pytest.fixture
def as_user(granted: Secured, monkeypatch: pytest.MonkeyPatch) -> As:
    """Become a user: the settings, also of the commands that are called after this."""

    def become(user: str) -> KafkaSettings:
        for name, value in granted.environment(user).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("HEARSAY_KAFKA_PREFIX", TOPICS.prefix)
        monkeypatch.setenv("HEARSAY_CLOCK_KEY", KEY.hex())
        return load().kafka

    return become


def hearsay(*arguments: str) -> Any:
    """What a command prints as JSON, if it succeeds."""
    result = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_survey_is_published_its_reports_are_sent_counted_and_read_by_users_of_these_roles(
    as_user: As, tmp_path: Path
) -> None:
    """Failure would look like: a role of the table that cannot do its work on a real cluster."""
    publish(as_user("publisher"), TOPICS, SCHEME.survey)
    send(as_user("gateway"), TOPICS, [Reports(0, (Row(1), Row(2)))])
    send(as_user("edge"), TOPICS, [Reports(0, (Row(3),)), Tick(0)])
    analyst = as_user("analyst")
    with workers(1, as_user("worker"), TOPICS, KEY, tmp_path) as (worker,):
        eventually(lambda: len(read_finals(analyst, TOPICS)) == 1 or not worker.running)
        send(as_user("gateway"), TOPICS, [Reports(1, (Row(1),))])
        operator = as_user("operator")
        hearsay("close", "s", "--through", "1", "--yes")
        eventually(lambda: len(read_finals(operator, TOPICS)) == 2 or not worker.running)
        assert worker.leave() == 0
    assert hearsay("topics", "check") == []
    assert hearsay("recover")["stuck"] == []
    assert hearsay("deadletters", "list") == []
    for reader in ("analyst", "dashboard"):
        report = hearsay("report", "s", "--kafka", as_user(reader).bootstrap)
        assert report["survey"] == "s"


@pytest.mark.parametrize(
    ("user", "may_not", "topic"),
    [
        ("gateway", "Read", TOPICS.reports),
        ("edge", "Write", TOPICS.surveys),
        ("edge", "Write", TOPICS.partials),
        ("publisher", "Write", TOPICS.reports),
        ("analyst", "Read", TOPICS.reports),
        ("analyst", "Write", TOPICS.reports),
        ("dashboard", "Read", TOPICS.deadletters),
        ("dashboard", "Write", TOPICS.named("live")),
        ("worker", "Write", TOPICS.surveys),
        ("operator", "Write", TOPICS.surveys),
    ],
)
def test_what_a_role_may_not_is_refused_with_the_right_that_it_lacks(
    user: str, may_not: str, topic: str, as_user: As
) -> None:
    kafka = as_user(user)
    seen = "Describe" if may_not == "Read" and not ROLES[user].may("Describe", topic) else may_not
    send(as_user("gateway"), TOPICS, [Reports(0, (Row(1),))])  # so that there is something to read
    with pytest.raises(NotAllowed, match=f"does not allow user '{user}' to: {seen} topic {topic}"):
        if may_not == "Read":
            list(read_topic(kafka, topic))
        else:
            sink = KafkaSink(kafka, topic)
            sink.send(0, "kind", b"value")
            sink.flush()


def test_a_survey_that_an_edge_may_not_publish_names_the_right(as_user: As) -> None:
    other = SCHEME.survey.model_copy(update={"id": "unpublished"})
    with pytest.raises(NotAllowed, match=f"user 'edge' to: Write topic {TOPICS.surveys}"):
        publish(as_user("edge"), TOPICS, other)


def test_a_worker_without_its_rights_names_them_all_and_ends(as_user: As, tmp_path: Path) -> None:
    """Failure would look like: a worker that waits for ever, or ends somewhere in the middle of its work."""
    with workers(1, as_user("analyst"), TOPICS, KEY, tmp_path) as (worker,):
        eventually(lambda: not worker.running)
        said = " ".join(worker.log.read_text().split())
    for right in (f"Read topic {TOPICS.reports}", f"Write topic {TOPICS.partials}", f"Read group {TOPICS.prefix}"):
        assert right in said
    assert f"Read topic {TOPICS.surveys}" not in said, "which an analyst has"


def test_nobody_but_an_administrator_creates_topics(as_user: As) -> None:
    with pytest.raises(NotAllowed, match=r"user 'operator' to: Create topics more\."):
        create(as_user("operator"), Topics("more"))


@pytest.mark.parametrize("role", ROLES.values(), ids=lambda role: str(role.name))
def test_the_cluster_gives_every_role_the_rights_of_the_table_and_no_others(role: Role, as_user: As) -> None:
    kafka, everywhere = as_user(role.name), ROLES["operator"]
    eventually(lambda: None not in allowed(kafka, everywhere).values())  # a group may have no coordinator yet
    for right, operations in allowed(kafka, everywhere).items():
        given = {operation for operation in operations or () if operation in ("Read", "Write")}
        assert given == {word for word in ("Read", "Write") if role.may(word, right.name, right.resource)}, right
