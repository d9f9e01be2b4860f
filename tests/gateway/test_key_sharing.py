"""What a file of keys names later, what gateways of release 0.2 and this one agree on, and how keys are pulled."""

import asyncio
import json
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from math import isnan
from pathlib import Path
from threading import Event, Thread

import pytest

from gateway.door import KeyState, hour_of
from gateway.door.credentials import Credential, credential_token
from gateway.door.keys import HOURS_AHEAD, Link
from gateway.http import Limits, Listener, tls_context
from gateway.service import (
    KeysForPeers,
    Metrics,
    PeerTls,
    Puller,
    SharedKeys,
    StateFile,
    peer_address,
    pull,
    read_state,
)
from hearsay.serving.key_sharing import KeySharing
from protocols.errors import HearsayError, SettingsError, StateError
from protocols.randomness import later_key
from protocols.wire import ReportHeader
from servers.ports import free_port
from servers.settings import KafkaSettings
from stream_app.kafka import Topics
from tests.gateway.forked import Forked
from tests.gateway.world import SCHEME, Moment, scheme
from tests.helpers.certificates import Authority
from tests.helpers.eventually import eventually

KEPT = Path(__file__).parents[1] / "states" / "gateway-keys-of-0.2.json"
RECORDED = json.loads(KEPT.read_text())
"""A state of release 0.2, and the keys that its own code then had from it, hour by hour."""
BEGIN = 1_767_268_800.0  # 2026-01-01, noon
HOUR, DAY = 3600.0, 86_400.0
HOURLY = scheme(id="hours", start="2026-01-01T00:00:00Z", period="1h", grace="3h")
SCHEMES = {each.survey.id: each for each in (SCHEME, HOURLY)}
PEOPLE = [Credential(f"person {number}", "device") for number in range(20)]
WAIT_SECONDS = 60
FORMER = json.dumps(RECORDED["state"]).encode()


def gateway(file: StateFile, now: Moment) -> SharedKeys:
    return SharedKeys(file, SCHEMES, now, lambda survey: BEGIN)


def former_key(survey: str, period: int) -> bytes:
    return bytes.fromhex(RECORDED["keys"][survey][str(period)])


def header(survey: str, period: int) -> ReportHeader:
    return ReportHeader(survey, SCHEMES[survey].fingerprint, period)


def pool(path: Path, now: Moment) -> StateFile:
    """The state file of a keeper, which has drawn its links."""
    file = StateFile(path)
    file.update(lambda state: KeyState(keeper=True), now())
    gateway(file, now)
    return file


def named(text: bytes, about: ReportHeader, tokens: set[bytes]) -> int:
    """How many senders of a period somebody names who has a file of keys and all credentials.

    Any 32 bytes of it may be a key, the link of an hour, or a link from which later ones follow.
    """
    state = json.loads(text)
    candidates = [key["key"] for key in state["keys"]] + [link["link"] for link in state.get("links", [])]
    if state.get("chain") is not None:
        candidates.append(state["chain"]["link"])
    for candidate in map(bytes.fromhex, candidates):
        for key in keys_from(candidate, about):
            if credential_token(key, PEOPLE[0]) in tokens:
                return len({credential_token(key, each) for each in PEOPLE} & tokens)
    return 0


def keys_from(candidate: bytes, about: ReportHeader) -> Iterator[bytes]:
    yield candidate
    link = candidate
    for _ in range(31 * 24):
        yield Link.model_construct(link=link).key(about)
        link = later_key(link, 1)


def test_an_export_names_the_senders_of_48_hours_and_nobody_later(tmp_path: Path) -> None:
    """Failure would look like: a sender of day 5 or 30 is named. Control: an export of release 0.2 names all."""
    now = Moment(BEGIN)
    keeper = pool(tmp_path / "state", now)
    export = keeper.erase(now()).exported().model_dump_json().encode()
    now.value += DAY / 2  # at midnight a period begins
    keys = gateway(keeper, now)
    found, former = [], []
    for day in (1, 5, 30):
        about = header("buttons", day)
        while SCHEME.survey.period_of(datetime.fromtimestamp(now(), UTC)) < day:
            now.value += DAY
            keys.tend()
        key = keys(about)
        assert key is not None
        found.append(named(export, about, {credential_token(key, each) for each in PEOPLE}))
        before = former_key("buttons", day)
        former.append(named(FORMER, about, {credential_token(before, each) for each in PEOPLE}))
    assert found == [20, 0, 0]
    assert former == [20, 20, 20]


