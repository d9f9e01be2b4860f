"""Credentials do not outlive their period: the keys of a gateway, and what its files tell of closed periods."""

import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from typer.testing import CliRunner

from gateway.door import Chain, KeyState, Times, credential_line, hour_of
from gateway.door.credentials import credential_token, digest_of
from gateway.door.keys import OpenKey
from gateway.service import ChainedKeys, Senders, StateFile, TokenKeys
from hearsay.commands.operations.gateway import app
from hearsay.serving.kafka_log import FollowedRegistry, KafkaLog, serve_kafka
from hearsay.serving.running import Exposure
from protocols.errors import SettingsError, StateError
from protocols.scheme import Scheme
from protocols.wire import REPORT, Frame, ReportHeader, decode_frame
from servers.settings import KafkaSettings, Settings
from stream_app.kafka import Topics, publish, read_topic
from stream_app.local.log import LocalLog
from tests.gateway.clients import bearer, credentials
from tests.gateway.forked import Forked
from tests.gateway.world import KEY, NOON, SCHEME, KeepingLog, Moment, embedded, report, scheme, serving
from tests.helpers.dying import Killed, Steps
from tests.helpers.eventually import eventually

PEOPLE, PERIODS = [f"person {number}" for number in range(5)], 3
HOUR, DAY = 3600.0, 86_400.0
CREDENTIALS, VAN = credentials(**dict.fromkeys(PEOPLE, "device")), credentials(van="edge")
HOURLY = scheme(id="hours", start="2026-01-01T00:00:00Z", period="1h", grace="3h")
OVER = KeyState(keys=(OpenKey(survey="s", fingerprint="f", period=0, key=b"\xab" * 32, until=NOON - 1),))
Log = dict[ReportHeader, set[bytes]]


def senders(keys: TokenKeys) -> Senders:
    return Senders(keys, lambda: CREDENTIALS | VAN)


def header(of: Scheme = SCHEME, period: int = 0) -> ReportHeader:
    return ReportHeader(of.survey.id, of.fingerprint, period)


def tokens_in(values: Iterable[bytes], of: Scheme = SCHEME) -> Log:
    """The tokens of a log, by survey and period."""
    found: Log = {}
    for value in values:
        frame = decode_frame(value, {of.survey.id: of}.get)
        if isinstance(frame, Frame):
            found.setdefault(frame.header, set()).update(token.to_bytes(8, "big") for token in frame.tokens.tolist())
    return found


def named(files: Iterable[bytes], log: Log) -> int:
    """How many reports of a log somebody names who has these files and all credentials.

    Any 32 bytes of the files, raw or in hexadecimal, may be the key of a period; and those in hexadecimal may be a link
    of the chain, of any hour in a week.
    """
    texts = list(files)
    raw = {text[at : at + 32] for text in texts for at in range(len(text) - 31)}
    hexadecimal = {bytes.fromhex(each.decode()) for text in texts for each in re.findall(rb"[0-9a-f]{64}", text)}
    links = {link for each in hexadecimal for link in later_links(each)}
    derived = {Chain(hour=0, link=link).key(about, 0) or b"" for link in links for about in log}
    known = {credential_token(key, each) for key in raw | hexadecimal | derived for each in CREDENTIALS.values()}
    return sum(len(tokens & known) for tokens in log.values())


def later_links(link: bytes, hours: int = 24 * 7) -> Iterator[bytes]:
    chain = Chain(hour=0, link=link)
    for hour in range(hours):
        chain = chain.at(hour)
        yield chain.link


def files_in(*directories: Path) -> list[bytes]:
    """All files of a gateway, and all variables of this process."""
    files = [path.read_bytes() for each in directories for path in each.rglob("*") if path.is_file()]
    return [*files, *(f"{name}={value}".encode() for name, value in os.environ.items())]


