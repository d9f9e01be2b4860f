"""The connection to Redis: one server or a cluster, batches of commands, a bounded number of retries.

Everything the store sends is idempotent (the first writer wins, also if it writes again), so a batch without an answer
is retried as a whole.

And whether Redis is configured to keep what is written: a lost memo can be derived again; a lost ledger cannot.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import redis
import redis.exceptions as failures
from redis.backoff import NoBackoff
from redis.retry import Retry

from protocols.errors import SettingsError, StoreError, StoreUnavailable

Client = redis.Redis | redis.RedisCluster
Command = tuple[Any, ...]
T = TypeVar("T")

PAGE = 5000
TRIES = 8
FIRST_WAIT, LONGEST_WAIT = 0.1, 3.0
ANSWER_SECONDS = 10.0
"""How long one batch may take before it counts as not answered."""

RIGHTS = "+@hash +@string +@set +eval +unlink +info +dbsize +multi +exec +ping +cluster ~hearsay:*"
"""What the store's user in Redis must be allowed to do."""

TRANSIENT = (
    failures.ConnectionError,
    failures.TimeoutError,
    failures.ReadOnlyError,  # a replica that has not been promoted yet
    failures.ClusterDownError,
    failures.TryAgainError,
)
"""Failures that are retried: restarts, failovers, loading, slowness."""
TRANSIENT_WORDS = ("LOADING", "MASTERDOWN", "BUSY ", "MISCONF", "NOREPLICAS")
"""The same, where only the text of Redis's error shows it."""


class Link:
    """A connection that runs batches of commands: all are answered, or StoreError is raised."""

    def __init__(self, target: str | Client, *, sleep: Callable[[float], None] = time.sleep, **options: Any) -> None:
        self._sleep = sleep
        # The address, without secrets.
        self.where = _without_password(target) if isinstance(target, str) else "the given client"
        self.client = _connect(target, options, self._retrying) if isinstance(target, str) else target
        self.clustered = isinstance(self.client, redis.RedisCluster)
        if self.client.get_encoder().decode_responses:
            raise SettingsError("the Redis client decodes answers as text", "create it with decode_responses=False")

    def run(self, commands: Sequence[Command], *, atomic: bool = False) -> list[Any]:
        """Run all commands in one batch. Returns their answers in order.

        `atomic` batches are a transaction if there is one server. This also syncs them to disk only once: outside of a
        transaction Redis syncs after every 16 KB it has read.
        """

        def attempt() -> list[Any]:
            with self.client.pipeline(transaction=atomic and not self.clustered) as batch:
                for command in commands:
                    batch.execute_command(*command)
                return list(batch.execute())

        return self._retrying(attempt, self._reconnect) if commands else []

    def ask(self, *command: Any) -> Any:
        """Run one command. Returns its answer."""
        send: Callable[..., Any] = self.client.execute_command  # redis-py leaves it without types
        return self._retrying(lambda: send(*command), self._reconnect)

    def fields(self, key: str) -> Iterator[tuple[bytes, bytes]]:
        """All fields of a hash and their values, page by page. One that is written meanwhile may come twice."""
        cursor: int | None = None
        while cursor != 0:
            cursor, page = self.ask("HSCAN", key, cursor or 0, "COUNT", PAGE)
            yield from page.items()

    def ask_each(self, *command: Any) -> list[Any]:
        """Run one command on every server that holds data. Returns their answers."""
        if not self.clustered:
            return [self.ask(*command)]
        send: Callable[..., Any] = self.client.execute_command
        answers = self._retrying(lambda: send(*command, target_nodes=redis.RedisCluster.PRIMARIES))
        return list(answers.values()) if isinstance(answers, dict) else [answers]

    def close(self) -> None:
        self.client.close()

    def _reconnect(self) -> None:
        """Drop idle connections: another server may be at the address by now."""
        if isinstance(self.client, redis.Redis):
            self.client.connection_pool.disconnect(inuse_connections=False)

    def _retrying(self, attempt: Callable[[], T], before_retry: Callable[[], None] = lambda: None) -> T:
        for number in range(TRIES):
            if number:
                self._sleep(min(FIRST_WAIT * 2 ** (number - 1), LONGEST_WAIT))
                before_retry()
            try:
                return attempt()
            except failures.AuthenticationError as error:
                raise StoreError(
                    f"Redis at {self.where} refused the user: {error}", "check user and password"
                ) from None
            except TRANSIENT as error:
                failure: Exception = error
            except failures.ResponseError as error:
                if not any(word in str(error) for word in TRANSIENT_WORDS):
                    raise StoreError(f"Redis at {self.where} refused: {error}", _advice(error)) from None
                failure = error
        raise StoreUnavailable(
            f"Redis at {self.where} did not answer after {TRIES} tries: {failure}",
            "start Redis, or wait until it answers, and run again: nothing was reported without its memo",
        ) from failure


