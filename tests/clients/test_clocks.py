"""Clocks that are wrong, gateways that lie about them, and limits that a moved clock does not renew."""

import json
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from hearsay_device import DeviceError, Limits
from hearsay_device.clock import born, day_of, live
from tests.clients.cases import ANY
from tests.clients.libraries import Clock, Opening, open_device, stored
from tests.clients.test_device import ANYTHING, REFUSING, Days, periods, reasoned, refused
from tests.clients.test_device import clock as clock  # a fixture
from tests.clients.test_device import opened as opened  # a fixture
from tests.helpers.loopback import TAKEN, answering, gateway
from tests.helpers.surveys import of_size, scheme_with

DAY = 86_400.0
SEEN = scheme_with(of_size(4, mechanism="grr"), eps=1, grace="30d", horizon=31)
FEW = scheme_with(of_size(4, mechanism="grr"), eps=1)  # each answer costs 1
AHEAD = reasoned("too-far-ahead")


def gaps(posted: list[bytes]) -> dict[int, int]:
    found = {}
    for report in map(json.loads, posted):
        found[int(report["period"], 16)] = int(report["gap"], 16)
    return found


def test_nine_days_of_lies_about_the_clock_change_no_gap_and_make_no_second_report(
    opened: Opening, clock: Days
) -> None:
    """Release 0.2 believed it: then the next gap was 10 where everybody's is 1, and days had five reports."""
    taken: list[bytes] = []

    def post(request: BaseHTTPRequestHandler) -> None:
        lies = 1 <= clock.day <= 9
        if not lies:
            taken.append(running.posted[-1])
        (AHEAD if lies else TAKEN)(request)

    with gateway(answering(200, SEEN.terms), post) as running:
        device = opened()
        for clock.day in range(12):
            for _ in range(5 if 1 <= clock.day <= 9 else 1):
                sent = device.send(running.address, "test", {"a": 1})
                assert sent.doubt == ("clock" if 1 <= clock.day <= 9 else None)
                with refused("clock"):
                    device.forget_clock("test")
    assert periods(taken) == list(range(12))  # all nine are sent when the lies end
    assert gaps(taken) == {0: 31, **dict.fromkeys(range(1, 12), 1)}
    assert len(set(running.posted)) == 12, "a period has two reports"


def test_a_clock_that_was_ahead_and_is_set_right_is_forgotten(opened: Opening, clock: Days) -> None:
    """What has not begun is dropped, and the next gap counts from the last report that has."""
    with gateway(answering(200, SEEN.terms), lambda request: (TAKEN if clock.day < 40 else AHEAD)(request)) as running:
        device = opened()
        device.send(running.address, "test", {"a": 1})
        clock.day = 45
        assert device.send(running.address, "test", {"a": 1}).doubt == "clock"
        clock.day = 6
        wrong = device.send(running.address, "test", {"a": 1})
        assert (wrong.status, wrong.period, wrong.again_at) == ("owed", 45, None)
        device.forget_clock("test")
        assert device.owed("test") == []
        assert device.send(running.address, "test", {"a": 1}).status == "reported"
    assert periods(running.posted) == [0, 45, 6]
    assert gaps(running.posted)[6] == 6


@pytest.mark.parametrize("options", [{}, {"apart": True, "spread": 0}], ids=["at once", "apart"])
def test_a_period_whose_report_was_attempted_by_a_wrong_clock_is_not_answered_again(
    opened: Opening, clock: Days, options: dict[str, Any]
) -> None:
    taken: list[bytes] = []

    def post(request: BaseHTTPRequestHandler) -> None:
        taken.append(running.posted[-1])
        (AHEAD if wrong else TAKEN)(request)

    with gateway(answering(200, SEEN.terms), post) as running:
        device = opened()
        wrong = False
        device.send(running.address, "test", {"a": 1}, **options)
        clock.day, wrong = 8, True
        device.send(running.address, "test", {"a": 1}, **options)
        clock.day, wrong = 5, False
        device.forget_clock("test")
        for clock.day in range(5, 11):
            sent = device.send(running.address, "test", {"a": 1}, **options)
            assert sent.status == ("already reported" if clock.day == 8 else "reported")
    assert periods(taken) == [0, 8, 5, 6, 7, 9, 10]
    assert gaps(taken) | {8: 8} == {0: 31, 5: 5, 6: 1, 7: 1, 8: 8, 9: 2, 10: 1}


def test_a_period_that_was_settled_by_a_wrong_clock_and_never_sent_is_answered_when_it_comes(
    opened: Opening, clock: Days
) -> None:
    with gateway(answering(200, SEEN.terms)) as running:
        device = opened()
        device.send(running.address, "test", {"a": 1})
        clock.day = 8
        assert device.send(running.address, "test", {"a": 1}, apart=True).status == "owed"
        clock.day = 5
        device.forget_clock("test")
        for clock.day in (7, 8):
            device.send(running.address, "test", {"a": 1})
    assert gaps(running.posted) == {0: 31, 7: 7, 8: 1}


