"""There is one memo per question, however many surveys ask it; caps, commits and presence belong to a survey."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import redis
from numpy.typing import NDArray

from lab.seeded_keyrings import seeded_keyring
from memo_store.registry import registered
from memo_store.sealing import Sealer
from memo_store.store import MemoStore
from memo_store.survey_memos import SurveyMemos
from protocols.arrays import Devices, Values
from protocols.errors import StoreError
from protocols.randomness import Keyring
from protocols.respondent import UNKNOWN, Respondent
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from servers.redis_server import RedisServer
from tests.memo_store.surveys import columns_key, devices, empty, memoised, respondent, unsteady

EVERYONE = devices(2000)
FOODS = ["soup", "bread", "an apple", "rice", "tea"]
SAID = np.arange(len(EVERYONE)) % len(FOODS)  # of FOODS
BUDGETS = "eps_inf: 2, eps_1: 1"


def asking(
    id: str, foods: list[str], mechanism: str = "l-grr", terms: str = BUDGETS, name: str = "food", more: str = ""
) -> Respondent:
    text = (
        f"{{id: {id}, start: 2026-01-01T00:00:00Z, period: 1d, clock: source, grace: 9d, {terms}, attributes: "
        f"[{{name: {name}, mechanism: {mechanism}, values: [{', '.join(foods)}]}}{more}]}}"
    )
    return Respondent(Scheme(parse_survey(text)), seeded_keyring(1))


def memos_of(memos: SurveyMemos, said: Any, period: int, name: str = "food") -> Any:
    """The foods that the memos name of what people have said, which is given by the place among FOODS."""
    people, question = memos.respondent, memos.respondent.scheme.question(name)
    values = np.array([question.attribute.values.index(food) for food in FOODS])[said]
    memo = memos.lookup(question, EVERYONE, people.cells(question, EVERYONE, values), period)
    return np.array(question.attribute.values)[memo]


def test_two_surveys_that_ask_the_same_in_another_order_share_memos_and_another_question_does_not(
    store: MemoStore,
) -> None:
    """Draws are made anew each time they are asked for, so what two surveys have in common is the store's doing."""
    one = store.survey(unsteady(asking("one", FOODS)))
    other = store.survey(
        unsteady(asking("other", FOODS[::-1], terms="eps_inf: 2, eps_1: 0.5, memo_cap: 4, horizon: 3"))
    )
    first = memos_of(one, SAID, 3)
    assert (memos_of(other, SAID, 0) == first).all(), "whoever asks first, and in whatever period"
    assert (memos_of(one, SAID, 4) == first).all()
    for stranger in (
        asking("wider", FOODS, terms="eps_inf: 2.5, eps_1: 1"),
        asking("named", FOODS, name="meal"),
        asking("longer", [*FOODS, "cake"]),
    ):
        asked = store.survey(unsteady(stranger))
        (question,) = stranger.scheme.questions
        assert (memos_of(asked, SAID, 0, question.name) != first).any()
    assert {question.surveys for question in store.stats().questions} == {
        ("one", "other"), ("wider",), ("named",), ("longer",),
    }  # fmt: skip


@pytest.mark.parametrize("mechanism", ["l-grr", "l-sue", "l-osue"])
def test_memos_in_a_survey_s_order_say_the_same_food(mechanism: str) -> None:
    """Without round 2 the answer is the memo: the same foods, in whatever order a survey lists them."""
    name = mechanism.removeprefix("l-").replace("osue", "oue")
    supported = []
    for id, foods in (("one", FOODS), ("other", [*FOODS[2:], *FOODS[:2]])):
        people = asking(id, foods, name, "eps_inf: 1")
        (question,) = people.scheme.questions
        values = np.array([foods.index(food) for food in FOODS])[SAID]
        answers = people.answers(question, EVERYONE, 0, values)
        layout = question.mechanism.encoding.answer
        bits = np.eye(5, dtype=np.uint8)[answers] if answers.ndim == 1 else layout.unpack(answers)  # type: ignore[union-attr]
        supported.append(bits[:, [foods.index(food) for food in FOODS]])
    assert (supported[0] == supported[1]).all() and supported[0].any()


