"""The device for one person's machine: what it settles, sends, charges and refuses."""

import json
import shutil
import sqlite3
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

import hearsay
from hearsay_device import Device, DeviceError, Limits, Recorder
from protocols.scheme import Scheme
from protocols.wire import Frame, decode_report
from servers.ports import free_port
from tests.clients.cases import ANY
from tests.clients.libraries import Clock, Opening, open_device, stored
from tests.helpers.certificates import Authority
from tests.helpers.loopback import TAKEN, Handle, answering, gateway, served
from tests.helpers.surveys import of_size, scheme_with

CAPPED = scheme_with(of_size(9), eps_inf=2, eps_1=1, memo_cap=2, horizon=4)
ONCE = scheme_with(of_size(4, mechanism="grr"), eps=1, grace="1h")
TWICE = scheme_with(of_size(4, mechanism="l-grr"), eps_inf=2, eps_1=1, grace="1h")
TERMS = answering(200, CAPPED.terms)
NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)  # noqa: UP017
REFUSING = answering(503)
ANYTHING = Limits(**ANY)


class Days(Clock):
    """Noon of a day, or whatever is set; waiting takes no time."""

    day: float = 0.0

    def __call__(self) -> float:
        return (NOON + timedelta(days=self.day)).timestamp()

    def wait(self, seconds: float) -> None:
        self.waited.append(seconds)


@pytest.fixture
def clock() -> Days:
    return Days()


@pytest.fixture
def opened(tmp_path: Path, clock: Days, library: str) -> Iterator[Opening]:
    """Opens devices of a library over one file, and closes them."""
    devices: list[Any] = []

    def opening(name: str = "device", limits: Limits = ANYTHING) -> Any:
        devices.append(open_device(library, tmp_path / name, clock, limits))
        return devices[-1]

    yield opening
    for device in devices:
        device.close()


def refused(code: str) -> Any:
    return pytest.raises(DeviceError, check=lambda error: error.code == code)


def reasoned(reason: str) -> Handle:
    return answering(422, json.dumps({"reason": reason}).encode())


def periods(posted: list[bytes]) -> list[int]:
    return [int(json.loads(report)["period"], 16) for report in posted]


def gap_of(report: bytes) -> int:
    frame = decode_report(report, {"test": CAPPED}.get)
    assert isinstance(frame, Frame), frame
    return int(frame.gaps[0])


def test_it_is_the_class_of_hearsay() -> None:
    assert hearsay.Device is Device and hearsay.Limits is Limits
    assert issubclass(DeviceError, hearsay.HearsayError)


def test_a_report_is_the_same_for_the_rest_of_its_period(opened: Opening) -> None:
    device = opened()
    device.join(CAPPED.terms, pin=CAPPED.fingerprint)
    first = device.settle("test", {"a": 1})
    assert not first.example
    assert first == device.settle("test", {"a": 7}) == device.preview("test", {"a": 7})
    assert opened().settle("test", {"a": 3}) == first
    assert device.owed("test") == [first]
    assert list(first.says) == ["a"] and len(first.says["a"]) == 1


def test_a_preview_is_an_example_of_a_report_that_is_not_settled_and_stores_nothing(opened: Opening) -> None:
    device = opened()
    device.join(CAPPED.terms, pin=CAPPED.fingerprint)
    before = device.explain()
    shown = [device.preview("test", {"a": value}) for value in (*range(9), 0)]
    assert all(report.example for report in shown)
    assert len({report.report for report in shown}) == len(shown)  # each has a key of its own
    assert device.explain() == before and device.owed("test") == []
    assert device.settle("test", {"a": 5}).report not in [report.report for report in shown]


def test_settling_does_not_wait_for_delivery_and_gaps_count_what_was_settled(opened: Opening, clock: Days) -> None:
    device, gaps = opened(), []
    device.join(CAPPED.terms, pin=CAPPED.fingerprint)
    for clock.day in (0, 1, 2, 9):
        gaps.append(gap_of(device.settle("test", {"a": 1}).report))
    assert gaps == [4, 1, 1, 4]
    for clock.day in (9, 8):
        device.confirm("test", 9)
        with refused("reported"):
            device.settle("test", {"a": 1})


def test_owed_reports_are_sent_oldest_first_as_they_were_until_their_grace_is_over(
    opened: Opening, clock: Days
) -> None:
    status: list[Handle] = [REFUSING]
    with gateway(answering(200, ONCE.terms), lambda request: status[0](request)) as running:
        with refused("gateway"):
            opened().send(running.address, "test", {"a": 1})
        clock.day = 12.5 / 24  # half an hour after midnight, within grace
        with refused("gateway"):
            opened().send(running.address, "test", {"a": 1})
        assert periods(running.posted) == [0, 0]
        status[0] = TAKEN
        assert opened().send(running.address, "test", {"a": 3}).period == 1
        assert periods(running.posted) == [0, 0, 0, 1] and len(set(running.posted)) == 2
        status[0], clock.day = REFUSING, 2
        with refused("gateway"):
            opened().send(running.address, "test", {"a": 1})
        status[0], clock.day = TAKEN, 5
        sent = opened().send(running.address, "test", {"a": 1})
    assert (sent.status, sent.dropped) == ("reported", (2,))
    assert periods(running.posted)[4:] == [2, 5]


