"""Connecting to a Kafka cluster, with an error that names the cause.

kafka-python retries whatever the cause and in the end reports only a time-out; the cause goes to its log. So a handler
collects what it logs, and retries end early where they cannot help. A refused password often shows up only as a lost
connection, because kafka-python drops what came just before the end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from protocols.errors import HearsayError, NotAllowed, ServerUnavailable
from servers.kafka_attempts import attempted
from servers.settings import NO_KAFKA, KafkaSettings

FIRST_SECONDS = 2.0
"""How long the first attempt may take; each further one takes twice as long."""
T = TypeVar("T")
A = TypeVar("A", bound=KafkaAdminClient)


def opened(client: Callable[..., T], settings: KafkaSettings, seconds: float, **options: Any) -> T:
    """A connected client of kafka-python. Raises ServerUnavailable with the cause after so many seconds in all."""
    attempt, left = FIRST_SECONDS, seconds
    options = {**settings.client_options(), **options}
    with _connection_failures() as failures:
        while True:
            try:
                return attempted(client, min(attempt, left), **options)
            except (KafkaError, OSError) as error:
                left -= attempt
                attempt *= 2
                if left <= 0 or failures.final:
                    raise ServerUnavailable(*failures.explain(settings, error)) from None


@contextmanager
def connected(
    admin: Callable[..., A], settings: KafkaSettings, seconds: float, right: str = "Describe the topics"
) -> Iterator[A]:
    """An admin client, closed at the end. Raises ServerUnavailable also where a request fails.

    If it is refused, NotAllowed is raised, with the `right` that its requests need.
    """
    try:
        client = opened(admin, settings, seconds)
        try:
            yield client
        finally:
            client.close()
    except KafkaError as error:
        raise failure(settings, error, right, "did not complete a request") from error


def failure(settings: KafkaSettings, error: KafkaError, right: str, what: str) -> HearsayError:
    """What to raise for a request that failed: the `right` that it needs is missing, or else `what` went wrong."""
    if is_refusal(error):
        return not_allowed(settings, right)
    return ServerUnavailable(f"Kafka at {settings.bootstrap} {what}: {error}", NO_KAFKA)


def is_refusal(error: Exception) -> bool:
    """Whether a right was missing. A producer of a user who may write nothing names it only in the text."""
    return "AuthorizationFailedError" in f"{type(error).__name__} {error}"


def not_allowed(settings: KafkaSettings, *rights: str) -> NotAllowed:
    """The error for rights that this user lacks, such as "Read topic hearsay.reports"."""
    who = "this client" if settings.sasl_username is None else f"user {settings.sasl_username!r}"
    return NotAllowed(
        f"Kafka at {settings.bootstrap} does not allow {who} to: {', '.join(rights)}",
        "let an administrator of the cluster grant it, if the role needs it: docs/deploying.md says who may do what",
    )


class _ConnectionFailures(logging.Handler):
    """Collects the exceptions that kafka-python logs about its connections."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._failures: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        arguments = record.args if isinstance(record.args, tuple) else ()
        self._failures += [str(argument) for argument in arguments if isinstance(argument, Exception)]

    @property
    def final(self) -> bool:
        """Whether another attempt would fail in the same way."""
        return self._found("SaslAuthenticationFailed", "CERTIFICATE") is not None

    def explain(self, settings: KafkaSettings, error: Exception) -> tuple[str, str]:
        """A message and a hint."""
        where = f"Kafka at {settings.bootstrap}"
        certificate = self._found("CERTIFICATE")
        if certificate:
            return (
                f"{where}: the TLS certificates do not fit: {certificate}",
                "check HEARSAY_KAFKA_SSL_CA, and _CERTIFICATE and _KEY if the broker requires a client certificate",
            )
        closed = self._found("SaslAuthenticationFailed", "disconnected", "SSL")
        if closed and settings.security.startswith("SASL"):
            return (
                f"{where} closes the connection of user {settings.sasl_username!r}",
                "check HEARSAY_KAFKA_SASL_USERNAME, _PASSWORD and _MECHANISM, and HEARSAY_KAFKA_SECURITY",
            )
        if closed:
            return f"{where} closes the connection", "it may expect another HEARSAY_KAFKA_SECURITY"
        why = self._found("KafkaConnectionError") or str(error)  # the latter is only a time-out
        return f"{where} does not answer: {why.removeprefix('KafkaConnectionError: ')}", NO_KAFKA

    def _found(self, *words: str) -> str | None:
        return next((text for text in self._failures if any(word in text for word in words)), None)


@contextmanager
def _connection_failures() -> Iterator[_ConnectionFailures]:
    """Collect kafka-python's log of its connections instead of showing it: every attempt is several lines."""
    logger, failures = logging.getLogger("kafka.net"), _ConnectionFailures()
    logger.addHandler(failures)
    propagated, logger.propagate = logger.propagate, False
    try:
        yield failures
    finally:
        logger.propagate = propagated
        logger.removeHandler(failures)
