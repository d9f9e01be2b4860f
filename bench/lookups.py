"""What a look-up costs among more devices, beside what Redis alone takes for the same fields of the same keys.

    bare HMGET     the store's own connection reads the fields of a portion of devices, and nothing is done with them
    lookup         commits a new period and returns memos, all of which are there

Both are of the same portion size, drawn at random, so only what lies around it grows: the hashes in Redis. CPU time is
of both processes. A field in a large hash is three places in memory (an entry, its name, its value); from some size on
none of them is in a cache. What bare HMGET grows by is therefore what no client of Redis can avoid.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np
import redis

from bench._tables import Table
from bench.memo import survey
from memo_store.connection import CHUNK, Command, Link, Placed
from memo_store.registry import memo_table
from memo_store.sealing import Sealer
from memo_store.store import MemoStore
from protocols.randomness import Devices
from servers.redis_server import local

SIZES = (100_000, 1_000_000)
PORTION, ROUNDS, VALUES = 100_000, 7, 10
WANTED = 1.2


class Fleet:
    """Devices that have all their memos in the store."""

    def __init__(self, store: MemoStore, link: Link, size: int) -> None:
        self.size = size
        self._link = link
        self._people = survey(f"among-{size}", VALUES)
        self._memos = store.survey(self._people)
        self._sealer = Sealer(self._people.keyring, self._people.scheme.survey.id, self._people.scheme.fingerprint)
        self._table = memo_table(self._sealer, self._memos.record, self._memos.record.attributes[0])
        for start in range(0, size, PORTION):
            self.look_up(np.arange(start, start + PORTION, dtype=np.uint64), 0)

    def look_up(self, devices: Devices, period: int) -> None:
        cells = (devices % np.uint64(VALUES)).astype(np.int64)
        self._memos.lookup(self._people.scheme.questions[0], devices, cells, period)

    def reads(self, devices: Devices) -> list[list[Command]]:
        placed = Placed.of(self._sealer.pseudonyms(devices))
        return [self._table.read(placed.part(rows)) for rows in placed.slices(CHUNK)]

    def hmget(self, reads: list[list[Command]]) -> None:
        for commands in reads:
            self._link.run(commands)


def run() -> Table:
    found = Table(
        f"Look-ups among more devices: {PORTION:,} at a time, least CPU time of {ROUNDS} rounds, Redis and client",
        ("", *(f"us among {size:,}" for size in SIZES), "growth", "wanted"),
    )
    with (
        tempfile.TemporaryDirectory() as directory,
        local(Path(directory)) as server,
        redis.Redis.from_url(server.url) as client,
        MemoStore(server.url) as store,
    ):
        link = Link(server.url)
        fleets = [Fleet(store, link, size) for size in SIZES]
        taken = measure(client, fleets)
    growth = {what: times[1] / times[0] for what, times in taken.items()}
    for what, times in taken.items():
        bound = max(WANTED, growth["bare HMGET"]) if what == "lookup" else 0.0
        mark = f"{WANTED}, or that of HMGET{'' if growth[what] <= bound else '  missed'}" if bound else ""
        found.row(what, *(f"{seconds / PORTION * 1e6:.2f}" for seconds in times), f"{growth[what]:.2f}", mark)
        if bound and growth[what] > bound:
            found.missed.append(f"a look-up grows by {growth[what]:.2f}, more than the {bound:.2f} of bare HMGET")
    return found


def measure(client: redis.Redis, fleets: list[Fleet]) -> dict[str, list[float]]:
    """The least CPU seconds of each way, for each fleet. They take turns."""

    def spent() -> float:
        cpu = client.info("cpu")
        return process_time() + float(cpu["used_cpu_user"]) + float(cpu["used_cpu_sys"])

    def clocked(work: Callable[[], object]) -> float:
        begun = spent()
        work()
        return spent() - begun

    draw = np.random.default_rng(1)
    least: dict[str, list[float]] = {what: [float("inf")] * len(fleets) for what in ("bare HMGET", "lookup")}
    for period in range(1, ROUNDS + 1):
        for place, fleet in enumerate(fleets):
            devices = draw.permutation(fleet.size)[:PORTION].astype(np.uint64)
            work = {"bare HMGET": partial(fleet.hmget, fleet.reads(devices))}
            work["lookup"] = partial(fleet.look_up, devices, period)
            for what, each in work.items():
                least[what][place] = min(least[what][place], clocked(each))
    return least
