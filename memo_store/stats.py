"""A look at the whole store, without any key: how much was spent, by how many, and how large it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from memo_store.connection.durability import Durability, durability
from memo_store.connection.epochs import vouched_for
from memo_store.connection.layout import SHARDS, Words, shard_key
from memo_store.connection.link import Link
from memo_store.ledger import spent
from memo_store.registry import TABLES, SurveyTerms, TableTerms, registered
from memo_store.tables.fleet_columns import read_tally
from memo_store.tables.memos import MemoTable
from memo_store.tables.presence import PRESENCE

PAGE = 5000
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class SurveyStats:
    """One survey as one fleet (one keyring) has answered it."""

    survey: str
    fleet: str
    devices: int
    reports: int
    memos: dict[str, int]  # per attribute
    at_cap: dict[str, int]  # devices that go on with what they have, per attribute
    spent: tuple[tuple[float, int], ...]  # each amount, and how many devices have spent it
    meaning: str

    def quantile(self, share: float) -> float:
        """What this share of the devices has spent at most.

        >>> SurveyStats("s", "f", 4, 0, {}, {}, ((0.5, 3), (1.0, 1)), "").quantile(0.5)
        0.5
        """
        if not self.spent:
            return 0.0
        amounts, counts = np.array(self.spent).T
        return float(amounts[np.searchsorted(np.cumsum(counts), share * counts.sum())])


@dataclass(frozen=True)
class StoreStats:
    """Everything a store can say of itself."""

    surveys: tuple[SurveyStats, ...]
    memory: int  # bytes
    keys: int
    whole: bool  # whether somebody vouches for the history
    durability: Durability


def read_stats(link: Link) -> StoreStats:
    terms = registered(link)
    tables = {name.decode(): TableTerms.model_validate_json(text) for name, text in link.ask("HGETALL", TABLES).items()}
    fleets = sorted({(table.survey, table.fleet) for table in tables.values()})
    return StoreStats(
        surveys=tuple(_survey(link, terms[survey], fleet, tables) for survey, fleet in fleets),
        memory=sum(info["used_memory"] for info in link.ask_each("INFO", "memory")),
        keys=sum(link.ask_each("DBSIZE")),
        whole=vouched_for(link),
        durability=durability(link),
    )


def _survey(link: Link, terms: SurveyTerms, fleet: str, tables: dict[str, TableTerms]) -> SurveyStats:
    ours = {table.attribute: name for name, table in tables.items() if table.fleet == fleet and table.kind != "roll"}
    rolls = [name for name, table in tables.items() if table.fleet == fleet and table.kind == "roll"]
    names = [attribute.name for attribute in terms.attributes]
    memos, at_cap = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    spending: dict[float, int] = {}
    enrolled = np.concatenate([read_tally(link, roll) for roll in rolls])
    one_shot = terms.per_report is not None
    devices, reports = 0, 0 if one_shot else int(enrolled.sum())
    parts = (_shard(link, terms, ours, shard) for shard in range(SHARDS))  # a device is in one shard of all tables
    # Where nothing is memoised, a fleet's devices are on its roll alone.
    alone = enrolled[enrolled > 0] if one_shot else enrolled[:0]
    for values, delivered in chain(parts, [(dict.fromkeys(names, np.zeros_like(alone)), alone)]):
        devices, reports = devices + len(delivered), reports + int(delivered.sum())
        for name in names:
            memos[name] += int(values[name].sum())
            at_cap[name] += int((values[name] >= terms.cap).sum()) if terms.cap else 0
        for amount, count in zip(*np.unique(spent(terms, values, delivered), return_counts=True), strict=True):
            spending[float(amount)] = spending.get(float(amount), 0) + int(count)
    amounts = tuple(sorted(spending.items()))
    return SurveyStats(terms.id, fleet, devices, reports, memos, at_cap, amounts, terms.meaning)


def _shard(link: Link, terms: SurveyTerms, ours: dict[str, str], shard: int) -> tuple[dict[str, Counts], Counts]:
    """All devices of a shard: their memoised values per attribute, and their reports."""
    columns = {attribute: _scan(link, shard_key(shard, name)) for attribute, name in ours.items()}
    everyone = np.unique(np.concatenate([names for names, _ in columns.values()]))

    def spread(attribute: str, counts: Counts) -> Counts:
        column = np.zeros(len(everyone), dtype=np.int64)
        column[np.searchsorted(everyone, columns[attribute][0])] = counts
        return column

    values = {
        a.name: spread(a.name, MemoTable("", a.memo_bytes, terms.cap).counts(columns[a.name][1]))
        for a in terms.attributes
    }
    presences = np.frombuffer(b"".join(columns[""][1]), dtype=PRESENCE)
    return values, spread("", presences["reports"].astype(np.int64))


def _scan(link: Link, key: str) -> tuple[Words, list[bytes]]:
    """Every device of a table, by the beginning of its pseudonym, and its record."""
    found = dict(_pages(link, key))
    names = np.frombuffer(b"".join(field[:8] for field in found), dtype=">u8").astype(np.uint64)
    return names, list(found.values())


def _pages(link: Link, key: str) -> Iterator[tuple[bytes, bytes]]:
    cursor: int | None = None
    while cursor != 0:
        cursor, page = link.ask("HSCAN", key, cursor or 0, "COUNT", PAGE)
        yield from page.items()