def test_a_report_that_a_program_was_given_counts_as_sent(opened: Opening, clock: Days) -> None:
    device = opened()
    device.join(SEEN.terms, trust_first_use=True)
    clock.day = 8
    device.settle("test", {"a": 1})  # the program may send it
    clock.day = 5
    device.forget_clock("test")
    clock.day = 8
    with refused("reported"):
        device.settle("test", {"a": 1})


def test_forgetting_the_clock_is_refused_where_all_periods_have_begun(opened: Opening, clock: Days) -> None:
    with gateway(answering(200, SEEN.terms), REFUSING) as running, suppress(DeviceError):
        opened().send(running.address, "test", {"a": 1})
    with refused("clock") as caught:
        opened().forget_clock("test")
    said = "by this clock these periods have begun: set the clock first, or the gateway is wrong"
    assert said in str(caught.value)
    assert len(opened().owed("test")) == 1


def given(library: str, path: Path, moments: list[tuple[float, float, str]]) -> int:
    """How many answers a device gives under a limit of three a year.

    Of each moment: the time, for how long the machine has run, and the name of its start.
    """
    clock = Clock(moments[0][0], running=moments[0][1], start=moments[0][2])
    limits = Limits(**{**ANY, "year": 4.1})  # one survey gets three quarters of it
    answers = 0
    with open_device(library, path, clock, limits) as device:
        device.join(FEW.terms, trust_first_use=True)
        for clock.seconds, clock.running, clock.start in moments:
            with suppress(DeviceError):
                device.settle("test", {"a": 1})
                answers += 1
        assert device.explain()["answers"] == answers, "the total of all answers ever"
    return answers


BEGIN = 1_767_268_800.0


def test_forty_jumps_of_the_clock_renew_no_limit(tmp_path: Path, library: str) -> None:
    """Release 0.2 gave 40 answers."""
    jumps = [(BEGIN + 366 * DAY * number, 1000 + 10 * number, "one") for number in range(40)]
    assert given(library, tmp_path / "running", jumps) == 3
    starts = [(BEGIN + 366 * DAY * number, 50.0, str(number)) for number in range(40)]
    assert given(library, tmp_path / "started before each", starts) == 3


def test_a_machine_that_runs_renews_its_limits_after_a_year(tmp_path: Path, library: str) -> None:
    honest = [(BEGIN + 122 * DAY * number, 122 * DAY * number, "one") for number in range(9)]
    assert given(library, tmp_path / "device", honest) == 9


def days_lived(calls: list[tuple[float, float, str]]) -> int:
    """Of calls at a day, with a machine that has run for days since its start."""
    first_day, first_running, start = calls[0]
    lived = born(first_day * DAY, (start, first_running * DAY))
    for day, running, start in calls:
        live(lived, day * DAY, (start, running * DAY))
    return day_of(lived) - int(first_day)


def test_days_are_lived_by_honest_machines_however_they_are_started() -> None:
    year = range(366)
    always = [(float(day), float(day), "one") for day in year]
    weekly = [(float(day), float(day % 7), str(day // 7)) for day in year]
    nightly = [(float(day), 0.04, str(day)) for day in year]
    assert days_lived(always) == days_lived(weekly) == days_lived(nightly) == 365


def test_months_in_which_a_machine_is_off_are_not_lived() -> None:
    """Limits are renewed later then, never earlier."""
    calls = [(float(day), 0.04, str(day)) for day in range(366) if day % 90 < 60]
    assert 200 < days_lived(calls) < 260


def test_a_clock_that_goes_back_and_forth_lives_no_more_than_the_machine_runs() -> None:
    calls = [(100 + day - 40.0 * (day % 2), float(day), "one") for day in range(200)]
    assert days_lived(calls) <= 200


def test_a_call_in_a_period_that_is_reported_counts_the_days(tmp_path: Path) -> None:
    """Otherwise a weekly survey on a machine that is started daily would live a day a week."""
    weekly = scheme_with(of_size(4, mechanism="grr"), eps=1, period="1w")
    clock = Clock(BEGIN)
    with gateway(answering(200, weekly.terms)) as running:
        for day in range(22):
            clock.seconds, clock.running, clock.start = BEGIN + day * DAY, 60.0, str(day)
            with open_device("python", tmp_path / "device", clock, ANYTHING) as device:
                device.send(running.address, "test", {"a": 1})
    lived: dict[str, Any] = stored("python", tmp_path / "device")["lived"]
    assert day_of(lived) - int(BEGIN // DAY) == 21
