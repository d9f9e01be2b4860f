"""Attributes that are looked up together: the same memos as one by one, in as many batches as one attribute needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import redis

from lab.seeded_keyrings import seeded_keyring
from memo_store.connection.layout import CHUNK, SHARDS
from memo_store.connection.link import Command, Link
from memo_store.store import MemoStore
from memo_store.survey_memos import Lookup
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
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


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> list[Counter[str]]:
    """Of each batch with scripts: how many are sent as texts (EVAL), and how many by their digests (EVALSHA)."""
    sent: list[Counter[str]] = []
    run = Link.run

    def counted(link: Link, commands: Sequence[Command], **how: bool) -> list[Any]:
        found = Counter(command[0] for command in commands if command[0].startswith("EVAL"))
        sent.extend([found] if found else [])
        return run(link, commands, **how)

    monkeypatch.setattr(Link, "run", counted)
    return sent


def memos_of(own: Respondent, asked: list[Lookup]) -> list[list[Any]]:
    return [own.memoise(one.question, one.devices, one.cells).tolist() for one in asked]


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many commands each batch has that is sent to Redis."""
    sent: list[int] = []
    run, ask = Link.run, Link.ask

    def counted_run(link: Link, commands: Sequence[Command], **how: bool) -> list[Any]:
        sent.append(len(commands))
        return run(link, commands, **how)

    def counted_ask(link: Link, *command: object) -> object:
        sent.append(1)
        return ask(link, *command)

    monkeypatch.setattr(Link, "run", counted_run)
    monkeypatch.setattr(Link, "ask", counted_ask)
    return sent


def test_the_number_of_batches_does_not_grow_with_attributes(hasty_redis_url: str, batches: list[int]) -> None:
    needed = {}
    for attributes in (1, 3, 20):
        own = people(attributes)
        with MemoStore(hasty_redis_url) as store:
            memos = store.survey(own)
            for period in (0, 1):  # made, then found
                batches.clear()
                asked = lookups(own)
                assert [found.tolist() for found in memos.lookup_all(asked, period)] == memos_of(own, asked)
                needed[attributes, period] = len(batches)
    assert needed[20, 0] == needed[3, 0] == needed[1, 0]
    assert needed[20, 1] == needed[3, 1] == needed[1, 1] < needed[1, 0]


def test_scripts_grow_with_shards_and_not_with_attributes_and_each_text_is_sent_once_in_a_batch(
    hasty_redis_url: str, scripts: list[Counter[str]]
) -> None:
    """Failure would look like: every attribute has commands of its own on every shard, each with a script's text."""
    for attributes in (1, 20):
        own = people(attributes)
        with MemoStore(hasty_redis_url) as store:
            memos = store.survey(own)
            scripts.clear()
            memos.lookup_all(lookups(own, each=400), 0)
            assert scripts == 3 * [Counter(EVAL=1, EVALSHA=SHARDS - 1)], "commits are read, memos made, then committed"


def test_a_server_that_has_forgotten_all_scripts_is_sent_them_again(hasty_redis_url: str) -> None:
    """As one that was started again has, and a replica that took over."""
    own = people(3)
    asked = lookups(own)
    with MemoStore(hasty_redis_url) as store, redis.Redis.from_url(hasty_redis_url) as client:
        memos = store.survey(own)
        for period in range(3):
            client.script_flush()
            assert [found.tolist() for found in memos.lookup_all(asked, period)] == memos_of(own, asked)
        assert not memos.presence_losses


def test_the_values_of_a_one_shot_survey_are_committed_together(
    hasty_redis_url: str, scripts: list[Counter[str]]
) -> None:
    for attributes in (1, 20):
        own = people(attributes, "eps: 2")
        with MemoStore(hasty_redis_url) as store:
            memos = store.survey(own)
            scripts.clear()
            asked = lookups(own, each=400)
            committed = memos.commit_values(asked, 0)
            assert [found.tolist() for found in committed] == [one.cells.tolist() for one in asked]
            again = [replace(one, cells=(one.cells + 1) % 10) for one in asked]
            assert [found.tolist() for found in memos.commit_values(again, 0)] == [one.cells.tolist() for one in asked]
            assert scripts == [Counter(EVAL=1, EVALSHA=SHARDS - 1)], "what is known to be committed is not sent again"


def test_attributes_of_many_devices_are_not_put_into_one_batch(hasty_redis_url: str, batches: list[int]) -> None:
    own = people(2)
    with MemoStore(hasty_redis_url) as store:
        memos, needed = store.survey(own), []
        for each in (CHUNK // 2, CHUNK // 2 + 1):
            batches.clear()
            memos.lookup_all(lookups(own, each), 0)
            needed.append(len(batches))
    assert needed[1] > needed[0]


def test_what_the_store_lost_between_two_lookups_is_made_again_for_all_attributes(hasty_redis_url: str) -> None:
    own = people(5)
    asked = lookups(own)
    with MemoStore(hasty_redis_url) as store, redis.Redis.from_url(hasty_redis_url) as client:
        memos = store.survey(own)
        memos.lookup_all(asked, 0)
        client.flushall()
        assert [found.tolist() for found in memos.lookup_all(asked, 0)] == memos_of(own, asked)
        assert memos.presence_losses
        assert set(memos.ledger(asked[0].devices).values["a0"].tolist()) == {1}