def _without_password(url: str) -> str:
    """A URL without user, password and options, also if it is malformed: it may be shown.

    >>> _without_password("redis://fleet:hush@store:6379/0?password=hush")
    'redis://…@store:6379/0'
    """
    return re.sub("//.*@", "//…@", url).partition("?")[0]


def _connect(url: str, options: dict[str, Any], retrying: Callable[[Callable[[], Any]], Any]) -> Client:
    """A client for the server at `url`, or for the cluster that this server is part of."""
    options = {
        "socket_timeout": ANSWER_SECONDS,
        "retry": Retry(NoBackoff(), 0),  # `Link` retries
        **options,
    }
    try:
        single = redis.Redis.from_url(url, **options)
        single.connection_pool.make_connection()  # which checks the options
    except (ValueError, TypeError):  # not chained: they may quote the password
        raise SettingsError(
            f"{_without_password(url)!r} is not a valid Redis URL, or has unknown options",
            "write redis://host:port/db, rediss:// for TLS, or unix:///path, and set the password separately",
        ) from None
    if not retrying(lambda: single.info("cluster")).get("cluster_enabled"):
        return single
    single.close()
    cluster: redis.RedisCluster = retrying(lambda: redis.RedisCluster.from_url(url, **options))
    return cluster


def _advice(refusal: failures.ResponseError) -> str:
    if isinstance(refusal, failures.NoPermissionError) or "user executing the script" in str(refusal):
        return f"grant the user {RIGHTS}"
    if isinstance(refusal, failures.OutOfMemoryError):
        return "give Redis more memory; do not let it evict keys"
    return "look at the log of Redis"


@dataclass(frozen=True)
class Durability:
    """How the servers persist data: the weakest settings among them."""

    append_only: bool
    fsync: str | None  # always, everysec or no; None if the servers do not show it
    eviction: str | None  # the policy that evicts keys when memory is full; None: no keys are evicted

    def warnings(self) -> list[str]:
        """What data could be lost, and what to do about it.

        >>> Durability(append_only=True, fsync="always", eviction=None).warnings()
        []
        """
        found = []
        if not self.append_only:
            found.append("append-only is off: a restart loses what devices have memoised (set appendonly yes)")
        elif self.fsync == "no":
            found.append("the append-only file is never synced: a crash loses recent writes (set appendfsync always)")
        elif self.fsync == "everysec":
            found.append(
                "the append-only file is synced once a second: a crash loses a second (set appendfsync always)"
            )
        if self.eviction is not None:
            found.append(f"when memory is full, {self.eviction} may evict ledgers (set maxmemory-policy noeviction)")
        return found


def durability(link: Link) -> Durability:
    """The settings of all servers."""
    persistence, memory = link.ask_each("INFO", "persistence"), link.ask_each("INFO", "memory")
    limited = {info["maxmemory_policy"] for info in memory if info["maxmemory"]}
    return Durability(
        append_only=all(info["aof_enabled"] for info in persistence),
        fsync=_fsync(link),
        eviction=", ".join(sorted(limited - {"noeviction"})) or None,
    )


def warn_unless_durable(link: Link) -> None:
    """Log a warning for each way in which data could be lost."""
    if warnings := durability(link).warnings():
        import structlog  # takes time, and is seldom needed

        log = structlog.get_logger("memo_store")
        for warning in warnings:
            log.warning(warning, redis=link.where)


def _fsync(link: Link) -> str | None:
    """The weakest policy, or None if a server does not allow the question (hosted ones often do not)."""
    try:
        policies = {answer["appendfsync"] for answer in link.ask_each("CONFIG GET", "appendfsync")}
    except StoreUnavailable:
        raise
    except StoreError:
        return None
    return next(policy for policy in ("no", "everysec", "always") if policy in policies)
