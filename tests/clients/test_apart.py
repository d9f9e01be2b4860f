"""Reports of a device are sent apart: neither their times nor their order say that they are of one device."""

import heapq
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from hearsay_device import DeviceError
from hearsay_device.draws import Draws
from tests.clients.libraries import Clock, Opening, open_device
from tests.clients.test_device import ANYTHING, REFUSING, TERMS, Days, periods, refused
from tests.clients.test_device import clock as clock  # a fixture
from tests.clients.test_device import opened as opened  # a fixture
from tests.helpers.loopback import TAKEN, Running, answering, gateway
from tests.helpers.surveys import of_size, scheme_with, sets_of

DAY = 86_400.0
HEAD = 10.0
LONG = scheme_with(of_size(4, mechanism="grr"), eps=1, grace="36h", horizon=4)


@pytest.fixture
def apart(opened: Opening) -> Callable[..., Any]:
    """Sends with a device, apart, as to a gateway elsewhere."""

    def send(running: Running, **options: Any) -> Any:
        return opened().send(running.address, "test", {"a": 1}, apart=True, **options)

    return send


def test_a_gateway_on_this_machine_gets_the_report_at_once_and_any_other_later(
    apart: Callable[..., Any], opened: Opening, clock: Days
) -> None:
    with gateway(TERMS) as running:
        sent = apart(running)
        assert (sent.status, running.posted) == ("owed", [])
        assert opened().send(running.address, "test", {"a": 1}).status == "reported"
    assert clock.waited == []


def test_a_report_is_due_ten_seconds_from_now_or_later_and_before_half_of_the_grace(
    tmp_path: Path, library: str
) -> None:
    """Uniform: of 40 devices, the mean of what is drawn is near a half."""
    shares = []
    with gateway(answering(200, LONG.terms)) as running:
        for number in range(40):
            clock = Days()
            with open_device(library, tmp_path / str(number), clock, ANYTHING, f"due {number}") as device:
                sent = device.send(running.address, "test", {"a": 1}, apart=True)
            earliest = clock() + HEAD
            latest = clock() + DAY / 2 + 18 * 3600  # the end of the day, and half of the grace
            shares.append((sent.again_at - earliest) / (latest - earliest))
    assert 0 <= min(shares) < 0.2 and 0.8 < max(shares) <= 1
    assert np.mean(shares) == pytest.approx(0.5, abs=0.2)


@pytest.mark.parametrize(("spread", "earliest", "latest"), [(60, 10, 60), (5, 0, 5), (0, 0, 0)])
def test_an_app_that_does_not_run_for_long_says_how_long(
    apart: Callable[..., Any], clock: Days, spread: float, earliest: float, latest: float
) -> None:
    with gateway(TERMS) as running:
        sent = apart(running, spread=spread)
        if spread == 0:
            assert sent.status == "reported"
            return
        assert sent.status == "owed"
        assert earliest <= sent.again_at - clock() <= latest
        sent = apart(running, spread=spread, wait=60)
    assert sent.status == "reported"
    assert len(clock.waited) == 1 and earliest <= clock.waited[0] <= latest


def test_a_call_waits_only_as_long_as_it_may(apart: Callable[..., Any], clock: Days) -> None:
    with gateway(TERMS) as running:
        due = apart(running).again_at - clock()
        assert apart(running, wait=due - 1).status == "owed"
        assert clock.waited == []
        assert apart(running, wait=due + 1).status == "reported"
    assert clock.waited == [pytest.approx(due)]


def test_one_call_sends_one_report_and_the_others_that_are_due_are_drawn_anew(
    apart: Callable[..., Any], opened: Opening, clock: Days
) -> None:
    """Three reports are overdue when a device is switched on. Sent in a row, they would be linked."""
    patient = scheme_with(of_size(4, mechanism="grr"), eps=1, grace="10d")
    with gateway(answering(200, patient.terms)) as running:
        opened().join(patient.terms, trust_first_use=True)
        for clock.day in range(3):
            opened().settle("test", {"a": 1})
        clock.day = 8
        for _ in range(3):
            again_at = apart(running).again_at
            assert periods(running.posted) == [0]
            assert again_at > clock()
        posted = [1]
        while again_at is not None:
            clock.day += (again_at - clock()) / DAY + 1e-6
            again_at = apart(running).again_at
            posted.append(len(running.posted))
    assert set(np.diff(posted)) <= {0, 1}, "a call sent more than one"
    assert {0, 1, 2, 8} <= set(periods(running.posted))


