"""Small surveys and fleets for the tests of the memo store."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import redis

from lab.seeded_keyrings import seeded_keyring
from memo_store.store import MemoStore
from protocols.arrays import Column, Devices, Values
from protocols.mechanisms import Direct
from protocols.mechanisms.encodings import Unary
from protocols.question import Question
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from servers.redis_server import RedisServer

TWO_ROUNDS = "eps_inf: 2, eps_1: 1"


def respondent(
    *,
    clock: str = "source",
    id: str = "visits",
    k: int = 10,
    budgets: str = TWO_ROUNDS,
    terms: str = "",
    secret: int = 1,
    second: bool = False,
) -> Respondent:
    """Devices that answer one attribute of k values (`second`: and another of two), on days.

    Their mechanisms have a cell for each value, so tests look memos up by values.
    """
    other = ", {name: plan, values: [free, paid]}" if second else ""
    text = (
        f"{{id: {id}, start: 2026-01-01T00:00:00Z, period: 1d, clock: {clock}, horizon: 7, {budgets}, {terms} "
        f"attributes: [{{name: area, range: {{last: {k - 1}}}}}{other}]}}"
    )
    scheme = Scheme(parse_survey(text))
    assert all(isinstance(question.mechanism.encoding, Direct | Unary) for question in scheme.questions)
    return Respondent(scheme, seeded_keyring(secret))


def devices(count: int) -> Devices:
    return np.arange(count, dtype=np.uint64)


@contextmanager
def running(directory: Path, **options: Any) -> Iterator[RedisServer]:
    """A Redis of one's own."""
    server = RedisServer(directory, **options).start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def going_back(server: RedisServer, copy: Path) -> Iterator[None]:
    """Forget what was written meanwhile: as with an old copy after a broken disk, or a replica that lagged."""
    shutil.copytree(server.directory, copy, ignore=shutil.ignore_patterns("*.sock"))
    yield
    server.kill()
    shutil.rmtree(server.directory)
    shutil.copytree(copy, server.directory)
    server.start()


def empty(url: str) -> None:
    with redis.Redis.from_url(url) as client:
        client.flushall()


def columns_key(client: redis.Redis) -> bytes:
    """The key of the presence columns of the only fleet in a store."""
    (key,) = (key for key in client.scan_iter("hearsay:{0}:*") if client.hexists(key, "tally"))
    return bytes(key)


class Unsteady(Respondent):
    """Draws another memo each time it is asked, as no respondent should: what stays the same is the store's doing.

    The store asks for a draw after it has read and before it writes, so `meanwhile` runs between the two.
    """

    meanwhile: Callable[[], object] = staticmethod(lambda: None)

    def memoise(self, question: Question, devices: Devices, cells: Values) -> Column:
        self.meanwhile()
        raw = np.random.default_rng().integers(0, question.k, len(devices))
        return raw.astype(question.mechanism.encoding.memo.dtype)


def unsteady(steady: Respondent) -> Unsteady:
    return Unsteady(steady.scheme, steady.keyring)


def memoised(store: MemoStore, attribute: str = "area") -> dict[int, int]:
    """By number of memoised values of an attribute that is asked alone: how many devices have so many."""
    (question,) = (question for question in store.stats().questions if attribute in question.memos)
    each = sum(amount * devices for amount, devices in question.spent) / max(question.memos[attribute], 1)
    return {round(amount / each): devices for amount, devices in question.spent}
