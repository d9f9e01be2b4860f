"""Redis learns neither who a device is nor what is true of it: not from bytes, not from which fields exist."""

from collections.abc import Callable

import numpy as np
import pytest
import redis
from numpy.typing import NDArray

from lab.seeded_keyrings import seeded_keyring
from memo_store.sealing import Sealer
from memo_store.store import MemoStore
from protocols.arrays import Devices, Values
from protocols.errors import StoreError
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from servers.redis_server import RedisServer
from tests.memo_store.surveys import columns_key, devices, respondent

SECRET = b"a secret that must not be stored"
PLANTED = [f"planted-{number:03}-value" for number in range(256)]
TELLING = np.array([0x506C616E74656431, 0x506C616E74656432, 0x0123456789ABCDEF], dtype=np.uint64)
EVERYONE = devices(20_000)
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
    assert (one.pseudonyms(EVERYONE) == other.pseudonyms(EVERYONE)).all()
    assert not (one.pseudonyms(EVERYONE) == stranger.pseudonyms(EVERYONE)).all(axis=1).any()
    sealed = sealer().seal("base", b"content")
    assert sealer().unseal("base", sealed) == b"content"
    with pytest.raises(StoreError, match="cannot be unsealed"):
        sealer("minimum: 5,").unseal("base", sealed)


@pytest.mark.parametrize("terms", ["minimum: 5,", "memo_cap: 3,", "grace: 1h,", "calibration: published,"])
def test_under_other_terms_all_tags_and_pads_are_independent(terms: str) -> None:
    one, other = sealer(), sealer(terms)
    tags = [each.tags("area", EVERYONE, CELLS) for each in (one, other)]
    pads = [each.pads("area", EVERYONE, tags[0], 8) for each in (one, other)]
    committed = [each.commit_pads("area", EVERYONE, 3) for each in (one, other)]
    for mine, theirs in (tags, pads, committed):
        assert not (mine == theirs).reshape(len(EVERYONE), -1).all(axis=1).any()
        differing = np.unpackbits(np.ascontiguousarray(mine ^ theirs).view(np.uint8)).mean()
        assert abs(differing - 0.5) < 0.003  # half of all bits, as between random numbers