def test_gateways_of_both_releases_have_the_same_keys_for_two_days(tmp_path: Path) -> None:
    """Failure would look like: a retry at a gateway of the other release counts a second time."""
    path, now = tmp_path / "state", Moment(BEGIN)
    path.write_bytes(FORMER)
    keys = gateway(StateFile(path), now)
    shown: dict[int, bytes | None] = {}
    for hour in range(HOURS_AHEAD + 2):
        now.value = BEGIN + hour * HOUR
        keys.tend()
        shown[12 + hour] = keys(header("hours", 12 + hour))
        if hour == 20:
            assert keys(header("buttons", 1)) == former_key("buttons", 1)
    last = 12 + HOURS_AHEAD
    assert [shown[period] for period in range(12, last)] == [former_key("hours", period) for period in range(12, last)]
    assert shown[last] is None and shown[last + 1] is None


def test_the_chain_of_a_state_of_release_0_2_is_in_no_file_after_the_upgrade(tmp_path: Path) -> None:
    """Failure would look like: who copies the new files follows the chain for ever. The former content is kept open."""
    path, now = tmp_path / "state", Moment(BEGIN)
    path.write_bytes(FORMER)
    with path.open("rb") as former:
        gateway(StateFile(path), now)
        assert former.read() == bytes(len(FORMER))
    state = json.loads(path.read_text())
    assert state["version"] == 2 and "chain" not in state and not state["keeper"]
    assert {link["source"] for link in state["links"]} == {"chain"}
    assert [path.name for path in tmp_path.iterdir() if path.name != "state.lock"] == ["state"]


def test_a_new_keeper_draws_after_the_links_of_the_chain_and_its_links_hold(tmp_path: Path) -> None:
    """One gateway is upgraded five hours after the keeper: it has links of the chain for hours that were drawn."""
    now = Moment(BEGIN)
    keeper, late = (StateFile(tmp_path / name) for name in ("keeper", "late"))
    given = read_state(FORMER, "0.2", now())
    keeper.erase(now(), given)
    keeper.update(lambda state: state.model_copy(update={"keeper": True}), now())
    keys = gateway(keeper, now)
    for _ in range(5):
        now.value += HOUR
        keys.tend()
    late.path.write_bytes(FORMER)
    gateway(late, now)
    kept = keeper.erase(now())
    assert [link.source for link in kept.links[-6:]] == ["chain"] + ["drawn"] * 5
    assert late.erase(now()).links != kept.links
    for one, other in ((late, keeper), (keeper, late)):
        assert one.erase(now(), other.erase(now())).links == kept.links
    assert hour_of(now()) + HOURS_AHEAD == kept.links[-1].hour + 1


def test_after_an_hour_has_begun_two_links_of_it_are_two_pools() -> None:
    drawn, chain = Link(hour=5, link=b"d" * 32), Link(hour=5, link=b"c" * 32, source="chain")
    assert drawn.agreed(chain, 4) == drawn == chain.agreed(drawn, 4)
    assert drawn.agreed(chain, 5) is None and chain.agreed(drawn, 5) is None
    assert drawn.agreed(Link(hour=5, link=b"e" * 32), 4) is None
    assert chain.agreed(Link(hour=5, link=b"e" * 32, source="chain"), 4) is None


def test_without_a_keeper_after_an_upgrade_the_log_names_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "state"
    path.write_bytes(FORMER)
    gateway(StateFile(path), Moment(BEGIN))
    assert f"hearsay gateway keys keep --state {path}" in capsys.readouterr().out
    gateway(pool(tmp_path / "drawn", Moment(BEGIN)), Moment(BEGIN))
    assert "keys keep" not in capsys.readouterr().out


# --- pulling


