"""The device for one person's machine: what it settles, sends, holds and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import hearsay
from hearsay.library.device.state import Report
from protocols.errors import DeviceError, SettingsError, StateError
from protocols.wire import Frame, decode_report
from tests.clients.gateways import TAKEN, Handle, answering, gateway
from tests.clients.vectors import ANY
from tests.helpers.surveys import of_size, scheme_with

CAPPED = scheme_with(of_size(9), eps_inf=2, eps_1=1, memo_cap=2, horizon=4)
ONCE = scheme_with(of_size(4, mechanism="grr"), eps=1, grace="1h")
TERMS = answering(200, CAPPED.terms)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
REFUSING = answering(503)


class Clock:
    """Noon of a day, or whatever is set."""

    def __init__(self) -> None:
        self.day = 0.0

    def __call__(self) -> datetime:
        return NOON + timedelta(days=self.day)


@pytest.fixture
def clock() -> Clock:
    return Clock()


Opening = Callable[..., hearsay.Device]


@pytest.fixture
def opened(tmp_path: Path, clock: Clock) -> Iterator[Opening]:
    """Opens devices over one file, and closes them."""
    devices: list[hearsay.Device] = []

    def open_device(name: str = "device.db", **options: Any) -> hearsay.Device:
        devices.append(hearsay.Device(tmp_path / name, now=clock, **{"limits": ANY, **options}))
        return devices[-1]

    yield open_device
    for device in devices:
        device.close()


def refused(code: str) -> Any:
    return pytest.raises(DeviceError, check=lambda error: error.code == code)


def read(report: bytes) -> Any:
    frame = decode_report(report, {"test": CAPPED}.get)
    assert isinstance(frame, Frame), frame
    return frame


def test_a_report_is_the_same_for_the_rest_of_its_period_whatever_the_values(opened: Opening) -> None:
    device = opened()
    device.join(CAPPED.terms)
    shown = device.preview("test", {"a": 1})
    first = device.settle("test", {"a": 1})
    assert shown == first == device.settle("test", {"a": 7}) == device.preview("test", {"a": 7})
    assert opened().settle("test", {"a": 3}) == first
    assert list(first.says) == ["a"] and len(first.says["a"]) == 1


def test_a_person_can_see_a_report_before_anything_is_sent(opened: Opening) -> None:
    with gateway(TERMS) as running:
        device = opened()
        device.join_from(running.address, "test")
        shown = device.preview("test", {"a": 1})
        assert running.posted == []
        device.send(running.address, "test", {"a": 1})
    assert running.posted == [shown.report]


def test_a_preview_stores_nothing(opened: Opening) -> None:
    device = opened()
    device.join(CAPPED.terms)
    shown = {device.preview("test", {"a": value}).report for value in range(9)}
    assert len(shown) > 1
    assert device.settle("test", {"a": 5}).report in shown


def test_a_period_is_reported_once_and_earlier_ones_not_at_all(opened: Opening, clock: Clock) -> None:
    device = opened()
    device.join(CAPPED.terms)
    clock.day = 3
    device.settle("test", {"a": 1})
    device.confirm("test", 3)
    for clock.day in (3, 2):
        with refused("reported"):
            device.settle("test", {"a": 1})


def test_the_gap_counts_from_the_last_report_that_arrived(opened: Opening, clock: Clock) -> None:
    device, gaps = opened(), []
    device.join(CAPPED.terms)
    for clock.day in (0, 1, 2, 9):
        report = device.settle("test", {"a": 1})
        gaps.append(int(read(report.report).gaps[0]))
        if clock.day != 1:  # this one is never confirmed, and late on day 2
            device.confirm("test", report.period)
    assert gaps == [4, 1, 2, 4]


def test_a_device_holds_its_last_memo_from_its_cap_on(opened: Opening, clock: Clock) -> None:
    """The same secret without a history: from the second memo on, a device reports as if it had that value for good."""
    secret = bytes(range(32))
    changing, constant = opened("changing.db", secret=secret), opened("constant.db", secret=secret)
    for device in (changing, constant):
        device.join(CAPPED.terms)
    for day, value in enumerate([1, 2, 3, 1, 4]):
        clock.day = day
        reports = [device.settle("test", {"a": each}) for device, each in ((changing, value), (constant, 2))]
        for device in (changing, constant):
            device.confirm("test", day)
        if day > 0:
            assert reports[0] == reports[1]


def test_an_unconfirmed_report_is_sent_again_as_it_was_also_by_a_later_process(opened: Opening) -> None:
    status: list[Handle] = [REFUSING]
    with gateway(TERMS, lambda request: status[0](request)) as running:
        with refused("gateway"):
            opened().send(running.address, "test", {"a": 1})
        status[0] = TAKEN
        device = opened()
        assert device.send(running.address, "test", {"a": 5}) == 0
        with refused("reported"):
            device.send(running.address, "test", {"a": 5})
    assert len(running.posted) == 2 and running.posted[0] == running.posted[1]


def test_an_unconfirmed_report_is_sent_first_while_its_grace_lasts_and_never_after(
    opened: Opening, clock: Clock
) -> None:
    status: list[Handle] = [REFUSING]
    with gateway(answering(200, ONCE.terms), lambda request: status[0](request)) as running:
        device = opened()
        with refused("gateway"):
            device.send(running.address, "test", {"a": 1})
        clock.day = 12.5 / 24  # half an hour after midnight
        with refused("owed"):
            device.settle("test", {"a": 1})
        status[0] = TAKEN
        device.send(running.address, "test", {"a": 1})
        assert [json.loads(report)["period"] for report in running.posted] == ["00000000", "00000000", "00000001"]
        status[0], clock.day = REFUSING, 2
        with refused("gateway"):
            device.send(running.address, "test", {"a": 1})
        status[0], clock.day = TAKEN, 3
        device.send(running.address, "test", {"a": 1})
        assert [json.loads(report)["period"] for report in running.posted[3:]] == ["00000002", "00000003"]


@pytest.mark.parametrize(("reason", "code"), [("repeat", None), ("late", "late")])
def test_what_a_collector_has_it_has_and_what_is_late_it_does_not_get_again(
    opened: Opening, reason: str, code: str | None
) -> None:
    with gateway(TERMS, answering(409, json.dumps({"reason": reason}).encode())) as running:
        device = opened()
        if code is None:
            device.send(running.address, "test", {"a": 1})
        else:
            with refused(code):
                device.send(running.address, "test", {"a": 1})
        with refused("reported"):
            device.send(running.address, "test", {"a": 1})
    assert len(running.posted) == 1


def test_a_report_whose_period_was_closed_before_it_was_sent_is_an_error_and_never_sent(
    opened: Opening, clock: Clock
) -> None:
    class Slow(dict[str, int]):
        def __getitem__(self, name: str) -> int:
            clock.day = 2  # what follows takes two days
            return super().__getitem__(name)

    with gateway(TERMS) as running:
        device = opened()
        with refused("late"):
            device.send(running.address, "test", Slow(a=1))
        assert running.posted == []
        assert device.send(running.address, "test", {"a": 1}) == 2
    assert len(running.posted) == 1


def test_a_report_that_another_process_of_the_device_delivered_meanwhile_is_reported(
    opened: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gateway(TERMS) as running:
        device, other = opened(), opened()
        settle = device.settle

        def settle_and_wait(survey: str, values: dict[str, int]) -> Report:
            settled = settle(survey, values)
            other.send(running.address, "test", {"a": 1})
            return settled

        monkeypatch.setattr(device, "settle", settle_and_wait)
        assert device.send(running.address, "test", {"a": 1}) == 0
    assert len(running.posted) == 1


@pytest.mark.parametrize("values", [{}, {"a": "very personal"}])
def test_values_that_the_survey_does_not_have_are_refused_and_not_repeated(
    opened: Opening, values: dict[str, str]
) -> None:
    device = opened()
    device.join(CAPPED.terms)
    with refused("value") as caught:
        device.settle("test", values)
    assert "personal" not in str(caught.value)


def test_a_survey_that_has_not_begun_or_was_not_joined_is_not_answered(opened: Opening, clock: Clock) -> None:
    device = opened()
    clock.day = -1
    with refused("unknown"):
        device.settle("test", {"a": 1})
    device.join(CAPPED.terms)
    with refused("early"):
        device.settle("test", {"a": 1})


@pytest.mark.parametrize("limits", [{"report": 0.9}, {"life": 3.9}, {"total": 3.9}])
def test_terms_beyond_a_limit_are_refused(opened: Opening, limits: dict[str, float]) -> None:
    device = opened(limits=hearsay.Limits(**limits))
    with refused("limit"):
        device.join(CAPPED.terms)
    with refused("unknown"):
        device.settle("test", {"a": 1})


def test_limits_are_finite_by_default_and_always(opened: Opening) -> None:
    with refused("limit"):
        opened(limits=None).join(scheme_with(of_size(300), eps_inf=2, eps_1=1).terms)
    for bad in (float("inf"), float("nan"), 0.0):
        with pytest.raises(SettingsError, match="finite"):
            hearsay.Limits(total=bad)


def test_what_other_surveys_may_reveal_counts_too(opened: Opening) -> None:
    other = scheme_with(of_size(9), eps_inf=2, eps_1=1, memo_cap=2, id="other")
    device = opened(limits=hearsay.Limits(report=1, life=4, total=7.9))
    device.join(CAPPED.terms)
    device.join(CAPPED.terms)
    with refused("limit"):
        device.join(other.terms)
    assert opened(limits=hearsay.Limits(total=8)).join(other.terms) == "other"


def test_answers_without_memos_add_up_until_a_limit_is_reached(opened: Opening, clock: Clock) -> None:
    device = opened(limits=hearsay.Limits(life=2))
    device.join(ONCE.terms)
    for clock.day in (0, 2):
        device.settle("test", {"a": 1})
    clock.day = 4
    for _ in range(2):
        with refused("limit"):
            device.settle("test", {"a": 1})


def test_processes_of_one_device_settle_one_report(tmp_path: Path, clock: Clock) -> None:
    with closing(hearsay.Device(tmp_path / "device.db", now=clock, limits=ANY)) as device:
        device.join(CAPPED.terms)

    def settle(value: int) -> bytes:
        with closing(hearsay.Device(tmp_path / "device.db", now=clock, limits=ANY)) as other:
            return other.settle("test", {"a": value}).report

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(settle, range(4)))) == 1


def test_the_file_of_a_device_is_its_owners_and_has_a_secret_of_its_own(tmp_path: Path, opened: Opening) -> None:
    reports = []
    for name in ("one.db", "other.db"):
        device = opened(name)
        device.join(CAPPED.terms)
        reports.append(json.loads(device.settle("test", {"a": 1}).report)["token"])
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert reports[0] != reports[1]


def test_a_file_that_is_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "device.db").write_text("not a database, but long enough to be looked at as one")
    with pytest.raises(StateError, match="cannot be used"):
        hearsay.Device(tmp_path / "device.db")
