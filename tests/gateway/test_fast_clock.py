"""When reports of a gateway leave, and when periods are closed."""

from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gateway.service import Holder, Senders
from stream_app.local import LocalStore
from tests.gateway.clients import bearer, credentials
from tests.gateway.world import NOON, SCHEME, KeepingLog, Moment, embedded, key_of, report, scheme, serving
from tests.helpers.eventually import eventually
from views.reading import Results

DAY, MONTH = 86_400.0, 30 * 86_400.0
AUTUMN = ("2026-10-24T00:00:00+02:00", "2026-10-26T00:00:00+01:00", 3600)


def finals(directory: Path) -> list[tuple[int, int]]:
    with closing(LocalStore.existing(directory)) as store:
        return [(final.period, final.n) for final in Results(store).histograms("buttons")]


def test_a_clock_that_jumps_ahead_closes_nothing_and_refuses_nothing_while_reports_say_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Failure would look like: the reports of a month are late, for ever."""
    now, elapsed = Moment(), Moment(0)
    with embedded(tmp_path, now, elapsed=elapsed) as log, serving(log, now=now) as gateway:
        assert gateway.post_one(report()).status == 201
        now.value += MONTH
        eventually(lambda: "far ahead of the reports" in capsys.readouterr().out + caplog.text)
        assert [gateway.post_one(report()).status for _ in range(3)] == [201] * 3
        assert log.times.closed_through("buttons") == -1
    for _ in range(2):  # nor does a process that starts with such a clock
        with embedded(tmp_path, now, elapsed=elapsed) as log, serving(log, now=now) as gateway:
            assert gateway.post_one(report()).status == 201
            assert log.times.closed_through("buttons") == -1
    now.value = NOON + DAY
    with embedded(tmp_path, now) as log, serving(log, now=now) as gateway:
        eventually(lambda: finals(tmp_path) == [(0, 6)])
        assert gateway.post_one(report()).reason == "late"
        assert gateway.post_one(report(of_period=1)).status == 201


def test_a_survey_that_nobody_reports_to_is_closed_by_the_clock(tmp_path: Path) -> None:
    now, elapsed = Moment(), Moment(0)
    with embedded(tmp_path, now, elapsed=elapsed) as log, serving(log, now=now) as gateway:
        assert gateway.post_one(report()).status == 201
        now.value = NOON + 5 * DAY
        elapsed.value = DAY
        assert gateway.post_one(report()).status == 201
        assert log.times.closed_through("buttons") == -1, "the last reports show that the clock is wrong"
        elapsed.value = 3 * DAY + 1
        eventually(lambda: log.times.closed_through("buttons") == 4)
        eventually(lambda: finals(tmp_path) != [])


def test_a_survey_that_is_started_late_and_one_that_was_stopped_for_long_go_on_with_the_first_report(
    tmp_path: Path,
) -> None:
    now = Moment(NOON + 20 * DAY)
    with embedded(tmp_path, now) as log, serving(log, now=now) as gateway:
        assert log.times.closed_through("buttons") == 19
        assert gateway.post_one(report(of_period=20)).status == 201
    now.value += 40 * DAY
    with embedded(tmp_path, now) as log, serving(log, now=now) as gateway:
        assert log.times.closed_through("buttons") == 19
        assert [gateway.post_one(report(of_period=60)).status for _ in range(2)] == [201] * 2
        assert log.times.closed_through("buttons") == 59
        now.value += DAY
        eventually(lambda: (60, 2) in finals(tmp_path))
    assert finals(tmp_path)[0] == (20, 1)


# Midnight before the day before clocks change, midnight after the day of the change, and how much longer it is.
SPRING = ("2026-03-28T00:00:00+01:00", "2026-03-30T00:00:00+02:00", -3600)


def seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


@pytest.mark.parametrize(("start", "end", "longer"), [SPRING, AUTUMN], ids=["23 hours", "25 hours"])
def test_a_local_day_is_closed_at_its_own_end_and_not_after_24_hours(
    start: str, end: str, longer: int, tmp_path: Path
) -> None:
    """Failure would look like: reports of its last hour refused as late, or its result an hour after its end."""
    paris = scheme("time_zone: Europe/Paris,", start=start)
    grace = paris.survey.grace.total_seconds()
    assert seconds(end) - seconds(start) == 2 * 86400 + longer
    now = Moment(seconds(end) + grace - 2)
    with embedded(tmp_path, now, paris.survey) as log, serving(log, [paris], now) as gateway:
        store = LocalStore.existing(tmp_path)
        answers = [gateway.post_one(report(paris, period)).status for period in (0, 1, 1, 2)]
        assert answers == [422, 201, 201, 201], "the first day is closed, the second one is still in its grace"
        assert Results(store).histograms(paris.survey.id) == []
        now.value = seconds(end) + grace
        eventually(lambda: Results(store).histograms(paris.survey.id) != [])
        assert gateway.post_one(report(paris, 1)).reason == "late"
        assert [(final.period, final.n) for final in Results(store).histograms(paris.survey.id)] == [(1, 2)]


def test_held_reports_leave_together_once_there_are_enough(tmp_path: Path) -> None:
    log = KeepingLog(partitions=1)
    with serving(log, holder=Holder(tmp_path, 5)) as served:
        sent = [report() for _ in range(4)]
        answers = [served.post_one(each) for each in sent]
        assert [answer.status for answer in answers] == [202] * 4
        assert answers[0].json == {"status": "held"}
        assert served.post_one(sent[0]).status == 202  # the same again is held once
        assert served.post([report(gap="0000")]).json["results"][0]["reason"] == "bad-gap"
        assert not log.frames
        assert served.post_one(report()).status == 202
        eventually(lambda: bool(log.frames))
    ((partition, frame),) = log.decoded()
    assert (partition, len(frame)) == (0, 4)  # a quarter of five stays
    assert (np.diff(frame.tokens.astype(object)) > 0).all()


def test_an_edge_is_one_sender_and_who_is_kept_back_leaves_later(tmp_path: Path) -> None:
    """With M - 1 credentials of its own, an attacker is not sure that the next release has the report of a stranger."""
    log, now = KeepingLog(partitions=1), Moment()
    phones = [f"phone {number}" for number in range(7)]
    known = credentials(van="edge", **dict.fromkeys(phones, "device"))
    senders = Senders(key_of, lambda: known)
    with closing(Holder(tmp_path, 8)) as holder, serving(log, now=now, holder=holder, senders=senders) as served:

        def send(name: str, *reports: dict[str, Any]) -> None:
            content = reports[0] if name in phones else list(reports)
            assert served.post(content, **bearer(name)).status == 202

        send("van", *(report() for _ in range(20)))
        for name in phones[:6]:
            send(name, report())
        assert holder.ripe({"buttons": SCHEME}.get, now()) == []  # 26 reports of 7 senders
        send(phones[6], report())
        eventually(lambda: bool(log.frames))
        left = sum(len(frame) for _, frame in log.decoded())
        assert left in (6, 25)  # two of eight senders stay: two devices, or the edge and a device
        now.value += DAY / 2 + 3500  # the period ends with its hour of grace, 100 seconds from now
        eventually(lambda: sum(len(frame) for _, frame in log.decoded()) == 27)
    tokens = [int(token) for _, frame in log.decoded() for token in frame.tokens]
    assert len(set(tokens)) == 27


def test_held_reports_outlive_the_gateway_and_leave_before_the_period_ends(tmp_path: Path) -> None:
    log, now, sent = KeepingLog(partitions=2), Moment(), [report() for _ in range(6)]
    with closing(Holder(tmp_path, 100)) as holder, serving(log, now=now, holder=holder) as served:
        assert served.post(sent).status == 202
    assert not log.frames
    now.value += DAY / 2 + 3500  # the period ends with its hour of grace, 100 seconds from now
    with closing(Holder(tmp_path, 100)) as holder, serving(log, now=now, holder=holder) as served:
        eventually(lambda: sum(len(frame) for _, frame in log.decoded()) == 6)
        assert served.post_one(report()).status == 201  # it is too late to hold this one
    with closing(Holder(tmp_path, 100)) as holder:
        assert holder.ripe({"buttons": SCHEME}.get, now.value) == []
    tokens = {int(token) for _, frame in log.decoded() for token in frame.tokens}
    assert tokens >= {int(each["token"], 16) for each in sent}


def test_what_could_not_be_released_stays_held(tmp_path: Path) -> None:
    log = KeepingLog(partitions=1, fails=True)
    with closing(Holder(tmp_path, 2)) as holder, serving(log, holder=holder) as served:
        assert served.post([report(), report()]).status == 202
        eventually(lambda: log.attempts > 0)
        assert served.post([report(), report()]).status == 202  # enough to leave alone, if the first two leave just now
        log.fails = False
        eventually(lambda: sum(len(frame) for _, frame in log.decoded()) == 4)