def test_a_gateway_that_says_late_or_early_gets_the_same_bytes_again(opened: Opening, clock: Days) -> None:
    """It may be a lie, or a clock. That a period has not begun is no error: by this clock it has."""
    answers = iter([reasoned("late"), reasoned("too-far-ahead"), REFUSING, TAKEN])
    with gateway(TERMS, lambda request: next(answers)(request)) as running:
        with refused("late"):
            opened().send(running.address, "test", {"a": 1})
        early = opened().send(running.address, "test", {"a": 1})
        with refused("gateway") as failed:
            opened().send(running.address, "test", {"a": 1})
        sent = opened().send(running.address, "test", {"a": 1})
    assert (early.status, early.doubt) == ("owed", "clock") and early.again_at is not None
    assert failed.value.again_at is not None and failed.value.again_at > clock()
    assert (sent.status, sent.doubt, sent.again_at) == ("reported", None, None)
    assert len(running.posted) == 4 and len(set(running.posted)) == 1


def test_a_repeat_is_delivered(opened: Opening) -> None:
    with gateway(TERMS, reasoned("repeat")) as running:
        sent = opened().send(running.address, "test", {"a": 1})
    assert (sent.status, sent.again_at) == ("reported", None)


def test_what_was_dropped_is_told_by_the_next_call_that_succeeds(opened: Opening, clock: Days) -> None:
    status: list[Handle] = [REFUSING]
    with gateway(answering(200, ONCE.terms), lambda request: status[0](request)) as running:
        for clock.day in (0, 2):
            with refused("gateway"):
                opened().send(running.address, "test", {"a": 1})
        status[0] = TAKEN
        told = [opened().send(running.address, "test", {"a": 1}).dropped for _ in range(2)]
    assert told == [(0,), ()]


def test_what_is_owed_is_sent_also_if_nothing_more_may_be_settled(opened: Opening, clock: Days) -> None:
    status: list[Handle] = [REFUSING]
    long = scheme_with(of_size(4, mechanism="grr"), eps=1, grace="3d")
    with gateway(answering(200, long.terms), lambda request: status[0](request)) as running:
        device = opened(limits=Limits(year=1.4))
        with refused("gateway"):
            device.send(running.address, "test", {"a": 1})
        status[0], clock.day = TAKEN, 1
        with refused("limit"):
            device.send(running.address, "test", {"a": 1})
    assert periods(running.posted) == [0, 0]


def test_a_device_that_has_left_keeps_what_it_has_spent(opened: Opening, library: str, tmp_path: Path) -> None:
    device = opened(limits=Limits(**{**ANY, "year": 12}))
    device.join(CAPPED.terms, pin=CAPPED.fingerprint)
    device.settle("test", {"a": 1})
    assert device.explain()["year"]["committed"] == pytest.approx(4)
    device.leave("test")
    assert device.explain()["year"]["committed"] == pytest.approx(2)
    with refused("unknown"):
        device.settle("test", {"a": 1})
    left = stored(library, tmp_path / "device")["surveys"]["test"]
    assert (left["terms"], left["owed"]) == (None, [])
    device.join(CAPPED.terms, pin=CAPPED.fingerprint)
    with refused("reported"):
        device.confirm("test", 0)
        device.settle("test", {"a": 1})


def test_terms_are_pinned_or_trusted_and_never_change(opened: Opening) -> None:
    other = scheme_with(of_size(9), eps_inf=2, eps_1=0.9, memo_cap=2)
    device = opened()
    with refused("pin"):
        device.join(CAPPED.terms)
    with refused("pin"):
        device.join(CAPPED.terms, pin=other.fingerprint)
    device.join(CAPPED.terms, trust_first_use=True)
    with refused("changed"):
        device.join(other.terms, pin=other.fingerprint)
    with gateway(TERMS) as running, refused("pin"):
        device.send(running.address, "test", {"a": 1}, pin=other.fingerprint)
    assert running.posted == []


def test_threads_of_one_device_settle_one_report(tmp_path: Path, clock: Days) -> None:
    with Device(tmp_path / "device", now=clock, limits=ANYTHING) as device:
        device.join(CAPPED.terms, pin=CAPPED.fingerprint)

    def settle(value: int) -> bytes:
        with Device(tmp_path / "device", now=clock, limits=ANYTHING) as other:
            return other.settle("test", {"a": value}).report

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(settle, range(4)))) == 1


