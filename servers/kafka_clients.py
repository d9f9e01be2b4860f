"""Getting into a Kafka cluster, or saying why not.

kafka-python tries again whatever is the matter, and in the end says that the time is up. What was the matter it tells
its log, so we listen there; and where trying again cannot help, we stop. A refused password is often heard of as a
lost connection only: kafka-python drops what came just before the end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from kafka.errors import KafkaError

from protocols.errors import ServerUnavailable
from servers.settings import NO_KAFKA, KafkaSettings

FIRST_SECONDS = 2.0
"""How long the first attempt may take; each further one takes twice as long."""
T = TypeVar("T")


def opened(client: Callable[..., T], settings: KafkaSettings, seconds: float, **options: Any) -> T:
    """A client of kafka-python that is connected. After so many seconds in all, ServerUnavailable says why not."""
    attempt, left = FIRST_SECONDS, seconds
    options = {**settings.client_options(), **options}
    with _listening() as ear:
        while True:
            try:
                return client(**options, bootstrap_timeout_ms=int(min(attempt, left) * 1000))
            except (KafkaError, OSError) as error:
                left -= attempt
                attempt *= 2
                if left <= 0 or ear.heard_refusal:
                    raise ServerUnavailable(*ear.explain(settings, error)) from None


class _Ear(logging.Handler):
    """Keeps what went wrong with connections."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        arguments = record.args if isinstance(record.args, tuple) else ()
        self._heard += [str(argument) for argument in arguments if isinstance(argument, Exception)]

    @property
    def heard_refusal(self) -> bool:
        """Whether it will not be otherwise next time."""
        return self._found("SaslAuthenticationFailed", "CERTIFICATE") is not None

    def explain(self, settings: KafkaSettings, error: Exception) -> tuple[str, str]:
        """A message and a hint."""
        where = f"Kafka at {settings.bootstrap}"
        certificate = self._found("CERTIFICATE")
        if certificate:
            return (
                f"{where} and we do not trust each other: {certificate}",
                "look at HEARSAY_KAFKA_SSL_CA, and _CERTIFICATE and _KEY if it wants to know who we are",
            )
        hangs_up = self._found("SaslAuthenticationFailed", "disconnected", "SSL")
        if hangs_up and settings.security.startswith("SASL"):
            return (
                f"{where} hangs up on the user {settings.sasl_username!r}",
                "look at HEARSAY_KAFKA_SASL_USERNAME, _PASSWORD and _MECHANISM, and at HEARSAY_KAFKA_SECURITY",
            )
        if hangs_up:
            return f"{where} hangs up on us", "it may expect another HEARSAY_KAFKA_SECURITY"
        why = self._found("KafkaConnectionError") or str(error)  # ours says only that the time is up
        return f"{where} does not answer: {why.removeprefix('KafkaConnectionError: ')}", NO_KAFKA

    def _found(self, *words: str) -> str | None:
        return next((text for text in self._heard if any(word in text for word in words)), None)


@contextmanager
def _listening() -> Iterator[_Ear]:
    """Hear what kafka-python says of its connections, and let nobody else: every attempt is several lines."""
    logger, ear = logging.getLogger("kafka.net"), _Ear()
    logger.addHandler(ear)
    passes_on, logger.propagate = logger.propagate, False
    try:
        yield ear
    finally:
        logger.propagate = passes_on
        logger.removeHandler(ear)
