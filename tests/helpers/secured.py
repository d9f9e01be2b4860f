"""A broker that wants TLS, a client's certificate and a password, and gives each user the rights it was granted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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

from protocols.errors import NotAllowed, ServerUnavailable
from servers.kafka_broker import KafkaBroker
from servers.kafka_clients import opened
from servers.ports import free_port
from servers.settings import KafkaSettings
from stream_app.kafka import Role, check_rights
from tests.helpers.certificates import Authority
from tests.helpers.eventually import eventually

USER, PASSWORD = "fleet", "correct horse"
"""Of a user that may do everything."""


@dataclass(frozen=True)
class Secured:
    """A running broker of this kind, and the certificates of its clients."""

    broker: KafkaBroker
    authority: Authority
    client: tuple[Path, Path]  # certificate and key

    def environment(self, user: str = USER) -> dict[str, str]:
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

    def settings(self, user: str = USER) -> KafkaSettings:
        """The same, as the settings that are made of it."""
        given = {name.removeprefix("HEARSAY_KAFKA_").lower(): text for name, text in self.environment(user).items()}
        return KafkaSettings.model_validate(given)

    def knows(self, user: str, role: Role | None = None) -> bool:
        """Whether a user can log in, and has the rights of a role: a broker learns of both a little later."""
        try:
            opened(KafkaAdminClient, self.settings(user), 10).close()
            if role is not None:
                check_rights(self.settings(user), role)
        except (ServerUnavailable, NotAllowed):
            return False
        return True


@contextmanager
def secured(directory: Path) -> Iterator[Secured]:
    """A broker with one user, who may do everything, for the time of the block."""
    authority = Authority(directory / "certificates")
    broker = secured_broker(directory / "kafka", authority)
    try:
        add_user(broker.start())
        running = Secured(broker, authority, authority.issue("client"))
        eventually(lambda: running.knows(USER))
        yield running
    finally:
        broker.stop()


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