def test_who_copies_everything_after_a_period_of_serve_was_closed_names_nobody(tmp_path: Path) -> None:
    """Failure would look like: the files name more reports than none. Control: with keys that were kept, all 15."""
    now, data, kept = Moment(), tmp_path / "data", []
    (tmp_path / "data").mkdir()
    (data / "tokens").write_text("".join(credential_line(name, "device") for name in PEOPLE))
    with embedded(data / "collector", now) as log:
        keys = TokenKeys(StateFile(data / "gateway.state"), {"buttons": SCHEME}.get, log.times, now)
        with serving(log, now=now, senders=senders(keys)) as served:
            for period in range(PERIODS):
                for name in PEOPLE:
                    for _ in range(2):  # the second one is a retry
                        assert served.post_one(report(of_period=period), **bearer(name)).status == 201
                kept.append((data / "gateway.state").read_bytes())
                now.value += DAY
                keys.tend()
            now.value += HOUR
            keys.tend()
    tokens: Log = {}
    for path in (data / "collector" / "log").glob("*.log"):
        reader = LocalLog(path, 0)
        tokens |= tokens_in(record.value or b"" for record in reader.unread)
        reader.close()
    assert [len(tokens[header(period=period)]) for period in range(PERIODS)] == [len(PEOPLE)] * PERIODS
    assert named(files_in(data), tokens) == 0
    assert named(kept, tokens) == 15


def chained(file: StateFile, now: Moment, schemes: Iterable[Scheme] = (SCHEME,), published: float = 0.0) -> ChainedKeys:
    known = {each.survey.id: each for each in schemes}
    return ChainedKeys(file, known, now, lambda survey: published)


def begun(path: Path, now: Moment) -> StateFile:
    """The state file of the first gateway of a cluster."""
    file = StateFile(path)
    file.update(lambda state: KeyState(chain=Chain(hour=hour_of(now()) - 1, link=KEY)))
    return file


def type_in(*words: str, given: bytes | None = None) -> Any:
    return CliRunner().invoke(app, ["keys", *words], input=given)


def test_a_retry_at_another_gateway_is_a_repeat_whenever_each_has_derived_its_key(tmp_path: Path) -> None:
    """One gateway has the chain from the begin on; the other gets it hours later, when no link gives this key."""
    now, log = Moment(), KeepingLog()
    first, second = begun(tmp_path / "first", now), StateFile(tmp_path / "second")
    keys = chained(first, now, published=NOON)
    early = keys(header())
    now.value += 5 * HOUR
    keys.tend()
    second.erase(now(), first.erase(now()))
    others = chained(second, now, published=NOON)
    with serving(log, now=now, senders=senders(keys)) as one, serving(log, now=now, senders=senders(others)) as other:
        for served in (one, other, one):
            assert served.post_one(report(), **bearer(PEOPLE[0])).status == 201
    (tokens,) = tokens_in(value for _, value in log.frames).values()
    assert early is not None and tokens == {credential_token(early, CREDENTIALS[digest_of(PEOPLE[0])])}


def test_the_chain_goes_forward_only_and_keeps_one_hour(tmp_path: Path) -> None:
    now = Moment()
    file = begun(tmp_path / "state", now)
    keys = chained(file, now, [HOURLY])
    now.value = NOON + 10 * HOUR
    keys.tend()
    state = file.erase(now())
    assert state.chain == Chain(hour=hour_of(NOON) - 1, link=KEY).at(hour_of(now()) - 1)
    assert {key.period for key in state.keys} == {19, 20, 21, 22}  # hours 19 to 22: the grace is three hours
    now.value -= 5 * HOUR  # the clock was fast
    keys.tend()
    assert file.erase(now()).chain == state.chain
    others = KeyState(chain=Chain(hour=hour_of(NOON), link=KEY).at(hour_of(now()) - 1))
    with pytest.raises(StateError, match="another chain"):
        file.erase(now(), others)
    others = KeyState(chain=Chain(hour=hour_of(NOON) - 1, link=KEY).at(hour_of(now()) - 1))
    assert file.erase(now(), others).chain == others.chain