@contextmanager
def giving(file: StateFile, tls: PeerTls, peers: set[str], now: Moment) -> Iterator[str]:
    """The port of a gateway where others may ask for its keys, in a thread."""
    up, stop = Event(), Event()
    ports: list[int] = []

    async def run() -> None:
        application = KeysForPeers(file, frozenset(peers), now)
        context = tls_context(tls.certificate, tls.key, tls.authority)
        listener = Listener(application, Limits(), context, names=None)
        ports.append(await listener.start("127.0.0.1", 0))
        up.set()
        while not stop.is_set():
            await asyncio.sleep(0.01)
        await listener.stop()

    thread = Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    assert up.wait(WAIT_SECONDS), "the port of keys is not served"
    try:
        yield f"https://127.0.0.1:{ports[0]}"
    finally:
        stop.set()
        thread.join(WAIT_SECONDS)
        assert not thread.is_alive(), "the port of keys is still served"


def peer(authority: Authority, name: str) -> PeerTls:
    return PeerTls(*authority.issue(name), authority.certificate)


def test_keys_are_given_to_named_gateways_of_the_same_authority_only(tmp_path: Path) -> None:
    """Failure would look like: a device, or a gateway that nobody named, has the keys."""
    now = Moment(BEGIN)
    ours, devices = Authority(tmp_path / "ours"), Authority(tmp_path / "devices")
    keeper, other = pool(tmp_path / "keeper", now), StateFile(tmp_path / "other")
    before = keeper.erase(now())
    with giving(keeper, peer(ours, "keeper"), {"gateway"}, now) as url:
        for wrong in (
            peer(ours, "stranger").client(),
            PeerTls(*devices.issue("gateway"), ours.certificate).client(),
            ssl.create_default_context(cafile=ours.certificate),
            peer(devices, "gateway").client(),
        ):
            with pytest.raises(HearsayError):
                pull(url, wrong, other, now)
            assert not other.path.exists()
        pull(url, peer(ours, "gateway").client(), other, now)
    assert other.erase(now()) == before.exported() and before.keeper
    with pytest.raises(HearsayError, match="cannot be read"):
        pull(url, peer(ours, "gateway").client(), other, now)


def test_a_gateway_without_links_says_so_and_another_pool_is_refused(tmp_path: Path) -> None:
    now = Moment(BEGIN)
    ours = Authority(tmp_path / "ours")
    asking = peer(ours, "gateway").client()
    mine = pool(tmp_path / "mine", now)
    before = mine.path.read_bytes()
    with (
        giving(StateFile(tmp_path / "empty"), peer(ours, "empty"), {"gateway"}, now) as empty,
        giving(pool(tmp_path / "other", now), peer(ours, "other"), {"gateway"}, now) as another,
    ):
        with pytest.raises(HearsayError, match="answered 503"):
            pull(empty, asking, mine, now)
        with pytest.raises(StateError, match="another pool"):
            pull(another, asking, mine, now)
    assert mine.path.read_bytes() == before


