"""A store of 0.1, whose memos belong to surveys: they go on as they are, and nothing is drawn anew.

tests/states/memos-of-0.1.json.xz was made by the code of 0.1: its keys, and what 24 devices have answered in periods 0
to 3 of five surveys. Device i has the value i + 5 (i mod 3) period of each attribute, modulo its number of values.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis

from hearsay.running.limits import require_within
from lab.seeded_keyrings import seeded_keyring
from memo_store.store import MemoStore
from memo_store.survey_memos import Lookup, SurveyMemos
from protocols.errors import StoreError
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from servers.settings import LimitSettings
from tests.memo_store.surveys import devices

OLD = json.loads(lzma.decompress((Path(__file__).parents[1] / "states" / "memos-of-0.1.json.xz").read_bytes()))
SURVEYS: dict[str, Any] = OLD["surveys"]
EVERYONE = devices(24)


@pytest.fixture
def store(hasty_redis_url: str) -> Iterator[MemoStore]:
    with redis.Redis.from_url(hasty_redis_url) as client:
        for key, value in OLD["keys"].items():
            if isinstance(value, dict):
                client.hset(key, mapping={bytes.fromhex(field): bytes.fromhex(text) for field, text in value.items()})
            elif isinstance(value, list):
                client.sadd(key, *map(bytes.fromhex, value))
            else:
                client.set(key, bytes.fromhex(value))
    with MemoStore(hasty_redis_url) as store:
        yield store


def taken(store: MemoStore, name: str) -> SurveyMemos:
    return store.survey(Respondent(Scheme(parse_survey(SURVEYS[name]["text"])), seeded_keyring(1)))


def answers(memos: SurveyMemos, period: int, like: int) -> dict[str, Any]:
    """What devices answer in a period if they have the values of another one, as the file has it."""
    people, found = memos.respondent, {}
    for questions, rows in people.asked(EVERYONE, period):
        for question in questions if len(rows) else ():
            some, values = EVERYONE[rows], (rows + 5 * (rows % 3) * like) % question.k
            if people.scheme.survey.longitudinal:
                memo = memos.lookup(question, some, people.cells(question, some, values), period)
                said = people.report(question, some, period, memo)
            else:
                (values,) = memos.commit_values([Lookup(question, some, values)], period)
                said = people.answer_once(question, some, period, values)
            found[question.name] = [rows.tolist(), said.tolist()]
    return found


@pytest.mark.parametrize("name", SURVEYS)
def test_an_open_period_is_answered_as_it_was_committed_and_earlier_values_have_their_memos(
    store: MemoStore, name: str
) -> None:
    """A failure would be a second memo of a value, or another answer in a period that was answered."""
    memos, expected = taken(store, name), SURVEYS[name]["reports"]
    assert answers(memos, 3, like=2) == expected[3], "period 3 is open, and was answered with other values"
    assert memos.presence_losses == () and store.history_confirmed
    if memos.respondent.scheme.survey.longitudinal:
        before = memos.ledger(EVERYONE).values
        answers(memos, 4, like=1)
        after = memos.ledger(EVERYONE).values
        assert {key: counts.tolist() for key, counts in before.items()} == {
            key: counts.tolist() for key, counts in after.items()
        }, "no value is new"


def test_a_capped_survey_holds_the_memo_that_it_held(store: MemoStore) -> None:
    memos = taken(store, "capped")
    question = memos.respondent.scheme.question("area")
    full = memos.ledger(EVERYONE).values["area"] == 2
    assert full.any()
    last = memos.lookup(question, EVERYONE, np.zeros(24, dtype=np.int64), 3)
    held = memos.lookup(question, EVERYONE, (np.arange(24) + 6) % 12, 4)
    assert (held == last)[full].all()
    assert memos.ledger(EVERYONE).values["area"].max() == 2
    (survey,) = (each for each in store.stats().surveys if each.survey == "capped")
    assert survey.at_cap["area"] == 24


def test_a_new_survey_that_asks_the_same_has_memos_of_its_own_question(store: MemoStore) -> None:
    old = taken(store, "asked")
    text = SURVEYS["asked"]["text"].replace("id: asked", "id: again")
    again = store.survey(Respondent(Scheme(parse_survey(text)), seeded_keyring(1)))
    assert (old.record.by_survey, again.record.by_survey) == (True, False)
    assert answers(again, 4, like=1) != answers(old, 4, like=1)
    shared = {question.question[:5]: question.surveys for question in store.stats().questions}
    assert shared["asked"] == ("asked",) and sum(surveys == ("again",) for surveys in shared.values()) == 2


def test_an_edge_counts_what_surveys_of_0_1_reveal(store: MemoStore) -> None:
    """How long their periods are is not recorded: they count as days."""
    taken = [store.surveys(seeded_keyring(1))[place] for place in (-2, -1)]
    assert [record.id for record in taken] == ["held", "turns"]
    text = SURVEYS["held"]["text"].replace("id: held", "id: more")
    with pytest.raises(StoreError, match=r"about 'area' in a year is 370, more than 10"):
        require_within(LimitSettings(value=10), Scheme(parse_survey(text)), taken)
    with pytest.raises(StoreError, match=r"the charges of a year are 378, more than 10"):
        require_within(LimitSettings(year=10), Scheme(parse_survey(text)), taken)


def test_a_survey_stays_what_it_was_when_the_store_is_emptied_under_it(store: MemoStore, hasty_redis_url: str) -> None:
    """A failure would be a survey that the next process takes for a new one, and draws all its memos anew."""
    memos = taken(store, "asked")
    before = answers(memos, 4, like=1)
    with redis.Redis.from_url(hasty_redis_url) as client:
        client.flushall()
    assert answers(memos, 4, like=2) == before
    assert taken(store, "asked").record == memos.record
