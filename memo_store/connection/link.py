"""The wire to Redis: one server or a cluster, batches, and patience with an end.

Everything the store sends is safe to send again (first writer wins, and who was first does not change by asking
twice), so a batch that got no answer is repeated as a whole, a bounded number of times.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import hiredis
import numpy as np
import redis
import redis.exceptions as failures
from numpy.typing import NDArray
from redis.backoff import NoBackoff
from redis.retry import Retry

from protocols.errors import SettingsError, StoreError, StoreUnavailable

Client = redis.Redis | redis.RedisCluster
Command = tuple[Any, ...]
T = TypeVar("T")

TRIES = 8
FIRST_WAIT, LONGEST_WAIT = 0.1, 3.0
ANSWER_SECONDS = 10.0
"""How long one batch may take; a server that needs longer counts as silent."""

RIGHTS = "+@hash +@string +@set +eval +unlink +info +dbsize +multi +exec +ping +cluster ~hearsay:*"
"""What a user of the store needs."""

PASSING = (
    failures.ConnectionError,
    failures.TimeoutError,
    failures.ReadOnlyError,  # a replica that has not been promoted yet
    failures.ClusterDownError,
    failures.TryAgainError,
)
"""What may be over in a moment: restarts, failovers, loading, slowness."""
PASSING_WORDS = ("LOADING", "MASTERDOWN", "BUSY ", "MISCONF", "NOREPLICAS")
"""The same, where Redis says it in words only."""


@dataclass(frozen=True)
class Fields:
    """Many arguments of one width, as rows of bytes; the last thing in a command."""

    rows: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.rows)

    def listed(self) -> list[bytes]:
        width, text = self.rows.shape[1], self.rows.tobytes()
        return [text[start : start + width] for start in range(0, len(text), width)]

    def packed(self) -> bytes:
        """As they travel to Redis: each with its length before it and a line end after it."""
        count, width = self.rows.shape
        length = np.frombuffer(b"$%d\r\n" % width, dtype=np.uint8)
        packed = np.empty((count, len(length) + width + 2), dtype=np.uint8)
        packed[:, : len(length)] = length
        packed[:, len(length) : -2] = self.rows
        packed[:, -2:] = np.frombuffer(b"\r\n", dtype=np.uint8)
        return packed.tobytes()


class Link:
    """A connection that sends batches and either brings every answer or says that it could not."""

    def __init__(
        self, target: str | Client, *, tries: int = TRIES, sleep: Callable[[float], None] = time.sleep, **options: Any
    ) -> None:
        self._tries, self._sleep = tries, sleep
        self.where = _without_password(target) if isinstance(target, str) else "the given client"
        self.client = _connect(target, options, self._patiently) if isinstance(target, str) else target
        self.clustered = isinstance(self.client, redis.RedisCluster)
        self._packs = isinstance(target, str) and not self.clustered  # whether the client has our packer
        if self.client.get_encoder().decode_responses:
            raise SettingsError("the Redis client decodes answers as text", "make it with decode_responses=False")

    def run(self, commands: Sequence[Command], *, atomic: bool = False) -> list[Any]:
        """All commands in one batch, their answers in order.

        `atomic` batches take effect together where there is one server, which is also why they are synced to disk
        once: outside of a transaction Redis syncs after every 16 KB it has read.
        """

        def attempt() -> list[Any]:
            with self.client.pipeline(transaction=atomic and not self.clustered) as batch:
                for command in commands:
                    batch.execute_command(*(command if self._packs else _listed(command)))
                return list(batch.execute())

        return self._patiently(attempt, self._reconnect) if commands else []

    def ask(self, *command: Any) -> Any:
        """One command, one answer."""
        send: Callable[..., Any] = self.client.execute_command  # redis-py leaves it without types
        return self._patiently(lambda: send(*command), self._reconnect)

    def ask_each(self, *command: Any) -> list[Any]:
        """One command to every server that holds data."""
        if not self.clustered:
            return [self.ask(*command)]
        send: Callable[..., Any] = self.client.execute_command
        answers = self._patiently(lambda: send(*command, target_nodes=redis.RedisCluster.PRIMARIES))
        return list(answers.values()) if isinstance(answers, dict) else [answers]

    def close(self) -> None:
        self.client.close()

    def _reconnect(self) -> None:
        """Let go of connections: another server may stand at the address by now."""
        if isinstance(self.client, redis.Redis):
            self.client.connection_pool.disconnect(inuse_connections=False)

    def _patiently(self, attempt: Callable[[], T], before_another: Callable[[], None] = lambda: None) -> T:
        for number in range(self._tries):
            if number:
                self._sleep(min(FIRST_WAIT * 2 ** (number - 1), LONGEST_WAIT))
                before_another()
            try:
                return attempt()
            except failures.AuthenticationError as error:
                raise StoreError(
                    f"Redis at {self.where} refused the user: {error}", "check user and password"
                ) from None
            except PASSING as error:
                trouble: Exception = error
            except failures.ResponseError as error:
                if not any(word in str(error) for word in PASSING_WORDS):
                    raise StoreError(f"Redis at {self.where} refused: {error}", _advice(error)) from None
                trouble = error
        raise StoreUnavailable(
            f"Redis at {self.where} did not answer after {self._tries} tries: {trouble}",
            "nothing was reported without its memo; start Redis, or wait until it is well, and run again",
        ) from trouble


def _listed(command: Command) -> Command:
    """A command whose fields a packer that is not ours understands."""
    return (*command[:-1], *command[-1].listed()) if isinstance(command[-1], Fields) else command


def _without_password(url: str) -> str:
    """A URL as it may be shown: who logs in and with which options stays out of it, also where it is malformed.

    >>> _without_password("redis://fleet:hush@store:6379/0?password=hush")
    'redis://…@store:6379/0'
    """
    return re.sub("//.*@", "//…@", url).partition("?")[0]


class _Packer:
    """Turns commands into bytes without looking at each argument in Python, as the client's own packer does."""

    def pack(self, name: str, *arguments: Any) -> list[bytes]:
        if not (arguments and isinstance(arguments[-1], Fields)):
            return [hiredis.pack_command((*name.split(), *arguments))]
        *others, fields = arguments
        _, _, packed = hiredis.pack_command((name, *others)).partition(b"\r\n")
        return [b"*%d\r\n%b%b" % (len(arguments) + len(fields), packed, fields.packed())]


