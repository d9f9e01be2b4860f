"""Two releases on one cluster, one of which writes a newer state: exact counts, or a refusal, in either order."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from pathlib import Path

import pytest

from lab.worker_process import WorkerProcess
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, publish
from stream_app.log.codec import VERSION
from tests.helpers.eventually import eventually
from tests.helpers.published import read_finals
from tests.helpers.recount import histograms_of, recount
from tests.helpers.workers import send
from tests.stream_app.worlds import KEY, SCHEME, Event, Reports, Row, Tick

BACK_OFF_SECONDS = 10.0
"""Supervisors start what ends at once less and less often. Without it, the group would only rebalance."""
REFUSED = f"the state has version {VERSION + 1}, and this release reads versions up to {VERSION}"


class NextRelease(WorkerProcess):
    """A worker of a release that writes the next version of the state, and reads this one too."""

    program = ("-c", "from stream_app.log import codec; codec.VERSION += 1; from hearsay.cli import main; main()")


def period(number: int) -> list[Event]:
    return [Reports(number, tuple(Row(token) for token in range(1 + number, 200 + number))), Tick(number)]


@pytest.mark.long(part="cluster")
@pytest.mark.parametrize("first", [WorkerProcess, NextRelease])
def test_two_releases_side_by_side_count_every_report_once_or_one_of_them_refuses(
    first: type[WorkerProcess],
    kafka_settings: KafkaSettings,
    fresh_topics: Callable[..., Topics],
    tmp_path: Path,
) -> None:
    """Failure would look like: a final that an older release made from a state it does not understand."""
    topics = fresh_topics(partitions=2, merge_partitions=1)
    publish(kafka_settings, topics, SCHEME.survey)
    second = NextRelease if first is WorkerProcess else WorkerProcess
    group = [kind(kafka_settings, topics, KEY, tmp_path / f"{kind.__name__}.log") for kind in (first, second)]
    older, newer = sorted(group, key=lambda worker: isinstance(worker, NextRelease))

    started: dict[WorkerProcess, float] = {}

    def restart(some: list[WorkerProcess]) -> None:
        for worker in some:
            if not worker.running and time.monotonic() - started.get(worker, -inf) > BACK_OFF_SECONDS:
                started[worker] = time.monotonic()
                worker.start()

    def closed(number: int, some: list[WorkerProcess], ready: WorkerProcess) -> None:
        """A period is sent, closed, and becomes final, while whoever has ended is started again."""
        eventually(lambda: restart(some) or ready.ready, 180)
        send(kafka_settings, topics, period(number))
        eventually(lambda: restart(some) or len(read_finals(kafka_settings, topics)) == number + 1, 180)

    try:
        closed(0, group[:1], group[0])
        for number in range(1, 4):
            closed(number, group, newer)
        newer.kill()
        if not older.running:
            older.start()
        send(kafka_settings, topics, period(4))
        eventually(lambda: not older.running)
        assert REFUSED in older.log.read_text()
        assert len(read_finals(kafka_settings, topics)) == 4, "an older release alone makes nothing of it"
        newer.start()
        eventually(lambda: len(read_finals(kafka_settings, topics)) == 5)
    finally:
        for worker in group:
            if worker.running:
                worker.kill()
    assert read_finals(kafka_settings, topics) == histograms_of(recount(kafka_settings, topics))
