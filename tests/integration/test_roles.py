"""A broker that wants TLS, a certificate and a password, and the roles of its users: what each may do, and may not."""

import gc
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from typer.testing import CliRunner

from bench._processes import workers
from hearsay.cli import app
from producers.sinks import KafkaSink
from protocols.errors import NotAllowed, ServerUnavailable
from servers.kafka_broker import KafkaBroker
from servers.kafka_clients import opened
from servers.ports import free_port
from servers.settings import KafkaSettings, load
from stream_app.kafka import Role, Topics, allowed, check_rights, create, existing, publish, read_topic, roles
from tests.helpers.certificates import Authority
from tests.helpers.eventually import eventually
from tests.helpers.published import read_finals
from tests.helpers.workers import send
from tests.stream_app.worlds import KEY, SCHEME, Reports, Row, Tick

pytestmark = [pytest.mark.long(part="cluster"), pytest.mark.integration, pytest.mark.xdist_group("kafka")]
TOPICS = Topics("roles", partitions=2, merge_partitions=1)
ROLES = {role.name: role for role in roles(TOPICS)}
As = Callable[[str], KafkaSettings]
USER, PASSWORD = "fleet", "correct horse"
"""Of a user that may do everything."""


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Secured]":
    """A running broker that takes nobody without a certificate and a password.

    It has a user for each role, who has its rights, and one who may do everything.
    """
    directory = tmp_path_factory.mktemp("secured")
    authority = Authority(directory / "certificates")
    broker = secured_broker(directory / "kafka", authority)
    try:
        add_user(broker.start())
        running = Secured(broker, authority, authority.issue("client"))
        create(KafkaSettings(bootstrap=broker.bootstrap), TOPICS)
        for role in ROLES.values():
            grant(broker, role)
        for name, role in [(USER, None), *ROLES.items()]:
            eventually(partial(running.knows, name, role))
        yield running
    finally:
        broker.stop()


@pytest.fixture
def as_user(secured: "Secured", monkeypatch: pytest.MonkeyPatch) -> As:
    """Become a user: the settings, also of the commands that are called after this."""

    def become(user: str) -> KafkaSettings:
        for name, value in secured.environment(user).items():
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


def test_what_a_role_may_not_is_refused_with_the_right_that_it_lacks(as_user: As) -> None:
    send(as_user("gateway"), TOPICS, [Reports(0, (Row(1),))])  # so that there is something to read
    with pytest.raises(NotAllowed, match=f"does not allow user 'analyst' to: Describe topic {TOPICS.reports}"):
        list(read_topic(as_user("analyst"), TOPICS.reports))
    with pytest.raises(NotAllowed, match=f"does not allow user 'gateway' to: Read topic {TOPICS.reports}"):
        list(read_topic(as_user("gateway"), TOPICS.reports))
    with pytest.raises(NotAllowed, match=f"user 'publisher' to: Write topic {TOPICS.reports}"):
        sink = KafkaSink(as_user("publisher"), TOPICS.reports)
        sink.send(0, "kind", b"value")
        sink.flush()
    with pytest.raises(NotAllowed, match=f"user 'edge' to: Write topic {TOPICS.surveys}"):
        publish(as_user("edge"), TOPICS, SCHEME.survey.model_copy(update={"id": "unpublished"}))
    with pytest.raises(NotAllowed, match=r"user 'operator' to: Create topics more\."):
        create(as_user("operator"), Topics("more"))


def test_a_worker_without_its_rights_names_them_all_and_ends(as_user: As, tmp_path: Path) -> None:
    """Failure would look like: a worker that waits for ever, or ends somewhere in the middle of its work."""
    with workers(1, as_user("analyst"), TOPICS, KEY, tmp_path) as (worker,):
        eventually(lambda: not worker.running)
        said = " ".join(worker.log.read_text().split())
    for right in (f"Read topic {TOPICS.reports}", f"Write topic {TOPICS.partials}", f"Read group {TOPICS.prefix}"):
        assert right in said
    assert f"Read topic {TOPICS.surveys}" not in said, "which an analyst has"


@pytest.mark.parametrize("role", ROLES.values(), ids=lambda role: str(role.name))
def test_the_cluster_gives_every_role_the_rights_of_the_table_and_no_others(role: Role, as_user: As) -> None:
    kafka, everywhere = as_user(role.name), ROLES["operator"]
    eventually(lambda: None not in allowed(kafka, everywhere).values())  # a group may have no coordinator yet
    for right, operations in allowed(kafka, everywhere).items():
        given = {operation for operation in operations or () if operation in ("Read", "Write")}
        own = {
            word
            for each in role.rights
            if (each.resource, each.name) == (right.resource, right.name)
            for word in each.operations
        }
        assert given == own & {"Read", "Write"}, right


