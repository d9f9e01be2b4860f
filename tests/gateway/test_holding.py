"""`--hold M`: reports are durable in the gateway's own file, and leave together."""

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from gateway.service import Holder, Senders
from tests.gateway.clients import bearer, credentials
from tests.gateway.world import SCHEME, KeepingLog, Moment, key_of, report, serving
from tests.helpers.eventually import eventually

DAY = 86_400


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
