"""Which surveys the store has seen, and what its tables are for: public terms only, nothing about devices.

hearsay:surveys   survey id -> its terms, as far as spending depends on them
hearsay:tables    table -> what it holds
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from memo_store.connection.link import Link
from memo_store.sealing import Veil
from memo_store.tables.fleet_columns import columns_table
from memo_store.tables.memos import MemoTable
from memo_store.tables.presence import PresenceTable
from protocols.errors import FingerprintChanged
from protocols.privacy import loss_of_values
from protocols.scheme import Scheme

SURVEYS, TABLES = "hearsay:surveys", "hearsay:tables"
COSTED = 32
"""For how many values the cost is listed; each further one costs what the last of these did, or less."""


class _Terms(BaseModel):
    model_config = ConfigDict(frozen=True)


class AttributeTerms(_Terms):
    """What an attribute's records look like, and what they mean."""

    name: str
    memo_bytes: int
    costs: tuple[float, ...]  # of 0, 1, 2, ... memoised values


class SurveyTerms(_Terms):
    """What the store must know of a survey."""

    id: str
    fingerprint: str
    cap: int | None
    adds_up: bool  # whether a device's attributes add up, or only one of them is about it
    per_report: float | None  # what a report costs where nothing is memoised
    attributes: tuple[AttributeTerms, ...]

    @property
    def meaning(self) -> str:
        """What the ledger's figure says (PROTOCOLS 3)."""
        if self.per_report is not None:
            return "an upper bound for all reports together, whatever an observer links"
        whose = "all attributes together" if self.adds_up else "the attribute that is really about the device"
        return (
            f"an upper bound for {whose}, between histories that change at the same times; "
            "when a value changed is not covered, which is why reports do not link"
        )


class TableTerms(_Terms):
    """What a table holds; tables of one survey and one keyring share their `fleet`."""

    survey: str
    fleet: str
    kind: Literal["presence", "roll", "memo"]
    attribute: str = ""


def terms_of(scheme: Scheme) -> SurveyTerms:
    survey, promise = scheme.survey, scheme.guarantees
    listed = [min(values, COSTED) for values in promise.values]
    return SurveyTerms(
        id=survey.id,
        fingerprint=survey.fingerprint,
        cap=survey.memo_cap,
        adds_up=survey.solution == "spl",
        per_report=None if survey.longitudinal else promise.per_report.whole,
        attributes=tuple(
            AttributeTerms(
                name=question.name,
                memo_bytes=question.mechanism.encoding.memo.bytes,
                costs=(0.0, *(loss_of_values(question.mechanism, count) for count in range(1, most + 1))),
            )
            for question, most in zip(scheme.questions, listed, strict=True)
        ),
    )


def register(link: Link, scheme: Scheme, veil: Veil) -> SurveyTerms:
    """Remember a survey; refuse one whose id stands for other terms here.

    Draws depend on the id, so the same id under other terms would use one noise for two surveys. To change the terms,
    or to rotate keys, is to begin a new survey.
    """
    survey = scheme.survey
    known = link.ask("HGET", SURVEYS, survey.id)
    if known is None:
        mine = terms_of(scheme).model_dump_json()
        known = link.run([("HSETNX", SURVEYS, survey.id, mine), ("HGET", SURVEYS, survey.id)])[1]
    terms = SurveyTerms.model_validate_json(known)
    if terms.fingerprint != survey.fingerprint:
        raise FingerprintChanged(
            f"survey {survey.id!r} was first seen with the fingerprint {terms.fingerprint}, "
            f"and now has {survey.fingerprint}",
            "give the changed survey an id of its own: memos belong to the id they were made under",
        )
    fleet = presence_table(veil).name
    about = {fleet: TableTerms(survey=survey.id, fleet=fleet, kind="presence")}
    about[columns_table(veil)] = TableTerms(survey=survey.id, fleet=fleet, kind="roll")
    for attribute in terms.attributes:
        name = memo_table(veil, terms, attribute).name
        about[name] = TableTerms(survey=survey.id, fleet=fleet, kind="memo", attribute=attribute.name)
    link.run([("HSET", TABLES, name, table.model_dump_json()) for name, table in about.items()])
    return terms


def presence_table(veil: Veil) -> PresenceTable:
    return PresenceTable(veil.table("presence"))


def memo_table(veil: Veil, terms: SurveyTerms, attribute: AttributeTerms) -> MemoTable:
    return MemoTable(veil.table("memo", attribute.name), attribute.memo_bytes, terms.cap)


def registered(link: Link) -> dict[str, SurveyTerms]:
    """Every survey the store knows, by id."""
    known: dict[bytes, bytes] = link.ask("HGETALL", SURVEYS)
    return {id.decode(): SurveyTerms.model_validate_json(text) for id, text in sorted(known.items())}
