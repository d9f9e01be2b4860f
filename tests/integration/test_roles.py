"""Servers of this machine: a stack of two, and a broker whose users have roles."""

import gc
import json
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis
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

from hearsay.cli import app
from hearsay.commands.operations import stack as stack_command
from hearsay.running.stack import Stack
from producers.kafka_sink import KafkaSink
from protocols.errors import NotAllowed, ServerError, ServerUnavailable
from servers import kafka_broker as jars
from servers.kafka_broker import KafkaBroker
from servers.kafka_clients import opened
from servers.ports import free_port
from servers.settings import KafkaSettings, load
from stream_app.kafka import Role, Topics, allowed, check, check_rights, create, existing, publish, read_topic, roles
from tests.helpers.certificates import Authority
from tests.helpers.counting import Counting
from tests.helpers.eventually import eventually
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

    def counting(user: str) -> Counting:
        return Counting(as_user(user), TOPICS, tmp_path)

    counting("publisher").publish(SCHEME)
    counting("gateway").send([Reports(0, (Row(1), Row(2)))])
    counting("edge").send([Reports(0, (Row(3),)), Tick(0)])
    analyst = counting("analyst")
    with counting("worker").workers() as (worker,):
        analyst.until_final(1)
        counting("gateway").send([Reports(1, (Row(1),))])
        operator = counting("operator")
        hearsay("close", "s", "--through", "1", "--yes")
        operator.until_final(2)
        assert worker.leave() == 0
    assert hearsay("topics", "check") == []
    assert hearsay("recover")["stuck"] == []
    assert hearsay("deadletters", "list") == []
    for reader in ("analyst", "dashboard"):
        report = hearsay("report", "s", "--kafka", as_user(reader).bootstrap)
        assert report["survey"] == "s"


def test_what_a_role_may_not_is_refused_with_the_right_that_it_lacks(as_user: As, tmp_path: Path) -> None:
    Counting(as_user("gateway"), TOPICS, tmp_path).send([Reports(0, (Row(1),))])  # so that there is something to read
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


@pytest.mark.parametrize("command", [("topics", "check"), ("recover",), ("doctor",)], ids=" ".join)
@pytest.mark.parametrize("user", ["nobody", "gateway", "analyst"])
def test_who_may_not_see_topics_is_told_every_right_that_is_missing(
    user: str, command: tuple[str, ...], secured: "Secured", as_user: As
) -> None:
    """Failure would look like: an unexpected error, or the first of a dozen rights that an administrator must grant."""
    add_user(secured.broker, "nobody")
    eventually(lambda: secured.knows("nobody"))
    as_user(user)
    result = CliRunner().invoke(app, [*command, "--json"])
    if command == ("doctor",):
        findings = {finding["what"]: finding for finding in json.loads(result.stdout)["findings"]}
        assert (result.exit_code, findings["broker"]["ok"]) == (1, False)
        said = findings["broker"]["found"]
    else:
        assert isinstance(result.exception, NotAllowed), result.exception
        said = result.exception.message
    assert f"does not allow user {user!r} to: " in said
    named = set(said.partition(" to: ")[2].split(", "))
    held = {
        f"{word} topic {right.name}"
        for role in roles(TOPICS)
        if role.name == user
        for right in role.rights
        for word in right.operations
    }
    needed = {f"{word} topic {topic.name}" for topic in TOPICS.all() for word in ("Describe", "DescribeConfigs")}
    read = (TOPICS.reports, TOPICS.partials, TOPICS.counting_changelog, TOPICS.merging_changelog)
    needed |= {f"Read topic {name}" for name in read}
    assert named == needed - held


def test_a_worker_without_its_rights_names_them_all_and_ends(as_user: As, tmp_path: Path) -> None:
    """Failure would look like: a worker that waits for ever, or ends somewhere in the middle of its work."""
    with Counting(as_user("analyst"), TOPICS, tmp_path).workers() as (worker,):
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
    monkeypatch.setattr("producers.kafka_sink.OPEN_SECONDS", 3)
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


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("stack"))
    stack.up()
    yield stack
    stack.down()