def test_a_puller_tries_again_after_growing_pauses_and_a_keeper_does_not_pull(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, pauses, outcomes = Moment(BEGIN), list[float](), list[str]()
    ours = Authority(tmp_path / "ours")
    keys = gateway(StateFile(tmp_path / "mine"), now)

    class Enough(Exception):
        pass

    async def paused(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 10:
            raise Enough

    monkeypatch.setattr("gateway.service.sharing.asyncio.sleep", paused)
    puller = Puller("https://127.0.0.1:9", peer(ours, "mine").client(), keys, outcomes.append)
    with pytest.raises(Enough):
        asyncio.run(puller.run())
    assert pauses == [5, 10, 20, 40, 80, 160, 300, 300, 300, 300] and outcomes == ["failed"] * 10
    pauses.clear()
    keeping = gateway(pool(tmp_path / "keeper", now), now)
    with pytest.raises(Enough):
        asyncio.run(Puller("https://127.0.0.1:9", peer(ours, "mine").client(), keeping, outcomes.append).run())
    assert pauses == [3600] * 10 and len(outcomes) == 10


def test_a_gateway_with_these_options_gives_its_keys_and_one_that_pulls_has_them(tmp_path: Path) -> None:
    """Both as `hearsay gateway` runs them, beside what takes reports."""
    now = Moment(BEGIN)
    ours = Authority(tmp_path / "ours")
    here = peer(ours, "keeper")
    keeper = gateway(pool(tmp_path / "keeper", now), now)
    other = gateway(StateFile(tmp_path / "other"), now)
    with giving(keeper.file, here, {"other"}, now) as url:
        mine = peer(ours, "other")
        sharing = KeySharing("127.0.0.1", 0, frozenset({"x"}), url, mine.certificate, mine.key, mine.authority)
        sharing.check()
        metrics = Metrics()

        async def run() -> None:
            running = asyncio.ensure_future(sharing.run(other, metrics))
            async with asyncio.timeout(WAIT_SECONDS):
                while metrics.registry.get_sample_value("hearsay_gateway_key_pulls_total", {"outcome": "pulled"}) != 1:
                    assert not running.done(), "sharing keys has ended"
                    await asyncio.sleep(0.01)
            running.cancel()
            await asyncio.wait([running])

        asyncio.run(run())
    other.tend()
    assert other.hours_left() == HOURS_AHEAD
    assert other(header("hours", 12)) == keeper(header("hours", 12))


def test_where_no_keys_are_shared_the_metric_of_the_alert_is_no_number() -> None:
    """Failure would look like: `hearsay serve` and gateways without credentials raise HearsayKeysEnd."""
    shown = Metrics().registry.get_sample_value("hearsay_gateway_key_hours")
    assert shown is not None and isnan(shown)


def test_options_that_lack_something_are_refused(tmp_path: Path) -> None:
    files = peer(Authority(tmp_path), "x")
    three = files.certificate, files.key, files.authority
    for sharing, said in (
        (KeySharing(port=1), "named only"),
        (KeySharing(port=1, peers=frozenset({"x"})), "show each other certificates"),
        (KeySharing(url="https://x:1"), "show each other certificates"),
        (KeySharing("h", None, frozenset(), "http://x:1", *three), "no address"),
        (KeySharing("h", None, frozenset(), "https://x:1", files.certificate, tmp_path / "none", files.key), "cannot"),
    ):
        with pytest.raises(SettingsError, match=said):
            sharing.check()
    KeySharing().check()
    for wrong in ("https://x", "https://x:1/y", "https://x:none", "x:1", "https://u@x:1", "https://[:1"):
        with pytest.raises(SettingsError, match="no address"):
            peer_address(wrong)


def test_two_gateways_on_a_cluster_have_the_same_keys_once_the_second_one_has_pulled(
    kafka_settings: KafkaSettings, fresh_topics: Callable[..., Topics], tmp_path: Path
) -> None:
    """As an operator starts them: the keeper has a pool, the other has an address and certificates."""
    topics = fresh_topics(partitions=1, merge_partitions=1)
    ours = Authority(tmp_path / "ours")
    states = [tmp_path / name / "gateway.state" for name in ("keeper", "other")]
    pool(states[0], Moment(time.time()))
    keys_port = free_port()
    settings = {"HEARSAY_KAFKA_BOOTSTRAP": kafka_settings.bootstrap}
    both = []
    for state in states:
        files = peer(ours, state.parent.name)
        words = ["gateway", "--app", topics.prefix, "--state", str(state), "--peer", "other"]
        words += ["--peer-certificate", str(files.certificate), "--peer-key", str(files.key)]
        words += ["--peer-ca", str(files.authority)]
        if state is states[0]:
            words += ["--peer-port", str(keys_port)]
        else:
            words += ["--pull", f"https://127.0.0.1:{keys_port}"]
        both.append(Forked(tmp_path / f"{state.parent.name}.log", *words, **settings))
    with both[0].serving() as keeper, both[1].serving() as other:
        eventually(lambda: other.metric("hearsay_gateway_key_hours") > 46)
        assert keeper.metric("hearsay_gateway_key_hours") > 46
        assert other.metric("hearsay_gateway_key_pulls_total") >= 1
    drawn, pulled = (read_state(state.read_bytes(), "a file", time.time()) for state in states)
    assert drawn.keeper and not pulled.keeper
    both_have = min(len(drawn.links), len(pulled.links))
    assert drawn.links[:both_have] == pulled.links[:both_have] and both_have > HOURS_AHEAD - 2
