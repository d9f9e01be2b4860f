"""Which surveys the store has seen, and what its tables hold: public terms only, nothing about devices.

hearsay:surveys   survey id -> SurveyRecord
hearsay:tables    table -> TableRecord
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from memo_store.connection.link import Link
from memo_store.sealing import Sealer
from memo_store.tables.memos import MemoTable
from memo_store.tables.presence import columns_table
from protocols.errors import FingerprintChanged
from protocols.privacy import loss_of_values
from protocols.scheme import Scheme

SURVEYS, TABLES = "hearsay:surveys", "hearsay:tables"
COSTED = 32
"""For how many values the cost is listed; each further one costs at most what the last listed one does."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True)


class AttributeRecord(_Record):
    """The size of an attribute's memos, and what they cost."""

    name: str
    memo_bytes: int
    costs: tuple[float, ...]  # of 0, 1, 2, ... memoised values


class SurveyRecord(_Record):
    """What the store must know of a survey."""

    id: str
    fingerprint: str
    cap: int | None
    adds_up: bool  # whether the costs of a device's attributes add up, or only one attribute is about the device
    per_report: float | None  # what a report costs where nothing is memoised
    one_in: int = 1  # in one of how many periods a device answers
    attributes: tuple[AttributeRecord, ...]

    def meaning(self, lost: bool) -> str:
        """What the ledger's figure bounds, and for which relation between histories (PROTOCOLS 3).

        `lost`: the store has lost data, so devices may have memoised more than it knows.
        """
        if self.one_in > 1:
            return (
                "relation any: an upper bound between any two histories: a report costs if it answers, and at most one "
                f"in {self.one_in} consecutive periods does"
            )
        if self.per_report is not None:
            return "relation any: the sum over all reports is an upper bound between any two histories"
        void = "; data was lost, so memo_cap bounds nothing, and more may have been spent" if lost and self.cap else ""
        whose = "all attributes together" if self.adds_up else "the attribute that is really about the device"
        return (
            f"relation renaming: an upper bound for {whose}, between histories that are the same up to a renaming of "
            "what is memoised; when a value changed and when it came back is not covered (`hearsay plan` has the "
            f"figures for any two histories), nor what was memoised before a loss of the store{void}"
        )


class TableRecord(_Record):
    """What a table holds. Tables of one survey and one keyring share their `fleet`."""

    survey: str
    fleet: str
    kind: Literal["device presence", "fleet presence", "memos"]
    attribute: str = ""  # of memos


def record_of(scheme: Scheme) -> SurveyRecord:
    survey, promise = scheme.survey, scheme.guarantees
    listed = [min(values, COSTED) for values in promise.values]
    return SurveyRecord(
        id=survey.id,
        fingerprint=scheme.fingerprint,
        cap=survey.memo_cap,
        adds_up=survey.solution == "spl",
        per_report=None if survey.longitudinal else promise.per_report.whole,
        one_in=survey.one_in,
        attributes=tuple(
            AttributeRecord(
                name=question.name,
                memo_bytes=question.mechanism.encoding.memo.bytes,
                costs=(0.0, *(loss_of_values(question.mechanism, count) for count in range(1, most + 1))),
            )
            for question, most in zip(scheme.questions, listed, strict=True)
        ),
    )


def register(link: Link, scheme: Scheme, sealer: Sealer) -> SurveyRecord:
    """Record a survey and its tables; refuse a survey whose id was recorded with other terms.

    The ledger and the cap of a device belong to the id: under other terms, memos of the same values would be drawn
    again, and spending would be counted once. Changed terms, and changed keys, need a new survey.
    """
    survey = scheme.survey
    known = link.ask("HGET", SURVEYS, survey.id)
    if known is None:
        mine = record_of(scheme).model_dump_json()
        known = link.run([("HSETNX", SURVEYS, survey.id, mine), ("HGET", SURVEYS, survey.id)])[1]
    record = SurveyRecord.model_validate_json(known)
    if record.fingerprint != scheme.fingerprint:
        raise FingerprintChanged(
            f"survey {survey.id!r} was first seen with the fingerprint {record.fingerprint}, "
            f"and now has {scheme.fingerprint}",
            "give the survey a new id, as memos belong to the terms they were made under; "
            "if its file is unchanged, another release or kind of machine has resolved it to other terms",
        )
    fleet = presence_table(sealer)
    tables = {fleet: TableRecord(survey=survey.id, fleet=fleet, kind="device presence")}
    tables[columns_table(sealer)] = TableRecord(survey=survey.id, fleet=fleet, kind="fleet presence")
    for attribute in record.attributes:
        name = memo_table(sealer, record, attribute).name
        tables[name] = TableRecord(survey=survey.id, fleet=fleet, kind="memos", attribute=attribute.name)
    link.run([("HSET", TABLES, name, table.model_dump_json()) for name, table in tables.items()])
    return record


def presence_table(sealer: Sealer) -> str:
    return sealer.table("device presence")


def memo_table(sealer: Sealer, record: SurveyRecord, attribute: AttributeRecord) -> MemoTable:
    return MemoTable(sealer.table("memos", attribute.name), attribute.memo_bytes, record.cap)


def registered(link: Link) -> dict[str, SurveyRecord]:
    """Every survey the store has seen, by id."""
    known: dict[bytes, bytes] = link.ask("HGETALL", SURVEYS)
    return {id.decode(): SurveyRecord.model_validate_json(text) for id, text in sorted(known.items())}
