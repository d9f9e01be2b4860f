"""Which surveys the store has seen, and what its tables are for: public terms only, nothing about devices."""

from __future__ import annotations

import json
from collections.abc import Mapping

from memo_store.link import Link
from memo_store.memos import MemoTable
from memo_store.presence import PresenceTable
from protocols.errors import FingerprintChanged
from protocols.scheme import Scheme

SURVEYS, TABLES = "hearsay:surveys", "hearsay:tables"


def register(link: Link, scheme: Scheme, presence: PresenceTable, tables: Mapping[str, MemoTable]) -> None:
    """Remember a survey; refuse one whose id stands for other terms here.

    Draws depend on the id, so the same id under other terms would use one noise for two surveys. To change the terms,
    or to rotate keys, is to begin a new survey.
    """
    survey = scheme.survey
    first = link.run([("HSETNX", SURVEYS, survey.id, survey.fingerprint), ("HGET", SURVEYS, survey.id)])[1].decode()
    if first != survey.fingerprint:
        raise FingerprintChanged(
            f"survey {survey.id!r} was first seen with the fingerprint {first}, and now has {survey.fingerprint}",
            "give the changed survey an id of its own: memos belong to the id they were made under",
        )
    shared: dict[str, object] = {"survey": survey.id, "fleet": presence.name}
    about = {presence.name: shared}
    for question in scheme.questions:
        table = tables[question.name]
        terms = {"attribute": question.name, "width": table.width, "cap": table.cap, "budget": question.budget.inf}
        about[table.name] = shared | terms
    link.run([("HSET", TABLES, name, json.dumps(terms)) for name, terms in about.items()])
