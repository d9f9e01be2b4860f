"""What single devices have spent, as whoever has their keyring reads it from the store."""

from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from memo_store.connection.epochs import has_lost_data
from memo_store.connection.layout import CHUNK, Placed, read_fields
from memo_store.connection.link import Link
from memo_store.ledger import memo_cost, report_cost
from memo_store.registry import AttributeTables, presence_table
from memo_store.sealing import Sealer
from memo_store.survey_memos import SurveyMemos
from memo_store.tables.presence import NEVER, last_periods, parse, read_columns
from protocols.arrays import Devices, Floats


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
