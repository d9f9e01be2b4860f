"""Connecting to a Kafka cluster, with an error that names the cause.

kafka-python retries whatever the cause and in the end reports only a time-out; the cause goes to its log. So a handler
collects what it logs, and retries end early where they cannot help. A refused password often shows up only as a lost
connection, because kafka-python drops what came just before the end.

When its first connection fails, a client of kafka-python leaves behind a thread, the sockets of its event loop and
those over which it tried to connect; and it waits without a limit for the answer to a TLS handshake. So an attempt
makes the client's event loop itself, and closes it.
"""

import logging
import selectors
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from threading import Timer
from typing import Any, TypeVar
from weakref import WeakSet

from kafka import KafkaAdminClient, KafkaProducer
from kafka.errors import KafkaError
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from protocols.errors import HearsayError, NotAllowed, ServerUnavailable
from servers.settings import NO_KAFKA, KafkaSettings

FIRST_SECONDS = 2.0
"""How long the first attempt may take; each further one takes twice as long."""
SPARE_SECONDS = 10.0
"""How much longer than its own limit an attempt may take before it is ended."""
STOP_SECONDS = 10.0
"""How long the thread of a failed client may take to end: it may be waiting for a name server."""
T = TypeVar("T")
A = TypeVar("A", bound=KafkaAdminClient | KafkaProducer)
DURABLE: dict[str, Any] = {"acks": "all", "enable_idempotence": True, "allow_auto_create_topics": False}
"""Options of a producer whose records are confirmed by all replicas, each written once, to topics that exist."""


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
    client: Callable[..., A],
    settings: KafkaSettings,
    seconds: float,
    right: str = "Describe the topics",
    what: str = "did not complete a request",
    **options: Any,
) -> Iterator[A]:
    """A client, closed at the end. Raises ServerUnavailable also where a request fails, with `what` went wrong.

    If it is refused, NotAllowed is raised, with the `right` that its requests need.
    """
    try:
        with closing(opened(client, settings, seconds, **options)) as opened_client:
            yield opened_client
    except KafkaError as error:
        raise failure(settings, error, right, what) from error


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


def attempted(client: Callable[..., T], seconds: float, **options: Any) -> T:
    """A client that has connected within so many seconds. Raises what kafka-python raises if it has not."""
    io = _Connections()
    limit = Timer(seconds + SPARE_SECONDS, io.give_up)
    limit.start()
    try:
        milliseconds = int(seconds * 1000)
        return client(**options, bootstrap_timeout_ms=milliseconds, kafka_client=io.client, selector=_ClosingSelector)
    except BaseException:
        io.close()
        raise
    finally:
        limit.cancel()
        limit.join()


class _Connections:
    """The event loop and the connections of one client."""

    def __init__(self) -> None:
        self._made: list[tuple[NetworkSelector, KafkaConnectionManager]] = []

    def client(self, **options: Any) -> KafkaNetClient:
        """What kafka-python makes for itself unless it is given another function."""
        loop = NetworkSelector(**options)
        manager = KafkaConnectionManager(loop, **options)
        self._made.append((loop, manager))
        return KafkaNetClient(loop, manager)

    def give_up(self) -> None:
        """Let the attempt fail, from any thread: close its connections, and with them its wait for an answer."""
        for loop, manager in self._made:
            loop.call_soon_threadsafe(manager.close)

    def close(self) -> None:
        """Stop the thread, and close everything."""
        for loop, manager in self._made:
            loop.stop(timeout_ms=STOP_SECONDS * 1000)
            manager.close()
            loop.close()


class _ClosingSelector(selectors.DefaultSelector):
    """A selector that closes its sockets with itself: kafka-python forgets those whose connection failed."""

    def __init__(self) -> None:
        super().__init__()
        self._sockets: WeakSet[Any] = WeakSet()

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        self._sockets.add(fileobj)
        return super().register(fileobj, events, data)

    def close(self) -> None:
        super().close()
        for socket in list(self._sockets):
            socket.close()