def test_the_buckets_of_a_device_are_the_same_foods_in_every_survey() -> None:
    held = []
    for id, foods in (("one", FOODS), ("other", FOODS[::-1])):
        own = asking(id, foods, "dbitflip, parameter: 2", "eps_inf: 1")
        (question,) = own.scheme.questions
        traits = np.asarray(own.traits(question, EVERYONE))
        held.append([{foods[place] for place in row} for row in traits.tolist()])
        values = np.array([foods.index(food) for food in FOODS])[SAID]
        held.append(own.cells(question, EVERYONE, values).tolist())
    assert held[0] == held[2] and held[1] == held[3]


def test_a_device_draws_the_same_question_and_turn_in_surveys_that_ask_the_same() -> None:
    plan, turns = ", {name: plan, values: [free, paid], share: 0.25}", "eps: 1, one_in: 3"
    food = f", {{name: food, values: [{', '.join(FOODS)}], share: 0.75}}"
    one = asking("one", FOODS, more=plan).sampled(EVERYONE)
    other = asking("other", FOODS[::-1], terms="eps_inf: 2, eps_1: 0.5", more=plan).sampled(EVERYONE)
    swapped = asking("swapped", ["paid", "free"], name="plan", more=food).sampled(EVERYONE)
    assert (one == other).all() and (one == 1 - swapped).all() and 0.2 < one.mean() < 0.3
    more = asking("more", FOODS, more=plan + ", {name: age, values: [young, old]}").sampled(EVERYONE)
    assert (one != more).any()
    first, second = (asking(id, FOODS, "grr", turns).places(EVERYONE) for id in ("one", "other"))
    assert (first == second).all() and set(first.tolist()) == {0, 1, 2}


def test_what_stands_for_an_unlisted_food_is_the_same_food_in_surveys_that_ask_the_same() -> None:
    nobody = np.full(len(EVERYONE), UNKNOWN)
    stands = []
    for people in (asking("one", FOODS), asking("other", FOODS[::-1], terms="eps_inf: 2, eps_1: 0.5")):
        (question,) = people.scheme.questions
        values = people.values(question, EVERYONE, {"food": nobody}, 0)
        stands.append([question.attribute.values[value] for value in values])
        assert (people.values(question, EVERYONE, {"food": SAID}, 0) == SAID).all()
    assert stands[0] == stands[1] and set(stands[0]) == set(FOODS)
    stranger = asking("wider", FOODS, terms="eps_inf: 2.5, eps_1: 1")
    drawn = stranger.values(stranger.scheme.questions[0], EVERYONE, {"food": nobody}, 0)
    assert [FOODS[value] for value in drawn] != stands[0]


