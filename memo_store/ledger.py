"""What devices have spent: memoised values, reports, and the budget they amount to (PROTOCOLS 3)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from memo_store.connection.epochs import has_lost_data
from memo_store.connection.layout import CHUNK, Placed, read_fields
from memo_store.connection.link import Link
from memo_store.registry import SurveyRecord, memo_table, presence_table
from memo_store.sealing import Sealer
from memo_store.tables.presence import NEVER, last_periods, parse, read_columns
from protocols.arrays import Devices, Floats


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