def _connect(url: str, options: dict[str, Any], patiently: Callable[[Callable[[], Any]], Any]) -> Client:
    """A client of whatever answers at `url`: one server, or a member of a cluster."""
    options = {
        "socket_timeout": ANSWER_SECONDS,
        "retry": Retry(NoBackoff(), 0),  # `Link` is the one that tries again
        "command_packer": _Packer(),
        **options,
    }
    try:
        single = redis.Redis.from_url(url, **options)
        single.connection_pool.make_connection()  # which is when it looks at the options
    except (ValueError, TypeError):  # whose words may quote what is in the URL
        raise SettingsError(
            f"{_without_password(url)!r} is no Redis URL, or has options that are none",
            "write redis://host:port/db, rediss:// for TLS, or unix:///path, and the password apart from it",
        ) from None
    if not patiently(lambda: single.info("cluster")).get("cluster_enabled"):
        return single
    single.close()
    cluster: redis.RedisCluster = patiently(lambda: redis.RedisCluster.from_url(url, **options))
    return cluster


def _advice(refusal: failures.ResponseError) -> str:
    if isinstance(refusal, failures.NoPermissionError) or "user executing the script" in str(refusal):
        return f"grant the user {RIGHTS}"
    if isinstance(refusal, failures.OutOfMemoryError):
        return "give Redis more memory; never let it evict"
    return "see the Redis log"
