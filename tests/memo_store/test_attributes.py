"""Several attributes of one survey."""

from __future__ import annotations

from typing import Any

import numpy as np
import redis

from lab.seeded_keyrings import seeded_keyring
from memo_store.store import MemoStore
from memo_store.survey_memos import Lookup
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from tests.memo_store.ledgers import ledger_of
from tests.memo_store.surveys import devices

EACH = 40


def people(attributes: int, terms: str = "eps_inf: 4, eps_1: 2") -> Respondent:
    asked = ", ".join(f"{{name: a{n}, range: {{last: 9}}}}" for n in range(attributes))
    text = f"id: many{attributes}, start: 2026-01-01T00:00:00Z, period: 1d, clock: source, {terms}"
    return Respondent(Scheme(parse_survey(f"{{{text}, attributes: [{asked}]}}")), seeded_keyring(1))


def lookups(own: Respondent, each: int = EACH) -> list[Lookup]:
    """Every attribute, asked of other devices."""
    questions = own.scheme.questions
    everyone = devices(each * len(questions))
    return [Lookup(q, everyone[n :: len(questions)], np.arange(each) % 10) for n, q in enumerate(questions)]


def memos_of(own: Respondent, asked: list[Lookup]) -> list[list[Any]]:
    return [own.memoise(one.question, one.devices, one.cells).tolist() for one in asked]


def test_what_the_store_lost_between_two_lookups_is_made_again_for_all_attributes(hasty_redis_url: str) -> None:
    own = people(5)
    asked = lookups(own)
    with MemoStore(hasty_redis_url) as store, redis.Redis.from_url(hasty_redis_url) as client:
        memos = store.survey(own)
        memos.lookup_all(asked, 0)
        client.flushall()
        assert [found.tolist() for found in memos.lookup_all(asked, 0)] == memos_of(own, asked)
        assert memos.presence_losses
        assert set(ledger_of(memos, asked[0].devices).values["a0"].tolist()) == {1}
