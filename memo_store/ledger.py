"""What devices have spent: memoised values, reports, and the budget they amount to (PROTOCOLS 3).

And the statistics of a whole store, without any key: how much was spent, by how many devices, and how large it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from memo_store.connection.epochs import has_lost_data, history_confirmed
from memo_store.connection.layout import CHUNK, SHARDS, Placed, read_fields, shard_key
from memo_store.connection.link import Durability, Link, durability
from memo_store.registry import TABLES, SurveyRecord, TableRecord, memo_table, presence_table, registered
from memo_store.sealing import Sealer
from memo_store.survey_state import newest_period
from memo_store.tables.memos import MemoTable
from memo_store.tables.presence import NEVER, PRESENCE, last_periods, parse, read_columns, read_tally
from protocols.arrays import Counts, Devices, Floats, Words


@dataclass(frozen=True)
class Ledger:
    """What each device has spent in one survey."""

    survey: str
    values: dict[str, NDArray[np.int64]]  # how many values are memoised, per attribute
    reports: NDArray[np.int64]  # how many reports were delivered
    spent: Floats
    meaning: str  # what `spent` bounds, and for which relation between histories


@dataclass(frozen=True)
class Spending:
    """What each device has spent in all its surveys: budgets of different surveys add up."""

    ledgers: tuple[Ledger, ...]
    total: Floats


def read_ledger(link: Link, sealer: Sealer, record: SurveyRecord, devices: Devices) -> Ledger:
    """What these devices have spent in one survey."""
    placed, presence = Placed.of(sealer.pseudonyms(devices)), presence_table(sealer)
    tables = {attribute.name: memo_table(sealer, record, attribute) for attribute in record.attributes}
    values = {name: np.zeros(len(devices), dtype=np.int64) for name in tables}
    latest, reports = _in_fleet(link, sealer, devices)
    for rows in placed.slices(CHUNK):
        part = placed.part(rows)
        alone = parse(link.run(read_fields(presence, part)))
        latest[part.order] = np.maximum(latest[part.order], last_periods(alone))
        reports[part.order] += alone["reports"]
        for name, table in tables.items():
            records = [entries or b"" for entries in chain.from_iterable(link.run(read_fields(table.name, part)))]
            values[name][part.order] = table.counts(records)
    cost = spent(record, values, reports, latest)
    return Ledger(record.id, values, reports, cost, record.meaning(has_lost_data(link)))


def _in_fleet(link: Link, sealer: Sealer, devices: Devices) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """When these devices reported last (or NEVER) as members of a fleet, and how many reports they have made."""
    _, latest, reports = read_columns(link, sealer)
    latest, reports = np.append(latest, NEVER), np.append(reports, 0)
    rows = np.minimum(devices, np.uint64(len(reports) - 1)).astype(np.int64)
    return latest[rows], reports[rows]


def spent(
    record: SurveyRecord,
    values: dict[str, NDArray[np.int64]],
    reports: NDArray[np.int64],
    latest: int | NDArray[np.int64],
) -> Floats:
    """The budget that numbers of memoised values per attribute, or of reports, amount to.

    With one_in, which reports were answers is not recorded. There are at most as many as there are reports, and at most
    one in so many periods since the first, through the `latest` period of a report.

    If only one attribute is about the device, the most expensive one counts: the ledger does not show which one it is,
    because true and fake values are counted alike.
    """
    if record.per_report is not None:
        answers = np.minimum(reports, -(-(np.asarray(latest) + 1) // record.one_in))
        return np.asarray(answers * record.per_report, dtype=np.float64)
    each = [_cost(attribute.costs, values[attribute.name]) for attribute in record.attributes]
    return np.asarray(np.sum(each, axis=0) if record.adds_up else np.max(each, axis=0))


def _cost(costs: tuple[float, ...], counts: NDArray[np.int64]) -> Floats:
    listed = np.minimum(counts, len(costs) - 1)
    return np.asarray(np.asarray(costs)[listed] + (counts - listed) * (costs[-1] - costs[-2]))


PAGE = 5000


@dataclass(frozen=True)
class SurveyStats:
    """One survey as one fleet (one keyring) has answered it."""

    survey: str
    fleet: str
    devices: int
    reports: int
    memos: dict[str, int]  # per attribute
    at_cap: dict[str, int]  # devices that have reached their cap, per attribute
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
    """The statistics of a store."""

    surveys: tuple[SurveyStats, ...]
    memory: int  # bytes
    keys: int
    history_confirmed: bool  # whether an operator has confirmed that the history is complete
    has_lost_data: bool  # whether it has ever lost data: then no cap bounds what devices have memoised
    durability: Durability


def read_stats(link: Link) -> StoreStats:
    records = registered(link)
    known: dict[bytes, bytes] = link.ask("HGETALL", TABLES)
    tables = {name.decode(): TableRecord.model_validate_json(text) for name, text in known.items()}
    fleets = sorted({(table.survey, table.fleet) for table in tables.values()})
    return StoreStats(
        surveys=tuple(_survey(link, records[survey], fleet, tables) for survey, fleet in fleets),
        memory=sum(info["used_memory"] for info in link.ask_each("INFO", "memory")),
        keys=sum(link.ask_each("DBSIZE")),
        history_confirmed=history_confirmed(link),
        has_lost_data=has_lost_data(link),
        durability=durability(link),
    )


def _survey(link: Link, record: SurveyRecord, fleet: str, tables: dict[str, TableRecord]) -> SurveyStats:
    ours = {name: table for name, table in tables.items() if table.fleet == fleet}
    by_attribute = {table.attribute: name for name, table in ours.items() if table.kind != "fleet presence"}
    columns = [name for name, table in ours.items() if table.kind == "fleet presence"]
    names = [attribute.name for attribute in record.attributes]
    memos, at_cap = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    spending: dict[float, int] = {}
    in_fleet = np.concatenate([read_tally(link, name) for name in columns])
    one_shot = record.per_report is not None
    devices, reports = 0, 0 if one_shot else int(in_fleet.sum())
    # A device is in one shard of all tables. If nothing is memoised, a fleet's devices are in its columns alone. When
    # each of them reported last is sealed: no later than the newest period.
    parts = (_shard(link, record, by_attribute, shard) for shard in range(SHARDS))
    alone = in_fleet[in_fleet > 0] if one_shot else in_fleet[:0]
    latest = np.full_like(alone, newest_period(link, fleet))
    for values, delivered, last in chain(parts, [(dict.fromkeys(names, np.zeros_like(alone)), alone, latest)]):
        devices, reports = devices + len(delivered), reports + int(delivered.sum())
        for name in names:
            memos[name] += int(values[name].sum())
            at_cap[name] += int((values[name] >= record.cap).sum()) if record.cap else 0
        for amount, count in zip(*np.unique(spent(record, values, delivered, last), return_counts=True), strict=True):
            spending[float(amount)] = spending.get(float(amount), 0) + int(count)
    amounts = tuple(sorted(spending.items()))
    return SurveyStats(record.id, fleet, devices, reports, memos, at_cap, amounts, record.meaning(has_lost_data(link)))


def _shard(
    link: Link, record: SurveyRecord, tables: dict[str, str], shard: int
) -> tuple[dict[str, Counts], Counts, Counts]:
    """All devices of a shard: their memoised values per attribute, their reports, and when each reported last."""
    columns = {attribute: _scan(link, shard_key(shard, name)) for attribute, name in tables.items()}
    everyone = np.unique(np.concatenate([names for names, _ in columns.values()]))

    def spread(attribute: str, counts: Counts) -> Counts:
        column = np.zeros(len(everyone), dtype=np.int64)
        column[np.searchsorted(everyone, columns[attribute][0])] = counts
        return column

    values = {
        a.name: spread(a.name, MemoTable("", a.memo_bytes, record.cap).counts(columns[a.name][1]))
        for a in record.attributes
    }
    presences = np.frombuffer(b"".join(columns[""][1]), dtype=PRESENCE)
    return values, spread("", presences["reports"].astype(np.int64)), spread("", presences["last"].astype(np.int64))


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
