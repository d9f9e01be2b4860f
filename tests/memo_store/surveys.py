"""Small surveys and fleets for the tests of the memo store, and what single devices have spent.

Whoever has the keyring of devices reads it from the store.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import redis
from numpy.typing import NDArray

from lab.seeded_keyrings import seeded_keyring
from memo_store.connection.epochs import has_lost_data
from memo_store.connection.layout import CHUNK, Placed, read_fields
from memo_store.connection.link import Link
from memo_store.ledger import memo_cost, report_cost
from memo_store.registry import AttributeTables, presence_table
from memo_store.sealing import Sealer
from memo_store.survey_memos import SurveyMemos
from memo_store.tables.presence import NEVER, last_periods, parse, read_columns
from protocols.arrays import Column, Devices, Floats, Values
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


@dataclass(frozen=True)
class Ledger:
    """What each device has spent on what one survey asks. Memos are counted whichever survey has brought them about."""

    values: dict[str, NDArray[np.int64]]  # how many values are memoised, per attribute
    reports: NDArray[np.int64]  # how many reports were delivered
    by_question: dict[str, Floats]  # what was spent on each question; without memos, in the survey
    meaning: str  # what `spent` bounds, and for which relation between histories

    @property
    def spent(self) -> Floats:
        return np.asarray(sum(self.by_question.values()))


def ledger_of(memos: SurveyMemos, devices: Devices) -> Ledger:
    """What these devices have spent on what one survey asks."""
    link, sealer, record = memos._state.link, memos._sealer, memos.record
    placed, presence = Placed.of(sealer.pseudonyms(devices)), presence_table(sealer)
    latest, reports = _in_fleet(link, sealer, devices)
    for rows in placed.slices(CHUNK):
        part = placed.part(rows)
        alone = parse(link.run(read_fields(presence, part)))
        latest[part.order] = np.maximum(latest[part.order], last_periods(alone))
        reports[part.order] += alone["reports"]
    values = {a.name: _memoised(link, AttributeTables.of(sealer, record, a), devices) for a in record.attributes}
    if record.per_report is None:
        spent = {question: memo_cost(asked, values) for question, asked in record.questions.items()}
    else:
        spent = {record.id: report_cost(record, reports, latest)}
    return Ledger(values, reports, spent, record.meaning(has_lost_data(link)))


def _memoised(link: Link, tables: AttributeTables, devices: Devices) -> NDArray[np.int64]:
    """How many values of an attribute these devices have memoised."""
    placed, counts = Placed.of(tables.sealer.pseudonyms(devices)), np.zeros(len(devices), dtype=np.int64)
    for rows in placed.slices(CHUNK):
        part = placed.part(rows)
        answers = chain.from_iterable(link.run(read_fields(tables.memos.name, part)))
        counts[part.order] = tables.memos.counts([entries or b"" for entries in answers])
    return counts


def _in_fleet(link: Link, sealer: Sealer, devices: Devices) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """When these devices reported last (or NEVER) as members of a fleet, and how many reports they have made."""
    _, latest, reports = read_columns(link, sealer)
    latest, reports = np.append(latest, NEVER), np.append(reports, 0)
    rows = np.minimum(devices, np.uint64(len(reports) - 1)).astype(np.int64)
    return latest[rows], reports[rows]
