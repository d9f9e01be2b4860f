"""Which surveys the store has seen, and what its tables hold: public terms only, nothing about devices.

hearsay:surveys   survey id -> SurveyRecord
hearsay:tables    table -> TableRecord; of memos, a table and a survey, with a space between them -> TableRecord
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from pydantic import BaseModel, ValidationError

from memo_store.connection.link import Link
from memo_store.sealing import Sealer
from memo_store.tables.memos import MemoTable
from protocols.errors import FingerprintChanged, StoreError
from protocols.privacy import NEAR, loss_of_values
from protocols.question import Question
from protocols.randomness import Keyring
from protocols.scheme import Scheme
from protocols.survey import TIMES

SURVEYS, TABLES = "hearsay:surveys", "hearsay:tables"
YEAR = timedelta(days=365)
COSTED = 32
"""For how many values the cost is listed; each further one costs at most what the last listed one does."""


class AttributeRecord(BaseModel, frozen=True):
    """Whose memos an attribute has, how large they are, and what they cost."""

    name: str
    question: str  # the id of the question, or with fakes of the whole tuple
    memo_bytes: int
    costs: tuple[float, ...]  # of 0, 1, 2, ... memoised values
    constant: float  # all its reports of a value that stays; without memos one of them; of places 500 m apart
    most: int  # memos that the survey can bring about

    @property
    def reads(self) -> list[str]:
        """The attributes whose values it asks for: both of a cross."""
        return self.name.split(TIMES)


class SurveyRecord(BaseModel, frozen=True):
    """What the store must know of a survey."""

    id: str
    fingerprint: str
    cap: int | None
    per_report: float | None  # what a report costs where nothing is memoised
    report: float  # what one report reveals; of places 500 m apart
    one_in: int  # in one of how many periods a device answers
    answers: int  # in a year, at most
    sampled: str  # by what devices draw the one question that they answer, if they answer one only
    attributes: tuple[AttributeRecord, ...]

    @classmethod
    def read(cls, text: bytes) -> "SurveyRecord":
        try:
            return cls.model_validate_json(text)
        except ValidationError:
            raise StoreError(
                "the memo store has surveys of another release of hearsay, whose memos belong to other questions",
                "go on with that release, or start with an empty store: devices then draw their memos anew",
            ) from None

    @property
    def questions(self) -> dict[str, tuple[AttributeRecord, ...]]:
        """The attributes of each question: one, or all of a tuple, of which one is really about the device."""
        known = dict.fromkeys(attribute.question for attribute in self.attributes)
        return {each: tuple(a for a in self.attributes if a.question == each) for each in known}

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
        return (
            "relation renaming: an upper bound for all surveys that ask the same, between histories that are the same "
            "up to a renaming of what is memoised; when a value changed and when it came back is not covered (`hearsay "
            f"plan` has the figures for any two histories), nor what was memoised before a loss of the store{void}"
        )


class TableRecord(BaseModel, frozen=True):
    """What a table holds. Tables of one survey and one keyring share their `fleet`, as do those of one question."""

    survey: str
    fleet: str
    kind: Literal["device presence", "fleet presence", "memos", "used"]
    attribute: str = ""  # of memos, and of what a survey with a cap has used of them


@dataclass(frozen=True)
class AttributeTables:
    """Where the memos of one attribute are, for the devices of one keyring."""

    sealer: Sealer  # of the memos
    memos: MemoTable
    used: MemoTable | None  # which memos the survey has used, if it has a cap
    commits: str

    @classmethod
    def of(cls, sealer: Sealer, record: SurveyRecord, attribute: AttributeRecord) -> "AttributeTables":
        """`sealer` is the survey's."""
        own = sealer.of_question(attribute.question)
        used = None if record.cap is None else MemoTable(sealer.table("used", attribute.name), 0, record.cap)
        memos = MemoTable(own.table("memos", attribute.name), attribute.memo_bytes, None)
        return cls(own, memos, used, sealer.table("memos", attribute.name))