def test_after_two_hours_credentials_wait_for_an_import_and_edges_do_not(tmp_path: Path) -> None:
    now = Moment(NOON + 58 * 60)
    up, down = begun(tmp_path / "up", now), begun(tmp_path / "down", now)
    running = chained(up, now, [HOURLY])
    chained(down, now, [HOURLY])  # and ends
    now.value += 2 * HOUR + 180  # 15:01: periods 13, 14 and 15 have begun
    running.tend()
    down.erase(now())  # first of all
    again = chained(down, now, [HOURLY])
    with serving(KeepingLog(), [HOURLY], now, senders(again)) as served:
        statuses = [served.post_one(report(HOURLY, each), **bearer(PEOPLE[0])).status for each in (12, 13, 14, 15)]
        assert statuses == [201, 503, 201, 201]  # one hour back, it has the link
        refused = served.post_one(report(HOURLY, 13), **bearer(PEOPLE[0]))
        assert refused.reason == "unavailable" and refused.headers["retry-after"] == "60"
        assert served.post([report(HOURLY, 13), report(HOURLY, 13)], **bearer("van")).status == 201
        down.erase(now(), up.erase(now()))
        again.tend()
        assert served.post_one(report(HOURLY, 13), **bearer(PEOPLE[0])).status == 201
    headers = [header(HOURLY, period) for period in (12, 13, 14, 15)]
    assert [again(each) for each in headers] == [running(each) for each in headers]
    assert None not in map(again, headers)


def test_without_a_chain_only_credentials_of_devices_wait(tmp_path: Path) -> None:
    with serving(KeepingLog(), senders=senders(chained(StateFile(tmp_path / "state"), Moment()))) as served:
        assert served.post_one(report(), **bearer(PEOPLE[0])).status == 503
        assert served.post_one(report(), **bearer("van")).status == 201
        assert served.ask("GET", "/ready").status == 200


def test_where_no_key_can_be_stored_none_is_used(tmp_path: Path) -> None:
    keys = TokenKeys(StateFile(tmp_path / "state"), {"buttons": SCHEME}.get, Times(), Moment())
    (tmp_path / "state.new").mkdir()  # so that nothing can be written there
    with serving(KeepingLog(), senders=senders(keys)) as served:
        assert served.post_one(report(), **bearer(PEOPLE[0])).status == 503
        (tmp_path / "state.new").rmdir()
        assert served.post_one(report(), **bearer(PEOPLE[0])).status == 201


