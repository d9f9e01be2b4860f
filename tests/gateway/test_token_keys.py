"""Credentials do not outlive their period: the keys of a gateway, and what its files tell of closed periods."""

import json
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from typer.testing import CliRunner

from gateway.door import KeyState, Link, Times, credential_line, hour_of
from gateway.door.credentials import credential_token, digest_of
from gateway.door.keys import HOURS_AHEAD, OpenKey
from gateway.service import Senders, SharedKeys, StateFile, TokenKeys
from hearsay.commands.operations.gateway import app
from hearsay.serving.kafka_log import FollowedRegistry, KafkaLog, serve_kafka
from hearsay.serving.key_sharing import KeySharing
from hearsay.serving.running import Exposure
from protocols.errors import SettingsError, StateError
from protocols.scheme import Scheme
from protocols.wire import REPORT, Frame, ReportHeader, decode_frame
from servers.settings import KafkaSettings, Settings
from stream_app.kafka import Topics, publish, read_topic
from stream_app.local.log import LocalLog
from tests.gateway.clients import bearer, credentials
from tests.gateway.forked import Forked
from tests.gateway.world import NOON, SCHEME, KeepingLog, Moment, embedded, report, scheme, serving
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

    Any 32 bytes of the files, raw or in hexadecimal, may be the key of a period; and those in hexadecimal may be the
    link of an hour.
    """
    texts = list(files)
    raw = {text[at : at + 32] for text in texts for at in range(len(text) - 31)}
    hexadecimal = {bytes.fromhex(each.decode()) for text in texts for each in re.findall(rb"[0-9a-f]{64}", text)}
    links = [Link(hour=0, link=each) for each in hexadecimal]
    derived = {link.key(about) for link in links for about in log}
    known = {credential_token(key, each) for key in raw | hexadecimal | derived for each in CREDENTIALS.values()}
    return sum(len(tokens & known) for tokens in log.values())


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


def shared(file: StateFile, now: Moment, schemes: Iterable[Scheme] = (SCHEME,), published: float = 0.0) -> SharedKeys:
    known = {each.survey.id: each for each in schemes}
    return SharedKeys(file, known, now, lambda survey: published)


def begun(path: Path, now: Moment) -> StateFile:
    """The state file of the first gateway of a cluster, the keeper."""
    file = StateFile(path)
    file.update(lambda state: KeyState(keeper=True).drawn(now(), secrets.token_bytes), now())
    return file


def same(state: KeyState) -> KeyState:
    return state


def type_in(*words: str, given: bytes | None = None) -> Any:
    return CliRunner().invoke(app, ["keys", *words], input=given)


def type_in_at(now: Moment, *words: str, given: bytes | None = None) -> Any:
    """A command, as it is at another time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", now)
        return type_in(*words, given=given)


def test_a_retry_at_another_gateway_is_a_repeat_whenever_each_has_derived_its_key(tmp_path: Path) -> None:
    """One gateway has the pool from the begin on; the other gets it hours later, when no link gives this key."""
    now, log = Moment(), KeepingLog()
    first, second = begun(tmp_path / "first", now), StateFile(tmp_path / "second")
    keys = shared(first, now, published=NOON)
    early = keys(header())
    now.value += 5 * HOUR
    keys.tend()
    second.erase(now(), first.erase(now()))
    others = shared(second, now, published=NOON)
    with serving(log, now=now, senders=senders(keys)) as one, serving(log, now=now, senders=senders(others)) as other:
        for served in (one, other, one):
            assert served.post_one(report(), **bearer(PEOPLE[0])).status == 201
    (tokens,) = tokens_in(value for _, value in log.frames).values()
    assert early is not None and tokens == {credential_token(early, CREDENTIALS[digest_of(PEOPLE[0])])}


def test_a_pool_has_links_from_one_hour_back_to_47_ahead_and_two_pools_are_refused(tmp_path: Path) -> None:
    """Failure would look like: a link that was erased is drawn again, which gives a period a second key."""
    now = Moment()
    file = begun(tmp_path / "state", now)
    before = file.erase(now())
    keys = shared(file, now, [HOURLY])
    now.value = NOON + 10 * HOUR
    keys.tend()
    state = file.erase(now())
    assert [link.hour - hour_of(now()) for link in state.links] == list(range(-1, HOURS_AHEAD))
    assert state.links[: len(before.links) - 10] == before.links[10:]
    assert {key.period for key in state.keys} == {19, 20, 21, 22}  # hours 19 to 22: the grace is three hours
    now.value -= 5 * HOUR  # the clock was fast
    keys.tend()
    assert file.erase(now()).links == state.links
    now.value += 90 * 24 * HOUR  # and is wrong again, by months
    keys.tend()
    now.value -= 90 * 24 * HOUR
    keys.tend()
    assert not {link.hour for link in state.links} & {link.hour for link in file.erase(now()).links}
    other = begun(tmp_path / "other", now).erase(now())
    with pytest.raises(StateError, match="another pool"):
        state.merged(other, now())