def test_the_other_way_to_log_in(as_user: As) -> None:
    plain = as_user(USER).model_copy(update={"sasl_mechanism": "PLAIN"})
    create(plain, Topics("plain", partitions=1, merge_partitions=1))
    sink = KafkaSink(plain, "plain.reports")
    sink.send(0, "kind", b"value")
    sink.close()
    assert [record.value for record in read_topic(plain, "plain.reports")] == [b"value"]


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whoever is refused hears of it soon. kafka-python forgets sockets whose handshake fails; the test drops them."""
    monkeypatch.setattr("servers.kafka_clients.FIRST_SECONDS", 1.0)
    monkeypatch.setattr("producers.sinks.kafka.OPEN_SECONDS", 3)
    monkeypatch.setattr("stream_app.kafka.topics.ANSWER_SECONDS", 3)
    yield
    gc.collect()


@pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")
@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"SASL_PASSWORD": "wrong horse"}, "connection of user 'fleet' .*_PASSWORD"),
        ({"SASL_PASSWORD": "wrong horse", "SASL_MECHANISM": "PLAIN"}, "connection of user 'fleet' .*_PASSWORD"),
        ({"SECURITY": "PLAINTEXT"}, "closes the connection .*HEARSAY_KAFKA_SECURITY"),
        ({"SSL_CA": "stranger.pem"}, "certificates do not fit: .*CERTIFICATE_VERIFY_FAILED.*HEARSAY_KAFKA_SSL_CA"),
    ],
)
@pytest.mark.parametrize("knock", [lambda kafka: KafkaSink(kafka, "reports"), existing], ids=["sender", "collector"])
def test_who_is_not_let_in_is_told_why(
    knock: Callable[[KafkaSettings], object],
    changed: dict[str, str],
    complaint: str,
    as_user: As,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    as_user(USER)
    Authority(tmp_path, "stranger")
    for name, value in changed.items():
        monkeypatch.setenv(f"HEARSAY_KAFKA_{name}", value)
    with pytest.raises(ServerUnavailable, match=complaint) as refused:
        knock(load().kafka)
    assert "horse" not in str(refused.value)


@dataclass(frozen=True)
class Secured:
    """A running broker of this kind, and the certificates of its clients."""

    broker: KafkaBroker
    authority: Authority
    client: tuple[Path, Path]  # certificate and key

    def environment(self, user: str) -> dict[str, str]:
        """What a user sets to reach it."""
        certificate, key = self.client
        return {
            "HEARSAY_KAFKA_BOOTSTRAP": self.broker.settings["listeners"].split(",")[1].removeprefix("SECURE://"),
            "HEARSAY_KAFKA_SECURITY": "SASL_SSL",
            "HEARSAY_KAFKA_SASL_USERNAME": user,
            "HEARSAY_KAFKA_SASL_PASSWORD": PASSWORD,
            "HEARSAY_KAFKA_SSL_CA": str(self.authority.certificate),
            "HEARSAY_KAFKA_SSL_CERTIFICATE": str(certificate),
            "HEARSAY_KAFKA_SSL_KEY": str(key),
        }

    def knows(self, user: str, role: Role | None = None) -> bool:
        """Whether a user can log in, and has the rights of a role: a broker learns of both a little later."""
        given = {name.removeprefix("HEARSAY_KAFKA_").lower(): text for name, text in self.environment(user).items()}
        settings = KafkaSettings.model_validate(given)
        try:
            opened(KafkaAdminClient, settings, 10).close()
            if role is not None:
                check_rights(settings, role)
        except (ServerUnavailable, NotAllowed):
            return False
        return True


def secured_broker(directory: Path, authority: Authority) -> KafkaBroker:
    """The local broker with a second door: the first stays open for the broker itself and for whoever adds users."""
    certificate, key = authority.issue("broker")
    keys = certificate.with_suffix(".pem")
    keys.write_bytes(key.read_bytes() + certificate.read_bytes())
    port, secure, controller = free_port(), free_port(), free_port()
    door = "listener.name.secure"
    return KafkaBroker(
        directory,
        port=port,
        settings={
            "listeners": f"CLIENT://127.0.0.1:{port},SECURE://127.0.0.1:{secure},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"CLIENT://127.0.0.1:{port},SECURE://127.0.0.1:{secure}",
            "listener.security.protocol.map": "CLIENT:PLAINTEXT,SECURE:SASL_SSL,CONTROLLER:PLAINTEXT",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:ANONYMOUS;User:{USER}",
            f"{door}.ssl.keystore.type": "PEM",
            f"{door}.ssl.keystore.location": str(keys),
            f"{door}.ssl.truststore.type": "PEM",
            f"{door}.ssl.truststore.location": str(authority.certificate),
            f"{door}.ssl.client.auth": "required",
            f"{door}.sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
            f"{door}.scram-sha-512.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
            f"{door}.plain.sasl.jaas.config": (
                f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
            ),
        },
    )


def add_user(broker: KafkaBroker, name: str = USER) -> None:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.alter_user_scram_credentials([UserScramCredentialUpsertion(name, ScramMechanism.SCRAM_SHA_512, PASSWORD)])
    admin.close()


def grant(broker: KafkaBroker, role: Role) -> None:
    """Add a user of this name with the rights of a role."""
    add_user(broker, role.name)
    resources = {"topic": ResourceType.TOPIC, "group": ResourceType.GROUP}
    acls = [
        ACL(
            f"User:{role.name}",
            "*",
            ACLOperation[acl_name(operation)],
            ACLPermissionType.ALLOW,
            ResourcePattern(resources[right.resource], right.name),
        )
        for right in role.rights
        for operation in right.operations
    ]
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    created = admin.create_acls(acls)
    admin.close()
    assert len(created["succeeded"]) == len(acls) and not created["failed"]


def acl_name(operation: str) -> str:
    """An operation as kafka-python spells it.

    >>> acl_name("DescribeConfigs")
    'DESCRIBE_CONFIGS'
    """
    return "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in operation).removeprefix("_")
