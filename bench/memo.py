"""The memo store beside bare Redis, in one run on one server that syncs every write.

    bare HMGET     redis-py reads the same fields of the same keys, 10,000 at a time, and does nothing with them
    bare HSET      redis-py writes as many fields, one command each, in pipelines of 10,000
    lookup         commits a new period and returns memos: all there, 5 % new, all new

Rounds alternate, so that whatever else the machine does hits all of them; rates and ratios are of medians.

Decides whether records per device in Redis are quick enough beside what Redis itself costs. Run it when the scripts,
the layout of keys or the number of commands in a batch change.
"""

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import redis

from bench._measuring import Table
from memo_store.connection import CHUNK, Placed, read_fields
from memo_store.registry import AttributeTables, record_of
from memo_store.sealing import Sealer
from memo_store.store import MemoStore
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from servers.redis_server import local

DEVICES, ROUNDS = 100_000, 7
HMGET, HSET = "bare HMGET", "bare HSET"
HIT_TARGET, CREATION_TARGET, BYTES_TARGET = 0.5, 0.3, 130
EVERYONE = np.arange(DEVICES, dtype=np.uint64)
Seconds = dict[str, list[float]]


def survey(id: str, k: int) -> Respondent:
    text = (
        f"{{id: {id}, start: 2026-01-01T00:00:00Z, period: 1d, clock: source, eps_inf: 2, eps_1: 1, "
        f"attributes: [{{name: area, range: {{last: {k - 1}}}}}]}}"
    )
    return Respondent(Scheme(parse_survey(text)), Keyring(bytes(32)))


class Bare:
    """What redis-py does with the same keys and fields."""

    def __init__(self, client: redis.Redis, people: Respondent) -> None:
        self._client = client
        sealer = Sealer(people.keyring, people.scheme.survey.id, people.scheme.fingerprint)
        record = record_of(people.scheme)
        tables = AttributeTables.of(sealer, record, record.attributes[0])
        self._table, placed = tables.memos, Placed.of(tables.sealer.pseudonyms(EVERYONE))
        parts = [placed.part(rows) for rows in placed.slices(CHUNK)]
        self._reads = [[(key, fields) for _, key, *fields in read_fields(self._table.name, part)] for part in parts]

    def hmget(self) -> None:
        for part in self._reads:
            for key, fields in part:
                self._client.hmget(key, fields)

    def hset(self, name: str) -> None:
        value = bytes(self._table.width)
        for part in self._reads:
            with self._client.pipeline(transaction=False) as batch:
                for key, fields in part:
                    for field in fields:
                        batch.hset(f"{key}:{name}", field, value)
                batch.execute()


def measure(server_url: str, k: int) -> tuple[str, Seconds, dict[str, float]]:
    """Seconds of every round, and bytes of memory."""
    seconds: Seconds = defaultdict(list)
    draw = np.random.default_rng(1)
    with redis.Redis.from_url(server_url) as client, MemoStore(server_url) as store:
        client.execute_command("FLUSHALL", "SYNC")  # else Valkey frees what was there while it is measured

        def used() -> float:
            return float(client.info("memory")["used_memory"]) / DEVICES

        def clocked(what: str, work: Callable[[], object]) -> None:
            begun = time.perf_counter()
            work()
            seconds[what].append(time.perf_counter() - begun)

        people = survey("hit", k)
        memos, question = store.survey(people), people.scheme.questions[0]
        values = draw.integers(0, k, DEVICES)
        empty = used()
        memos.lookup(question, EVERYONE, values, 0)
        with_memos = used()
        memos.presence.delivered(EVERYONE, 0)
        bytes_each = {"memo": with_memos - empty, "presence": used() - with_memos}
        bare = Bare(client, people)
        for number in range(1, ROUNDS + 1):
            clocked(HMGET, bare.hmget)
            clocked("lookup, all there", partial(memos.lookup, question, EVERYONE, values, number))
            newcomer = survey(f"new-{number}", k)
            created = store.survey(newcomer)
            clocked("lookup, all new", partial(created.lookup, question, EVERYONE, values, 0))
            clocked(HSET, partial(bare.hset, f"bare-{number}"))
        changing = survey("changing", k)
        memos = store.survey(changing)
        memos.lookup(question, EVERYONE, values, 0)
        for period in range(1, ROUNDS):
            moved = draw.random(DEVICES) < 0.05
            values = np.where(moved, (values + 1) % k, values)
            clocked("lookup, 5 % new", partial(memos.lookup, question, EVERYONE, values, period))
    return question.mechanism.name, seconds, bytes_each


def run() -> Table:
    found = Table(
        f"Memo store: {DEVICES:,} devices, every write synced, medians of {ROUNDS} rounds",
        ("", "per second", "of bare HMGET", "of bare HSET", "wanted"),
    )
    with tempfile.TemporaryDirectory() as directory, local(Path(directory)) as server:
        for k in (10, 100):
            name, seconds, size = measure(server.url, k)
            _report(found, f"{name} k={k}", {what: float(np.median(taken)) for what, taken in seconds.items()}, size)
    return found


def _report(found: Table, name: str, seconds: dict[str, float], size: dict[str, float]) -> None:
    wanted = {"lookup, all there": (HMGET, HIT_TARGET), "lookup, all new": (HSET, CREATION_TARGET)}
    for what, taken in seconds.items():
        ratios = {bare: seconds[bare] / taken for bare in (HMGET, HSET)}
        bare, target = wanted.get(what, (HMGET, 0.0))
        reached = ratios[bare] >= target
        mark = f"{target} of {bare}{'' if reached else '  missed'}" if target else ""
        found.row(f"{name}: {what}", f"{DEVICES / taken:,.0f}", f"{ratios[HMGET]:.2f}", f"{ratios[HSET]:.2f}", mark)
        if not reached:
            found.missed.append(f"{name}: {what} at {ratios[bare]:.2f} of {bare} instead of {target}")
    memo = size["memo"]
    found.remarks.append(
        f"{name}: {memo:.0f} bytes of Redis memory per memo, with its ledger and the period's committed value "
        f"(wanted: at most {BYTES_TARGET}), and {size['presence']:.0f} per device for its presence"
    )
    if memo > BYTES_TARGET:
        found.missed.append(f"{name}: {memo:.0f} bytes per memo instead of {BYTES_TARGET}")