def record_of(scheme: Scheme) -> SurveyRecord:
    survey, promise = scheme.survey, scheme.guarantees
    report = promise.per_report.whole
    if survey.solution == "smp":
        report = max(map(_near, scheme.questions, promise.per_attribute(1)))
    return SurveyRecord(
        id=survey.id,
        fingerprint=scheme.fingerprint,
        cap=survey.memo_cap,
        per_report=None if survey.longitudinal else promise.per_report.whole,
        report=report,
        one_in=survey.one_in,
        answers=-(-YEAR // (survey.period * survey.one_in)),
        sampled=scheme.sampled_id if scheme.discloses else "",
        attributes=tuple(_attribute(scheme, question) for question in scheme.questions),
    )


def _attribute(scheme: Scheme, question: Question) -> AttributeRecord:
    mechanism = question.mechanism
    listed = range(1, min(mechanism.encoding.states, COSTED) + 1) if scheme.survey.longitudinal else ()
    return AttributeRecord(
        name=question.name,
        question=scheme.memo_ids[question.name],
        memo_bytes=mechanism.encoding.memo.bytes,
        costs=(0.0, *(loss_of_values(mechanism, count) for count in listed)),
        constant=_near(question, loss_of_values(mechanism, 1)),
        most=min(mechanism.encoding.states, scheme.survey.memo_cap or mechanism.encoding.states),
    )


def _near(question: Question, loss: float) -> float:
    """A loss between any two values; of places that between two that are 500 m apart."""
    grid = question.attribute.grid
    if grid is None or not question.attribute.placed:
        return loss
    return loss * min(1.0, grid.area.apart(NEAR / grid.cell) * grid.cell / grid.diameter)


def register(link: Link, scheme: Scheme, sealer: Sealer, before: SurveyRecord | None) -> SurveyRecord:
    """Record a survey and its tables; refuse a survey whose id was recorded with other terms.

    The cap and the commits of a device belong to the id: under other terms it would use up a cap once more. `before` is
    what this process has recorded before a loss of the store.
    """
    survey = scheme.survey
    known = link.ask("HGET", SURVEYS, survey.id)
    if known is None:
        mine = (before or record_of(scheme)).model_dump_json()
        known = link.run([("HSETNX", SURVEYS, survey.id, mine), ("HGET", SURVEYS, survey.id)])[1]
    record = SurveyRecord.read(known)
    if record.fingerprint != scheme.fingerprint:
        raise FingerprintChanged(
            f"survey {survey.id!r} was first seen with the fingerprint {record.fingerprint}, "
            f"and now has {scheme.fingerprint}",
            "give the survey a new id, as a cap and what was reported belong to the terms; "
            "if its file is unchanged, another release or kind of machine has resolved it to other terms",
        )
    fleet = presence_table(sealer)
    tables = {fleet: TableRecord(survey=survey.id, fleet=fleet, kind="device presence")}
    tables[fleet_table(sealer)] = TableRecord(survey=survey.id, fleet=fleet, kind="fleet presence")
    for attribute in record.attributes if survey.longitudinal else ():
        own = AttributeTables.of(sealer, record, attribute)
        whose = {"survey": survey.id, "attribute": attribute.name}
        memos = TableRecord(**whose, fleet=presence_table(own.sealer), kind="memos")
        tables[f"{own.memos.name} {survey.id}"] = memos
        if own.used is not None:
            tables[own.used.name] = TableRecord(**whose, fleet=fleet, kind="used")
    link.run([("HSET", TABLES, name, table.model_dump_json()) for name, table in tables.items()])
    return record


def presence_table(sealer: Sealer) -> str:
    return sealer.table("device presence")


def fleet_table(sealer: Sealer) -> str:
    return sealer.table("fleet presence")


def registered(link: Link, keyring: Keyring | None = None) -> list[SurveyRecord]:
    """Every survey the store has seen, by id; or those that the devices of a keyring have answered."""
    known: dict[bytes, bytes] = link.ask("HGETALL", SURVEYS)
    records = [SurveyRecord.read(text) for _, text in sorted(known.items())]
    if keyring is None:
        return records
    tables = [presence_table(Sealer(keyring, record.id, record.fingerprint)) for record in records]
    answered = link.run([("HEXISTS", TABLES, table) for table in tables])
    return [record for record, own in zip(records, answered, strict=True) if own]