def test_what_a_crash_leaves_is_erased_at_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Failure would look like: a file with the key of a closed period, or a file that has neither state."""
    steps = Steps(monkeypatch, *((os, name) for name in ("fsync", "link", "replace", "rename", "unlink")))
    fatal, died = 0, True
    while died:
        fatal, died = fatal + 1, False
        directory = tmp_path / str(fatal)
        file = begun(directory / "state", Moment())
        file.update(lambda state: state.merged(OVER))
        with (directory / "state").open("rb") as former:
            steps.begin(fatal)
            try:
                file.erase(NOON)
            except Killed:
                died = True
            made = steps.taken
            steps.begin(0)
            state = StateFile(directory / "state").erase(NOON)
            assert state.chain is not None and not state.keys, made
            assert former.read() == bytes(os.fstat(former.fileno()).st_size), made
        left = {path.name: path.read_text() for path in directory.iterdir()}
        assert left.keys() == {"state", "state.lock"} and OVER.keys[0].key.hex() not in "".join(left.values()), made
        assert stat.S_IMODE((directory / "state").stat().st_mode) == 0o600
    assert fatal > 7  # the new file, two names and their directory, the former content


def test_a_gateway_erases_before_anything_can_stop_it(tmp_path: Path) -> None:
    """Its start fails here because of its settings, before it looks for a broker."""
    file = StateFile(tmp_path / "state")
    file.update(lambda state: OVER)
    exposure = Exposure("0.0.0.0", 0, tokens=tmp_path / "tokens")
    with pytest.raises(SettingsError):
        serve_kafka(Settings(), None, exposure, file, 0, tmp_path, str)
    assert KeyState.model_validate_json(file.path.read_bytes()) == KeyState()


def test_gateways_begin_export_and_import_keys(tmp_path: Path) -> None:
    first, second, third = (str(tmp_path / name) for name in ("first", "second", "third"))
    assert isinstance(type_in("export", "--state", first).exception, StateError)
    assert type_in("new", "--state", first).exit_code == 0
    assert isinstance(type_in("new", "--state", first).exception, StateError)
    exported = type_in("export", "--state", first).stdout_bytes
    assert type_in("import", "--state", second, given=exported).exit_code == 0
    assert type_in("import", "--state", second, given=exported).exit_code == 0
    assert json.loads(Path(first).read_text()) == json.loads(Path(second).read_text())
    assert type_in("new", "--state", third).exit_code == 0
    refused = type_in("import", "--state", third, given=exported).exception
    assert isinstance(refused, StateError) and "another chain" in refused.message
    for wrong in (b"", b"{}x", b'{"version": 2}', b'{"keys": [{"key": "00"}]}'):
        refused = type_in("import", "--state", second, given=wrong).exception
        assert isinstance(refused, StateError) and "standard input" in refused.message


def test_serve_has_keys_of_periods_and_erases_those_that_are_over(tmp_path: Path) -> None:
    file, data, tokens = tmp_path / "survey.yaml", tmp_path / "data", tmp_path / "tokens"
    file.write_text(json.dumps(SCHEME.survey.model_dump(mode="json", exclude_defaults=True) | {"minimum": 0}))
    tokens.write_text(credential_line("phone", "device"))
    data.mkdir()
    state = StateFile(data / "gateway.state")
    state.update(lambda before: OVER)
    words = ("serve", str(file), "--data", str(data), "--tokens", str(tokens))
    with Forked(tmp_path / "serve.log", *words).serving() as server:
        sent = json.dumps(report(of_period=SCHEME.survey.period_of(datetime.now(UTC)))).encode()
        headers = {"content-type": REPORT, **bearer("phone")}
        with urlopen(Request(f"http://127.0.0.1:{server.port}/v1/reports", sent, headers), timeout=60) as answer:
            assert answer.status == 201
        state.update(lambda before: before.merged(OVER))
        eventually(lambda: state.update(lambda same: same).keys[1:] == ())  # it erases while it runs, too
        assert server.leave() == 0
    (key,) = KeyState.model_validate_json((data / "gateway.state").read_bytes()).keys
    assert key.survey == SCHEME.survey.id


def test_who_copies_the_files_of_two_gateways_after_a_period_was_closed_names_nobody(
    kafka_settings: KafkaSettings, fresh_topics: Callable[..., Topics], tmp_path: Path
) -> None:
    """Failure would look like: a retry that is no repeat, or files that name a report. Control: a kept link."""
    topics, now = fresh_topics(partitions=3, merge_partitions=1), Moment(time.time())
    of = scheme(start=f"{datetime.fromtimestamp(now(), UTC):%Y-%m-%dT%H:%M:%SZ}")
    publish(kafka_settings, topics, of.survey)
    states = [tmp_path / name / "gateway.state" for name in ("first", "second")]
    (tmp_path / "tokens").write_text("".join(credential_line(name, "device") for name in PEOPLE))
    assert type_in("new", "--state", str(states[0])).exit_code == 0
    kept = [type_in("export", "--state", str(states[0])).stdout_bytes]
    assert type_in("import", "--state", str(states[1]), given=kept[0]).exit_code == 0
    registry = FollowedRegistry(kafka_settings, topics)
    keys = [ChainedKeys(StateFile(state), registry.schemes, now, registry.published_at) for state in states]
    logs = [KafkaLog(kafka_settings, topics) for _ in states]
    with (
        serving(logs[0], [of], now, senders(keys[0])) as first,
        serving(logs[1], [of], now, senders(keys[1])) as second,
    ):
        eventually(lambda: all(log.connected for log in logs))
        for period in range(PERIODS):
            for person, name in enumerate(PEOPLE):
                served = [first, second][(person + period) % 2 :] + [first, second][: (person + period) % 2]
                for gateway in served:  # the second one is a retry
                    assert gateway.post_one(report(of, period), **bearer(name)).status == 201
            now.value += DAY
            for each in keys:
                each.tend()
        now.value += 2 * HOUR
        for each in keys:
            each.tend()
    tokens = tokens_in((record.value for record in read_topic(kafka_settings, topics.reports)), of)
    assert [len(tokens[header(of, period)]) for period in range(PERIODS)] == [len(PEOPLE)] * PERIODS
    assert named(files_in(tmp_path), tokens) == 0
    assert named(kept, tokens) == len(PEOPLE) * PERIODS