def test_a_failed_attempt_is_drawn_anew_until_the_grace_is_over(
    apart: Callable[..., Any], clock: Days, tmp_path: Path, library: str
) -> None:
    with gateway(answering(200, LONG.terms), REFUSING) as running:
        with refused("gateway") as failed:
            apart(running, spread=0)
        again_at = failed.value.again_at
        assert again_at == clock()  # of no seconds
        with refused("gateway") as failed:
            apart(running)
    again_at = failed.value.again_at
    assert again_at is not None and clock() < again_at <= clock() + DAY / 2 + 36 * 3600
    assert len(set(running.posted)) == 1 and len(running.posted) == 2


# A gateway watches 30 devices report on two days, and pairs the reports by their times.
DEVICES = 30
OUTAGE_ENDS = 1.4 * DAY
START = 1_767_225_600.0  # 2026-01-01


def arrivals(library: str, folder: Path, apart: bool, outage: bool) -> np.ndarray[Any, Any]:
    """When the reports of two periods arrived, of each device; times of one device are in one row.

    Each device calls at the same time of every day, and at `again_at`. Until an outage is over, no
    report is taken. Without `apart`, all that is owed is sent in the call: today's way, as a control.
    """
    dice = Random(f"{library} {apart} {outage}")
    own = [dice.uniform(0, DAY / 2) for _ in range(DEVICES)]
    clock = Clock(START)
    times = np.full((DEVICES, 2), np.nan)
    calls = [(START + day * DAY + own[device], device) for device in range(DEVICES) for day in range(4)]
    heapq.heapify(calls)
    sending = 0

    def post(request: BaseHTTPRequestHandler) -> None:
        if outage and clock() < START + OUTAGE_ENDS:
            REFUSING(request)
            return
        period = periods(running.posted)[-1]
        if period < 2:
            times[sending, period] = clock() + len(running.posted) / 1000  # the order within a call
        TAKEN(request)

    with gateway(answering(200, LONG.terms), post) as running:
        devices = [
            open_device(library, folder / str(number), clock, ANYTHING, f"{number} {apart} {outage}")
            for number in range(DEVICES)
        ]
        while calls and np.isnan(times).any():
            clock.seconds, sending = heapq.heappop(calls)
            again_at = called(devices[sending], running, apart)
            if apart and again_at is not None:
                heapq.heappush(calls, (max(again_at, clock() + 1), sending))
        for device in devices:
            device.close()
    return times


def called(device: Any, running: Running, apart: bool) -> float | None:
    try:
        again_at: float | None = device.send(running.address, "test", {"a": 1}, apart=apart).again_at
    except DeviceError as error:
        assert error.code == "gateway"
        return error.again_at
    return again_at


def linked(times: np.ndarray[Any, Any]) -> int:
    """How many devices whoever pairs reports by their times finds, by the best of several ways."""
    first, second = times[~np.isnan(times).any(axis=1)].T
    found = []
    for turned in range(len(first)):
        order = np.roll(np.argsort(first % DAY), turned)  # by the time of day
        found.append(int((order == np.argsort(second % DAY)).sum()))
    found.append(int((np.argsort(first) == np.argsort(second)).sum()))
    follows = np.array([np.argmin(np.where(second > time, second - time, np.inf)) for time in first])
    found.append(int((follows == np.arange(len(first))).sum()))  # the next one that arrives
    return max(found)


def lucky(seed: int) -> int:
    """The same of times that are independent."""
    dice = np.random.default_rng(seed)
    return linked(dice.uniform(0, 2, (DEVICES, 2)) * DAY)