def test_after_the_clock_of_the_keeper_was_wrong_by_months_it_goes_on_with_the_pool_of_the_others(
    tmp_path: Path,
) -> None:
    """Failure would look like: an hour without a link, or one with two."""
    now = Moment()
    file, others = begun(tmp_path / "keeper", now), StateFile(tmp_path / "other")
    pool = others.erase(now(), file.erase(now()))
    keys = shared(file, now)
    now.value += 90 * DAY
    keys.tend()
    now.value -= 90 * DAY
    keys.tend()
    assert keys.hours_left() == 0
    file.erase(now(), pool)
    for _ in range(3):
        now.value += HOUR
        keys.tend()
        assert keys.hours_left() == HOURS_AHEAD
    others.erase(now(), file.erase(now()))


def test_links_that_a_fast_clock_has_drawn_are_not_taken_over(tmp_path: Path) -> None:
    """Failure would look like: a file that names the senders of next month."""
    now, fast = Moment(), Moment(NOON + 30 * DAY)
    keeper, other = begun(tmp_path / "keeper", fast), begun(tmp_path / "other", now)
    assert other.erase(now(), keeper.erase(fast())).links == begun_links(other, now)


def begun_links(file: StateFile, now: Moment) -> tuple[Link, ...]:
    return tuple(link for link in file.erase(now()).links if link.hour < hour_of(now()) + HOURS_AHEAD)


def test_only_the_keeper_draws_and_while_it_is_away_periods_run_out_of_keys(tmp_path: Path) -> None:
    """The keeper is away for two days. After a day the metric is below that of the alert; a new keeper goes on."""
    now = Moment()
    first = begun(tmp_path / "first", now)
    files = [StateFile(tmp_path / name) for name in ("second", "third")]
    for file in files:
        file.erase(now(), first.erase(now()))
    gateways = [shared(file, now, [HOURLY]) for file in files]
    assert [each.hours_left() for each in gateways] == [HOURS_AHEAD] * 2
    now.value += DAY + 60
    for each in gateways:
        each.tend()
        assert 23 < each.hours_left() < 24
    now.value += DAY
    for each in gateways:
        each.tend()
        assert each.hours_left() == 0
    with (
        serving(KeepingLog(), [HOURLY], now, senders(gateways[0])) as one,
        serving(KeepingLog(), [HOURLY], now, senders(gateways[1])) as two,
    ):

        def statuses(period: int) -> list[int]:
            return [each.post_one(report(HOURLY, period), **bearer(PEOPLE[0])).status for each in (one, two)]

        begins_after = 12 + HOURS_AHEAD
        assert statuses(begins_after) == [503, 503]
        assert statuses(begins_after - 1) == [201, 201]
        assert type_in_at(now, "keep", "--state", str(files[0].path)).exit_code == 0
        gateways[0].tend()
        assert statuses(begins_after) == [201, 503]
        files[1].erase(now(), files[0].erase(now()).exported())
        gateways[1].tend()
        assert statuses(begins_after) == [201, 201]
    assert [each.keeper for each in gateways] == [True, False]
    assert gateways[0](header(HOURLY, begins_after)) == gateways[1](header(HOURLY, begins_after))


def test_after_two_hours_credentials_wait_for_an_import_and_edges_do_not(tmp_path: Path) -> None:
    now = Moment(NOON + 58 * 60)
    up, down = begun(tmp_path / "up", now), StateFile(tmp_path / "down")
    down.erase(now(), up.erase(now()))
    running = shared(up, now, [HOURLY])
    shared(down, now, [HOURLY])  # and ends
    now.value += 2 * HOUR + 180  # 15:01: periods 13, 14 and 15 have begun
    running.tend()
    down.erase(now())  # first of all
    again = shared(down, now, [HOURLY])
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


def test_without_links_only_credentials_of_devices_wait(tmp_path: Path) -> None:
    with serving(KeepingLog(), senders=senders(shared(StateFile(tmp_path / "state"), Moment()))) as served:
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
        file.update(lambda state: state.merged(OVER, NOON), NOON)
        with (directory / "state").open("rb") as former:
            steps.begin(fatal)
            try:
                file.erase(NOON)
            except Killed:
                died = True
            made = steps.taken
            steps.begin(0)
            state = StateFile(directory / "state").erase(NOON)
            assert state.links and not state.keys, made
            assert former.read() == bytes(os.fstat(former.fileno()).st_size), made
        left = {path.name: path.read_text() for path in directory.iterdir()}
        assert left.keys() == {"state", "state.lock"} and OVER.keys[0].key.hex() not in "".join(left.values()), made
        assert stat.S_IMODE((directory / "state").stat().st_mode) == 0o600
    assert fatal > 7  # the new file, two names and their directory, the former content


def test_a_gateway_erases_before_anything_can_stop_it(tmp_path: Path) -> None:
    """Its start fails here because of its settings, before it looks for a broker."""
    file = StateFile(tmp_path / "state")
    file.update(lambda state: OVER, NOON)
    exposure = Exposure("0.0.0.0", 0, tokens=tmp_path / "tokens")
    with pytest.raises(SettingsError):
        serve_kafka(Settings(), None, exposure, KeySharing(), file, 0, tmp_path, str)
    assert KeyState.model_validate_json(file.path.read_bytes()) == KeyState()