def run(app: Any, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    return result.exit_code, result.output


def status(stack: Stack) -> tuple[int, dict[str, Any]]:
    code, output = run(stack_command.app, "status", "--dir", str(stack.directory), "--json")
    return code, {server["name"]: server for server in json.loads(output)["servers"]}


def test_up_leaves_two_servers_that_answer_and_topics_as_they_must_be_and_settings_that_lead_there(
    stack: Stack,
) -> None:
    code, servers = status(stack)
    assert (code, servers["kafka"]["answers"], servers["redis"]["answers"]) == (0, True, True)
    settings = load(stack.settings_file)
    assert check(settings.kafka, existing(settings.kafka)) == []
    assert (settings.kafka.bootstrap, settings.redis.url) == (servers["kafka"]["address"], stack.redis.url)
    assert len(settings.clock_key_bytes()) == 32
    assert stat.S_IMODE((stack.directory / "clock.key").stat().st_mode) == 0o600


def test_up_again_changes_nothing(stack: Stack) -> None:
    before = stack.status(), stack.settings_file.read_text(), (stack.directory / "clock.key").read_text()
    code, output = run(stack_command.app, "up", "--dir", str(stack.directory))
    assert code == 0
    assert f"HEARSAY_SETTINGS={stack.settings_file}" in output
    assert (stack.status(), stack.settings_file.read_text(), (stack.directory / "clock.key").read_text()) == before


def test_a_killed_server_is_reported_and_up_brings_it_back_with_its_data(stack: Stack) -> None:
    with redis.Redis.from_url(stack.redis.url) as client:
        client.set("memo", "kept")
    stack.redis.kill()
    code, servers = status(stack)
    assert (code, servers["redis"]["answers"], servers["kafka"]["answers"]) == (1, False, True)
    stack.up()
    with redis.Redis.from_url(stack.redis.url, decode_responses=True) as client:
        assert client.get("memo") == "kept"


def test_the_logs_are_shown_with_their_places(stack: Stack) -> None:
    code, output = run(stack_command.app, "logs", "--dir", str(stack.directory), "-n", "3", "--json")
    shown = json.loads(output)
    assert code == 0
    assert [len(lines) for lines in shown.values()] == [3, 3]
    assert list(shown) == [str(stack.kafka.log_file), str(stack.redis.log_file)]


def test_down_stops_both_may_be_repeated_and_up_returns_to_the_same_addresses(stack: Stack) -> None:
    addresses = [server.address for server in stack.status()]
    for _ in range(2):
        code, _ = run(stack_command.app, "down", "--dir", str(stack.directory))
        assert code == 0
        assert [server.pid for server in stack.status()] == [None, None]
    stack.up()
    assert [server.address for server in stack.status()] == addresses


def test_a_broker_moves_to_another_port_when_it_is_stopped(stack: Stack) -> None:
    with pytest.raises(ServerError, match=f"running on port {stack.kafka.port}, not 4711"):
        stack.up(port=4711)
    stack.down()
    port = free_port()
    stack.up(port=port)
    assert stack.kafka.bootstrap == f"127.0.0.1:{port}"
    assert stack.kafka.answers()


def test_nothing_is_running_where_nothing_was_started(tmp_path: Path) -> None:
    never = Stack(tmp_path / "never")
    never.down()
    assert [server.pid for server in never.status()] == [None, None]
    assert not never.directory.exists()


@pytest.mark.parametrize(("program", "package"), [("java", "default-jre-headless"), ("mvn", "maven")])
def test_a_missing_program_is_one_sentence_that_says_what_to_install(
    program: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEARSAY_CACHE", str(tmp_path / "empty"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("MAVEN_HOME", raising=False)
    installed = jars.shutil.which

    def found(name: str, path: str | None = None) -> str | None:
        return None if name == program else installed(name, path=path)

    monkeypatch.setattr(jars.shutil, "which", found)
    with pytest.raises(ServerError, match="is not installed") as caught:
        Stack(tmp_path / "stack").up()
    assert package in caught.value.hint
    assert not KafkaBroker(tmp_path / "stack" / "kafka").running