@pytest.mark.parametrize("outage", [False, True], ids=["no outage", "after an outage"])
def test_arrival_times_link_reports_of_a_device_no_better_than_luck(tmp_path: Path, library: str, outage: bool) -> None:
    luck = [lucky(seed) for seed in range(200)]
    assert 2 < np.mean(luck) < 6 and max(luck) <= 8
    (tmp_path / "apart").mkdir()
    times = arrivals(library, tmp_path / "apart", True, outage)
    assert np.isnan(times).sum() <= DEVICES / 3  # of one who draws the last minutes, a report is lost
    assert linked(times) <= max(luck)


def test_the_way_of_release_0_2_links_nearly_all_of_them(tmp_path: Path) -> None:
    """The control: what is owed is sent at once, one report after the other."""
    for outage in (False, True):
        folder = tmp_path / str(outage)
        folder.mkdir()
        assert linked(arrivals("python", folder, False, outage)) > DEVICES * 0.8


# Work: the moment of a report is drawn from the moment of the call.
@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many blocks of random bits a device drew, by request."""
    drawn: list[int] = []
    real = Draws._blocks

    def counted(draws: Draws, kind: int, first: int, count: int) -> bytes:
        drawn.append(count)
        return real(draws, kind, first, count)

    monkeypatch.setattr(Draws, "_blocks", counted)
    yield drawn


@pytest.mark.parametrize("mechanism", ["grr", "oue"])
def test_a_large_set_is_as_much_work_as_a_small_one(tmp_path: Path, blocks: list[int], mechanism: str) -> None:
    scheme = scheme_with({**sets_of(200, 4), "mechanism": mechanism}, eps=1)
    values = scheme.survey.attributes[0].values
    work = []
    with open_device("python", tmp_path / "device", Days(), ANYTHING, "work") as device:
        device.join(scheme.terms, trust_first_use=True)
        for given in ([], values[:1], values[:4], values):
            blocks.clear()
            device.preview("test", {"a": list(given)})
            work.append(sum(blocks))
    assert len(set(work)) == 1 and work[0] > 200


BUDGETS = {"grr": {"eps": 1}, "dbitflip": {"eps_inf": 2}}


@pytest.mark.parametrize("mechanism", ["grr", "l-grr", "loloha", "dbitflip"])
def test_a_value_that_is_not_listed_is_as_much_work_as_one_that_is(
    tmp_path: Path, blocks: list[int], mechanism: str
) -> None:
    budgets = BUDGETS.get(mechanism, {"eps_inf": 2, "eps_1": 1})
    more = {"parameter": 3} if mechanism == "dbitflip" else {}
    scheme = scheme_with(of_size(40, mechanism=mechanism, **more), **budgets)
    work = []
    with open_device("python", tmp_path / "device", Days(), ANYTHING, "work") as device:
        device.join(scheme.terms, trust_first_use=True)
        for given in (0, 39, None, "unlisted"):
            blocks.clear()
            device.preview("test", {"a": given})
            work.append(sum(blocks))
    assert len(set(work)) == 1 and work[0] >= 3


def test_a_report_is_due_by_the_moment_of_the_call_however_long_settling_takes(tmp_path: Path) -> None:
    """Drawn after the work, the earliest moments tell a small set from a large one."""
    dues = []
    for seconds in (0.0, 9.0):
        clock = Clock(START)
        with open_device("python", tmp_path / str(seconds), clock, ANYTHING, "slow") as device:
            device.join(LONG.terms, trust_first_use=True)
            entropy = device._state._entropy
            device._state._entropy = partial(slow, clock, seconds, entropy)
            with gateway(TERMS) as running:
                dues.append(device.send(running.address, "test", {"a": 1}, apart=True).again_at)
    assert dues[0] == dues[1]


def slow(clock: Clock, seconds: float, entropy: Callable[[str], bytes], name: str) -> bytes:
    if name.startswith("period "):
        clock.seconds += seconds
    return entropy(name)
