"""What devices have spent: memoised values, reports, and the budget they amount to (PROTOCOLS 3).

The statistics of a whole store need no key: how much was spent, by how many devices, and how large it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from memo_store.connection.layout import SHARDS, shard_key
from memo_store.connection.link import Durability, Link, durability
from memo_store.presence import PRESENCE, last_periods, read_tally
from memo_store.registry import TABLES, AttributeRecord, SurveyRecord, TableRecord, registered
from memo_store.survey_state import newest_period
from memo_store.tables.memos import MemoTable
from protocols.arrays import Counts, Floats


def report_cost(record: SurveyRecord, reports: NDArray[np.int64], latest: int | NDArray[np.int64]) -> Floats:
    """The budget that numbers of reports amount to where nothing is memoised.

    With one_in, which reports were answers is not recorded. There are at most as many as there are reports, and at most
    one in so many periods since the first, through the `latest` period of a report.
    """
    answers = np.minimum(reports, -(-(np.asarray(latest) + 1) // record.one_in))
    return np.asarray(answers * (record.per_report or 0.0), dtype=np.float64)


def memo_cost(asked: Sequence[AttributeRecord], values: Mapping[str, NDArray[np.int64]]) -> Floats:
    """The budget that numbers of memoised values of a question amount to.

    Of a tuple the most expensive attribute counts: the ledger does not show which one is really about the device,
    because true and fake values are counted alike.
    """
    return np.asarray(np.max([_cost(attribute.costs, values[attribute.name]) for attribute in asked], axis=0))


def _cost(costs: tuple[float, ...], counts: NDArray[np.int64]) -> Floats:
    listed = np.minimum(counts, len(costs) - 1)
    return np.asarray(np.asarray(costs)[listed] + (counts - listed) * (costs[-1] - costs[-2]))


@dataclass(frozen=True)
class _Amounts:
    """What the devices of one fleet (one keyring) have spent."""

    fleet: str
    devices: int
    spent: tuple[tuple[float, int], ...]  # each amount, and how many devices have spent it
    meaning: str

    def quantile(self, share: float) -> float:
        """What this share of the devices has spent at most.

        >>> _Amounts("f", 4, ((0.5, 3), (1.0, 1)), "").quantile(0.5)
        0.5
        """
        if not self.spent:
            return 0.0
        amounts, counts = np.array(self.spent).T
        return float(amounts[np.searchsorted(np.cumsum(counts), share * counts.sum())])


@dataclass(frozen=True)
class SurveyStats(_Amounts):
    """The reports of one survey. Nothing is spent here if it has memos: they belong to questions."""

    survey: str
    reports: int
    at_cap: dict[str, int]  # devices that have reached the survey's cap, per attribute


@dataclass(frozen=True)
class QuestionStats(_Amounts):
    """The memos of one question."""

    question: str  # its id
    surveys: tuple[str, ...]  # that ask it
    memos: dict[str, int]  # per attribute


@dataclass(frozen=True)
class StoreStats:
    """The statistics of a store."""

    surveys: tuple[SurveyStats, ...]
    questions: tuple[QuestionStats, ...]
    memory: int  # bytes
    keys: int
    history_confirmed: bool  # whether an operator has confirmed that the history is complete
    has_lost_data: bool  # whether it has ever lost data: then no cap bounds what devices have memoised
    durability: Durability


Tables = list[tuple[str, TableRecord]]  # each with its name


def read_stats(link: Link, confirmed: bool, lost: bool) -> StoreStats:
    records = {record.id: record for record in registered(link)}
    surveys, memos = dict[str, Tables](), dict[str, Tables]()  # by fleet
    known: dict[bytes, bytes] = link.ask("HGETALL", TABLES)
    for row, text in sorted(known.items()):
        table = TableRecord.model_validate_json(text)
        found = memos if table.kind == "memos" else surveys
        found.setdefault(table.fleet, []).append((row.decode().partition(" ")[0], table))
    return StoreStats(
        surveys=tuple(_survey(link, records, fleet, tables, lost) for fleet, tables in surveys.items()),
        questions=tuple(_question(link, records, fleet, tables, lost) for fleet, tables in memos.items()),
        memory=sum(info["used_memory"] for info in link.ask_each("INFO", "memory")),
        keys=sum(link.ask_each("DBSIZE")),
        history_confirmed=confirmed,
        has_lost_data=lost,
        durability=durability(link),
    )


def _survey(link: Link, records: dict[str, SurveyRecord], fleet: str, tables: Tables, lost: bool) -> SurveyStats:
    """`fleet` is also the name of the table of presences."""
    record = records[tables[0][1].survey]
    found = [b"".join(_records(link, fleet, shard).values()) for shard in range(SHARDS)]
    alone = np.frombuffer(b"".join(found), dtype=PRESENCE)
    columns = [read_tally(link, name) for name, table in tables if table.kind == "fleet presence"]
    in_fleet = np.concatenate([counts[counts > 0] for counts in columns])
    # When each device of a fleet reported last is sealed: no later than the newest period.
    latest = np.concatenate([last_periods(alone), np.full_like(in_fleet, newest_period(link, fleet))])
    reports = np.concatenate([alone["reports"].astype(np.int64), in_fleet])
    at_cap = {}
    for name, table in tables:
        if table.kind == "used" and record.cap is not None:
            used = [list(_records(link, name, shard).values()) for shard in range(SHARDS)]
            counts = MemoTable(name, 0, record.cap).counts(list(chain.from_iterable(used)))
            at_cap[table.attribute] = int(np.count_nonzero(counts >= record.cap))
    spent = _amounts([] if record.per_report is None else report_cost(record, reports, latest))
    meaning = record.meaning(lost)
    return SurveyStats(fleet, len(reports), spent, meaning, record.id, int(reports.sum()), at_cap)


def _question(link: Link, records: dict[str, SurveyRecord], fleet: str, tables: Tables, lost: bool) -> QuestionStats:
    asking = sorted({table.survey for _, table in tables})
    names = {table.attribute: name for name, table in tables}
    meaning = max((records[survey] for survey in asking), key=lambda record: record.cap or 0).meaning(lost)
    asked = [attribute for attribute in records[asking[0]].attributes if attribute.name in names]
    memos, spent = dict.fromkeys((attribute.name for attribute in asked), 0), list[float]()
    for shard in range(SHARDS):
        for name, counts in (values := _counts(link, asked, names, shard)).items():
            memos[name] += int(counts.sum())
        spent += memo_cost(asked, values).tolist()
    return QuestionStats(fleet, len(spent), _amounts(spent), meaning, asked[0].question, tuple(asking), memos)


def _counts(link: Link, asked: Sequence[AttributeRecord], names: dict[str, str], shard: int) -> dict[str, Counts]:
    """How many values of each attribute devices have memoised. A device is in the same shard of all tables."""
    columns = {attribute.name: _records(link, names[attribute.name], shard) for attribute in asked}
    everyone = dict.fromkeys(chain.from_iterable(columns.values()))
    return {
        a.name: MemoTable("", a.memo_bytes, None).counts([columns[a.name].get(device, b"") for device in everyone])
        for a in asked
    }


def _amounts(spent: Sequence[float] | Floats) -> tuple[tuple[float, int], ...]:
    amounts, counts = np.unique(np.asarray(spent, dtype=np.float64), return_counts=True)
    return tuple(zip(amounts.tolist(), counts.tolist(), strict=True))


def _records(link: Link, table: str, shard: int) -> dict[bytes, bytes]:
    """The records of all devices of a shard."""
    return dict(link.fields(shard_key(shard, table)))