def test_the_file_of_a_device_is_its_owners_also_if_it_was_not_before(tmp_path: Path, opened: Opening) -> None:
    opened().explain()
    assert (tmp_path / "device").stat().st_mode & 0o777 == 0o600
    (tmp_path / "device").chmod(0o644)
    opened().explain()
    assert (tmp_path / "device").stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_something_else_is_refused(tmp_path: Path, library: str, opened: Opening) -> None:
    (tmp_path / "device").write_text("not a database, but long enough to be looked at as one")
    newer = tmp_path / "newer"
    if library == "javascript":
        newer.write_text('{"format": 9}')
    else:
        base = sqlite3.connect(newer)
        base.execute("create table state (document text)")
        base.execute("""insert into state values ('{"format": 9}')""")
        base.commit()
        base.close()
    for name in ("device", "newer", "no/such/folder"):
        with refused("state"):
            opened(name).explain()


def test_limits_are_finite() -> None:
    for bad in ({"year": float("inf")}, {"value": float("nan")}, {"report": 0.0}, {"shortest": 59}):
        with refused("settings"):
            Limits(**bad)  # type: ignore[arg-type]


def test_what_an_app_may_send_is_compared_with_a_survey_before_it_is_released(opened: Opening) -> None:
    scheme = scheme_with({"name": "dish", "values": ["soup", "salad"]}, of_size(5, "b"), eps=1)
    found = opened().check(scheme.terms, {"dish": ["soup", "Salad", None], "b": [0, 4, 9, "many"], "more": [1]})
    assert found == {"dish": ["Salad", None], "b": ["many"]}
    assert opened().check(scheme.terms, {"dish": ["soup"]}) == {"b": [None]}


@pytest.mark.parametrize(("rule", "value"), [("first", "b"), ("last", "a"), ("most frequent", "a"), ("longest", "b")])
def test_a_recorder_makes_one_value_of_many_events(rule: str, value: str) -> None:
    recorder = Recorder(rule)
    assert recorder.value is None
    for each, seconds in (("b", 9.0), ("a", 2.0), ("c", 1.0), ("a", 3.0)):
        recorder.add(each, seconds)
    again = Recorder(rule, state=json.loads(json.dumps(recorder.state)))
    assert recorder.value == again.value == value
    recorder.clear()
    assert recorder.value is None


def test_a_recorder_counts_in_buckets() -> None:
    recorder = Recorder("count", buckets={"none": 0, "1-9": 1, "10 or more": 10})
    said = [recorder.value]
    for _ in range(10):
        recorder.add()
        said.append(recorder.value)
    assert said == ["none", *["1-9"] * 9, "10 or more"]
    with refused("settings"):
        Recorder("count", buckets={"some": 1})


ADDRESSES = {
    "no address": ("collect.example", "address"),
    "in the clear": ("http://collect.example", "address"),
    "nobody there": (f"http://127.0.0.1:{free_port()}", "unreachable"),
    "no such host": ("https://no-such-host.invalid", "unreachable"),
}


@pytest.mark.parametrize(("address", "code"), ADDRESSES.values(), ids=ADDRESSES)
def test_addresses_that_cannot_be_used_are_told_apart(opened: Opening, address: str, code: str) -> None:
    with refused(code) as caught:
        opened().send(address, "test", {"a": 1}, pin=CAPPED.fingerprint, bearer="secret", timeout=20)
    assert address.rpartition("/")[2] in str(caught.value) and "secret" not in str(caught.value)


def test_a_certificate_that_is_not_trusted_is_told_apart(tmp_path: Path, opened: Opening) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*Authority(tmp_path / "tls").issue("gateway"))
    with (
        served(BaseHTTPRequestHandler, lambda socket: context.wrap_socket(socket, server_side=True)) as address,
        refused("certificate") as caught,
    ):
        opened().send(address.replace("http:", "https:"), "test", {"a": 1}, pin=CAPPED.fingerprint)
    assert address.rpartition("/")[2] in str(caught.value)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_credential_is_not_tried_again_later(opened: Opening, status: int) -> None:
    with gateway(answering(status)) as running, refused("credential") as caught:
        opened().send(running.address, "test", {"a": 1})
    assert "credential refused" in str(caught.value) and running.address in str(caught.value)


@pytest.mark.parametrize("scheme", [ONCE, TWICE], ids=["two truths", "two memos"])
def test_two_copies_of_a_file_do_not_share_noise_over_two_values(
    tmp_path: Path, opened: Opening, clock: Days, scheme: Scheme
) -> None:
    """Under one noise, the difference of two answers would be that of two truths, or of two memos, every day."""
    same = 0
    for number in range(5):
        clock.day = 0
        one = opened(f"one {number}")
        one.join(scheme.terms, trust_first_use=True)
        shutil.copy(tmp_path / f"one {number}", tmp_path / f"other {number}")
        other, differences = opened(f"other {number}"), set()
        for clock.day in range(6):
            first, second = (
                int(json.loads(each.settle("test", {"a": a}).report)["answers"]["a"], 16)
                for each, a in ((one, 1), (other, 3))
            )
            differences.add((second - first) % 4)
        same += len(differences) == 1
    assert same < 3  # of 5; under noise of their own, 0 of 60 pairs in either library