def test_what_stands_for_an_unlisted_value_of_a_cross_is_drawn_for_the_cross() -> None:
    crossing = f"{BUDGETS}, crosses: [{{of: [food, plan], share: 0.5}}]"
    people = asking("one", FOODS, terms=crossing, more=", {name: plan, values: [free, paid]}")
    alone, crossed = people.scheme.question("food"), people.scheme.questions[-1]
    values = {"food": np.full(len(EVERYONE), UNKNOWN), "plan": np.ones(len(EVERYONE), dtype=np.int64)}
    drawn = people.values(crossed, EVERYONE, values, 0)
    assert set((drawn % 2).tolist()) == {1} and set((drawn // 2).tolist()) == set(range(len(FOODS)))
    assert (drawn // 2 != people.values(alone, EVERYONE, values, 0)).any()


def test_among_fakes_the_question_is_the_whole_tuple(store: MemoStore) -> None:
    """Which attribute is true is drawn for the tuple: a memo that two of them share might be fake in one of them."""
    terms, plan = f"{BUDGETS}, solution: rs+fd", ", {name: plan, values: [free, paid], mechanism: grr}"
    food = f", {{name: food, values: [{', '.join(FOODS)}], mechanism: grr}}"
    tuples = (
        asking("one", FOODS, "grr", terms=terms, more=plan),
        asking("swapped", ["paid", "free"], "grr", terms=terms, name="plan", more=food),
        asking("other", FOODS, "grr", terms=terms, more=plan.replace("plan", "offer")),
    )
    kept = [memos_of(store.survey(unsteady(people)), SAID, 0) for people in tuples]
    derived = [people.memoise(people.scheme.question("food"), EVERYONE, SAID) for people in tuples]
    true = (tuples[0].sampled(EVERYONE) == 0) & (tuples[2].sampled(EVERYONE) == 0)
    for first, swapped, other in (kept, derived):
        assert (first == swapped).all() and (first != other)[true].any()


def test_a_cap_holds_for_its_survey_by_its_own_order_of_first_use(store: MemoStore) -> None:
    """The free survey has brought memos about that the capped one has not used: they do not fill its cap."""
    free, capped = (
        store.survey(asking("free", FOODS)),
        store.survey(asking("capped", FOODS, terms=f"{BUDGETS}, memo_cap: 2")),
    )
    said = [np.full(len(EVERYONE), food) for food in range(5)]
    seen = [memos_of(free, said[food], period) for period, food in enumerate((0, 1, 2, 3, 4))]
    held = [memos_of(capped, said[food], period) for period, food in enumerate((3, 3, 1, 4, 3))]
    for memo, food in zip(held, (3, 3, 1, 1, 1), strict=True):
        assert (memo == seen[food]).all()
    assert memoised(store, "food") == {5: len(EVERYONE)}
    stats = {survey.survey: survey.at_cap for survey in store.stats().surveys}
    assert stats == {"free": {}, "capped": {"food": len(EVERYONE)}}


def test_what_two_surveys_ask_alike_is_spent_once_and_an_accepted_loss_voids_the_caps_of_both(
    store: MemoStore, hasty_redis_url: str
) -> None:
    capped = [asking(id, FOODS, terms=f"{BUDGETS}, memo_cap: {cap}") for id, cap in (("one", 1), ("other", 2))]
    one, other = (store.survey(people) for people in capped)
    memos_of(one, SAID, 0)
    memos_of(other, (SAID + 1) % 5, 0)
    (found,) = store.stats().questions
    assert found.surveys == ("one", "other") and found.spent == ((pytest.approx(4.0), len(EVERYONE)),), "two memos"
    empty(hasty_redis_url)
    with pytest.raises(StoreError):
        memos_of(one, SAID, 1)
    store.accept_loss()
    for memos in (one, other):
        memos_of(memos, SAID, 1)
    figures = [*store.stats().surveys, *store.stats().questions]
    assert all("memo_cap bounds nothing" in figure.meaning for figure in figures)


def test_a_store_of_another_release_is_refused(store: MemoStore, hasty_redis_url: str) -> None:
    """Version 0.1 had memos by survey, and named no questions. A failure would be a second memo of a value."""
    with redis.Redis.from_url(hasty_redis_url) as client:
        attribute = {"name": "food", "memo_bytes": 1, "costs": [0.0, 2.0]}
        old = {"id": "old", "fingerprint": "f", "cap": None, "per_report": None, "adds_up": True}
        client.hset("hearsay:surveys", "old", json.dumps({**old, "attributes": [attribute]}))
    asked: list[Callable[[], object]] = [
        lambda: store.survey(asking("old", FOODS)),
        lambda: registered(store, seeded_keyring(1)),
        store.stats,
    ]
    for ask in asked:
        with pytest.raises(StoreError, match="surveys of another release"):
            ask()


# Redis learns neither who a device is nor what is true of it: not from bytes, not from which fields exist.
SECRET = b"a secret that must not be stored"
PLANTED = [f"planted-{number:03}-value" for number in range(256)]
TELLING = np.array([0x506C616E74656431, 0x506C616E74656432, 0x0123456789ABCDEF], dtype=np.uint64)
ALL = devices(20_000)
CELLS = np.arange(20_000) % 10


def written(server: RedisServer) -> bytes:
    """All that was ever sent to be stored: the append-only file holds every write, and more than a dump."""
    files = [path for path in server.directory.rglob("*") if path.is_file() and ".aof" in path.name]
    return b"".join(path.read_bytes() for path in files)


def spellings(number: int) -> list[bytes]:
    binary = [number.to_bytes(8, order) for order in ("little", "big")]
    return [*binary, str(number).encode(), f"{number:x}".encode(), f"{number:X}".encode()]


def test_planted_devices_values_memos_and_secrets_are_not_in_the_store(server: RedisServer) -> None:
    """The budget is so large that a memo is the true value, plainly encoded: it must not be there either."""
    text = (
        "{id: planted, start: 2026-01-01T00:00:00Z, period: 1d, clock: source, eps_inf: 20, eps_1: 1, "
        f"attributes: [{{name: where, mechanism: l-sue, values: [{', '.join(PLANTED)}]}}]}}"
    )
    people = Respondent(Scheme(parse_survey(text)), Keyring(SECRET))
    question = people.scheme.questions[0]
    values = np.array([7, 77, 177])
    with MemoStore(server.url) as store:
        memos = store.survey(people)
        memos.presence.status(TELLING, 0)
        memo = memos.lookup(question, TELLING, values, 0)
        memos.presence.delivered(TELLING, 0)
    plain = question.mechanism.encoding.memo.pack(np.eye(question.k)[values])
    assert (memo == plain).all(), "the test is about memos that are the truth"
    store_bytes = written(server)
    assert b"hearsay:surveys" in store_bytes, "the haystack must be the right one"
    needles = [SECRET, SECRET.hex().encode(), b"planted-", *(row.tobytes() for row in plain)]
    needles += [spelling for device in TELLING.tolist() for spelling in spellings(device)]
    assert [needle for needle in needles if needle in store_bytes] == []


def sealed_columns(url: str, there: list[Devices]) -> list[bytes]:
    """A fleet's presence as it is stored, after each of these groups has reported in the next period."""
    with redis.Redis.from_url(url) as client, MemoStore(url) as store:
        client.flushdb()
        fleet, seen = store.survey(respondent()).fleet_presence(8000), []
        for period, some in enumerate(there):
            fleet.delivered(some, period)
            seen.append(client.hget(columns_key(client), "base"))
    return seen


def test_a_fleets_column_does_not_show_who_reported_and_differs_every_time(redis_url: str) -> None:
    first, second = devices(8000)[:4000], devices(8000)[4000:]
    same, other = (sealed_columns(redis_url, [first, again]) for again in (first, second))
    assert [len(part) for part in same] == [len(part) for part in other]
    for before, after in (same, other):
        changed = np.unpackbits(np.frombuffer(before, dtype=np.uint8) ^ np.frombuffer(after, dtype=np.uint8)).mean()
        assert abs(changed - 0.5) < 6 * 0.5 / np.sqrt(8 * len(before)), "two copies of the store differ by noise"


def test_columns_that_another_client_has_changed_are_refused(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client, MemoStore(redis_url) as store:
        memos = store.survey(respondent())
        memos.fleet_presence(40).delivered(devices(40), 0)
        key = columns_key(client)
        client.hset(key, "base", client.hget(key, "base")[:-8] + bytes(8))
        with pytest.raises(StoreError, match="the field 'base' of survey 'visits' in the store cannot be unsealed"):
            memos.fleet_presence(40)


def tables(url: str) -> dict[bytes, dict[bytes, bytes]]:
    """Every hash of every shard: fields and records."""
    with redis.Redis.from_url(url) as client:
        return {key: client.hgetall(key) for key in client.scan_iter("hearsay:{*}:*", _type="hash")}


def records(url: str, value: Values) -> dict[bytes, dict[bytes, bytes]]:
    with redis.Redis.from_url(url) as client, MemoStore(url) as store:
        client.flushdb()
        people = respondent(k=50, budgets="eps_inf: 20, eps_1: 1", terms="solution: smp,")
        store.survey(people).lookup(people.scheme.questions[0], devices(2000), value, 0)
    return {key: table for key, table in tables(url).items() if not key.endswith((b":epoch", b":state"))}


def test_which_fields_exist_and_how_long_they_are_does_not_depend_on_values(redis_url: str) -> None:
    one, other = records(redis_url, np.full(2000, 3)), records(redis_url, np.arange(2000) % 50)
    shape = [{key: {f: len(r) for f, r in table.items()} for key, table in store.items()} for store in (one, other)]
    assert shape[0] == shape[1]
    assert sum(map(len, one.values())) == 2000


def test_devices_with_the_same_value_and_the_same_memo_have_unlike_records(redis_url: str) -> None:
    found = [record for table in records(redis_url, np.full(2000, 3)).values() for record in table.values()]
    assert len(set(found)) == 2000
    ones = np.unpackbits(np.frombuffer(b"".join(found), dtype=np.uint8)).mean()
    assert abs(ones - 0.5) < 6 * 0.5 / np.sqrt(8 * sum(map(len, found))), "sealed bytes look like noise"


def test_what_a_device_has_committed_looks_different_in_every_period(redis_url: str) -> None:
    people = respondent(terms="grace: 9d,")
    with redis.Redis.from_url(redis_url) as client, MemoStore(redis_url) as store:
        memos = store.survey(people)
        for period in (0, 1):
            memos.lookup(people.scheme.questions[0], devices(100), np.full(100, 3), period)
        strings = [b"".join(client.get(key) for key in sorted(client.scan_iter(f"*@{p}"))) for p in (0, 1)]
    first, second = (np.frombuffer(string, dtype="<u8").reshape(-1, 2) for string in strings)
    assert (first[:, 0] == second[:, 0]).all() and len(first) == 100
    assert (first[:, 1] != second[:, 1]).all() and len(set(first[:, 1].tolist())) == 100


def requests(url: str, ask: Callable[[MemoStore], object]) -> list[str]:
    """Every HMGET that is sent to Redis while something is asked."""
    with redis.Redis.from_url(url) as client, MemoStore(url) as store, client.monitor() as watch:
        ask(store)
        client.echo("that was all")
        seen = []
        for command in watch.listen():
            if "that was all" in command["command"]:
                return seen
            if command["command"].startswith("HMGET") and command["client_type"] != "lua":
                seen.append(command["command"])
    raise AssertionError


def test_the_order_devices_are_asked_in_does_not_reach_redis(redis_url: str) -> None:
    people, order = respondent(), np.random.default_rng(3).permutation(300)
    question = people.scheme.questions[0]

    def ask(rows: NDArray[np.intp]) -> list[str]:
        return requests(
            redis_url, lambda store: store.survey(people).lookup(question, devices(300)[rows], rows % 10, 0)
        )

    assert ask(np.arange(300)) == ask(order)


def test_a_device_has_another_pseudonym_in_every_survey_and_under_every_keyring(redis_url: str) -> None:
    with MemoStore(redis_url) as store:
        for id, secret in (("visits", 1), ("others", 1), ("visits", 2)):
            store.survey(respondent(id=id, secret=secret)).presence.delivered(devices(300), 0)
    fields = [
        field for key, table in tables(redis_url).items() if not key.endswith((b":epoch", b":state")) for field in table
    ]
    assert len(fields) == len(set(fields)) == 900


def sealer(terms: str = "", id: str = "visits") -> Sealer:
    return Sealer(seeded_keyring(1), id, respondent(terms=terms, id=id).scheme.fingerprint)


def test_other_terms_under_an_id_have_its_names_and_cannot_unseal_what_was_sealed() -> None:
    one, other, stranger = sealer(), sealer("minimum: 5,"), sealer(id="visits-2")
    assert one.table("memos", "area") == other.table("memos", "area") != stranger.table("memos", "area")
    assert (one.pseudonyms(ALL) == other.pseudonyms(ALL)).all()
    assert not (one.pseudonyms(ALL) == stranger.pseudonyms(ALL)).all(axis=1).any()
    sealed = sealer().seal("base", b"content")
    assert sealer().unseal("base", sealed) == b"content"
    with pytest.raises(StoreError, match="cannot be unsealed"):
        sealer("minimum: 5,").unseal("base", sealed)


@pytest.mark.parametrize("terms", ["minimum: 5,", "memo_cap: 3,", "grace: 1h,", "calibration: published,"])
def test_under_other_terms_all_tags_and_pads_are_independent(terms: str) -> None:
    one, other = sealer(), sealer(terms)
    tags = [each.tags("area", ALL, CELLS) for each in (one, other)]
    pads = [each.pads("area", ALL, tags[0], 8) for each in (one, other)]
    committed = [each.commit_pads("area", ALL, 3) for each in (one, other)]
    for mine, theirs in (tags, pads, committed):
        assert not (mine == theirs).reshape(len(ALL), -1).all(axis=1).any()
        differing = np.unpackbits(np.ascontiguousarray(mine ^ theirs).view(np.uint8)).mean()
        assert abs(differing - 0.5) < 0.003  # half of all bits, as between random numbers