def test_gateways_begin_export_import_and_keep_keys(tmp_path: Path) -> None:
    first, second, third = (str(tmp_path / name) for name in ("first", "second", "third"))
    assert isinstance(type_in("export", "--state", first).exception, StateError)
    assert isinstance(type_in("keep", "--state", first).exception, StateError)
    assert type_in("new", "--state", first).exit_code == 0
    assert isinstance(type_in("new", "--state", first).exception, StateError)
    exported = type_in("export", "--state", first).stdout_bytes
    assert type_in("import", "--state", second, given=exported).exit_code == 0
    assert type_in("import", "--state", second, given=Path(first).read_bytes()).exit_code == 0
    states = [json.loads(Path(name).read_text()) for name in (first, second)]
    assert [state.pop("keeper") for state in states] == [True, False]
    assert states[0] == states[1] and len(states[0]["links"]) == 1 + HOURS_AHEAD
    assert type_in("keep", "--state", second).exit_code == 0
    assert json.loads(Path(second).read_text()) == {**states[1], "keeper": True}
    assert type_in("new", "--state", third).exit_code == 0
    refused = type_in("import", "--state", third, given=exported).exception
    assert isinstance(refused, StateError) and "another pool" in refused.message
    twice = json.dumps({**states[1], "links": states[1]["links"][:1] * 2}).encode()
    for wrong in (
        b"",
        b"{}x",
        b'{"version": 3}',
        b'{"keys": [{"key": "00"}]}',
        b'{"version": 1, "links": []}',
        twice,
        b"[" * 100_000,
    ):
        refused = type_in("import", "--state", second, given=wrong).exception
        assert isinstance(refused, StateError) and "standard input" in refused.message


def test_serve_has_keys_of_periods_and_erases_those_that_are_over(tmp_path: Path) -> None:
    file, data, tokens = tmp_path / "survey.yaml", tmp_path / "data", tmp_path / "tokens"
    file.write_text(json.dumps(SCHEME.survey.model_dump(mode="json", exclude_defaults=True) | {"minimum": 0}))
    tokens.write_text(credential_line("phone", "device"))
    data.mkdir()
    state = StateFile(data / "gateway.state")
    state.update(lambda before: OVER, NOON)
    words = ("serve", str(file), "--data", str(data), "--tokens", str(tokens))
    with Forked(tmp_path / "serve.log", *words).serving() as server:
        sent = json.dumps(report(of_period=SCHEME.survey.period_of(datetime.now(UTC)))).encode()
        headers = {"content-type": REPORT, **bearer("phone")}
        with urlopen(Request(f"http://127.0.0.1:{server.port}/v1/reports", sent, headers), timeout=60) as answer:
            assert answer.status == 201
        state.update(lambda before: before.merged(OVER, NOON), NOON)
        eventually(lambda: state.update(same, NOON).keys[1:] == ())  # it erases while it runs, too
        assert server.leave() == 0
    (key,) = KeyState.model_validate_json((data / "gateway.state").read_bytes()).keys
    assert key.survey == SCHEME.survey.id


def test_who_copies_the_files_of_two_gateways_after_a_period_was_closed_names_nobody(
    kafka_settings: KafkaSettings, fresh_topics: Callable[..., Topics], tmp_path: Path
) -> None:
    """Failure would look like: a retry that is no repeat, or files that name a report. Control: files of each day."""
    topics, now = fresh_topics(partitions=3, merge_partitions=1), Moment(time.time())
    of = scheme(start=f"{datetime.fromtimestamp(now(), UTC):%Y-%m-%dT%H:%M:%SZ}")
    publish(kafka_settings, topics, of.survey)
    states = [tmp_path / name / "gateway.state" for name in ("first", "second")]
    (tmp_path / "tokens").write_text("".join(credential_line(name, "device") for name in PEOPLE))
    assert type_in("new", "--state", str(states[0])).exit_code == 0
    assert type_in("import", "--state", str(states[1]), given=states[0].read_bytes()).exit_code == 0
    kept = []
    registry = FollowedRegistry(kafka_settings, topics)
    keys = [SharedKeys(StateFile(state), registry.schemes, now, registry.published_at) for state in states]
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
            kept.append(states[0].read_bytes())
            now.value += DAY
            keys[0].tend()
            keys[1].file.erase(now(), keys[0].file.erase(now()))
            keys[1].tend()
        now.value += 2 * HOUR
        for each in keys:
            each.tend()
    tokens = tokens_in((record.value for record in read_topic(kafka_settings, topics.reports)), of)
    assert [len(tokens[header(of, period)]) for period in range(PERIODS)] == [len(PEOPLE)] * PERIODS
    assert named(files_in(tmp_path), tokens) == 0
    assert named(kept, tokens) == len(PEOPLE) * PERIODS
