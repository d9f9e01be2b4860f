"""Workers whose clock is not that of the broker, on a real broker."""

import time
from contextlib import suppress
from pathlib import Path

import pytest

from bench._processes import ServerProcess
from protocols.errors import ClockError
from servers.ports import free_port
from stream_app.kafka import clocks, read_clocks
from stream_app.kafka.clocks import check_clocks
from tests.helpers.counting import Counting, NewCounting
from tests.helpers.eventually import eventually
from tests.helpers.topics import configure
from tests.stream_app.worlds import KEY, SCHEME, Reports, Row

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("kafka")]
HOUR = 3600.0
MARGIN = 120.0
"""Of seconds: how long an answer may take on a busy machine."""
FAST = """
import pathlib, sys, time
right, wrong = time.time, pathlib.Path(sys.argv.pop(1))
time.time = lambda: right() + 7200 * wrong.exists()

from aiokafka import AIOKafkaProducer
send = AIOKafkaProducer.send

async def send_now(producer, topic, value=None, key=None, partition=None, timestamp_ms=None, headers=None):
    return await send(producer, topic, value, key, partition, int(time.time() * 1000), headers)

AIOKafkaProducer.send = send_now

from hearsay.cli import main
main()
"""
"""A command whose clock is two hours ahead as soon as there is a file. aiokafka asks the system, not Python."""


@pytest.fixture
def counting(new_counting: NewCounting) -> Counting:
    return new_counting(SCHEME, partitions=1, merge_partitions=1)


class _Shifted:
    """The module `time`, with a clock that is wrong by so many seconds."""

    def __init__(self, by: float) -> None:
        self._by = by

    def time(self) -> float:
        return time.time() + self._by


@pytest.mark.parametrize("by", [0.0, 2 * HOUR, -0.5 * HOUR, -48 * HOUR, 30 * 24 * HOUR])
def test_both_clocks_are_read_whichever_is_wrong(
    by: float, counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = len(counting.read(counting.topics.counting_changelog))
    monkeypatch.setattr(clocks, "time", _Shifted(by))
    read = read_clocks(counting.kafka, counting.topics)
    assert read is not None
    if read.at_least:  # slower than the limits of the broker: it takes the record
        assert by <= read.difference < -HOUR / 2
    else:
        assert abs(read.difference - by) < MARGIN
        assert abs(read.broker - time.time()) < MARGIN
        assert len(counting.read(counting.topics.counting_changelog)) == records, "nothing is written"
    if abs(by) < MARGIN:
        check_clocks(counting.kafka, counting.topics)
    else:
        with pytest.raises(ClockError, match=r"this machine says .* UTC and that of the broker .* UTC, a difference"):
            check_clocks(counting.kafka, counting.topics)


def test_who_may_not_ask_for_the_limit_learns_from_the_newest_report_that_a_clock_is_slow(
    counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting.send([Reports(0, (Row(1),))])
    monkeypatch.setattr(clocks, "_limit", lambda kafka, topics: None)
    monkeypatch.setattr(clocks, "time", _Shifted(-48 * HOUR))
    read = read_clocks(counting.kafka, counting.topics)
    assert read is not None and read.at_least
    assert abs(read.difference + 48 * HOUR) < MARGIN


def test_topics_that_are_stamped_by_the_broker_tell_its_time(
    counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(counting.kafka, counting.topics.counting_changelog, message_timestamp_type="LogAppendTime")
    monkeypatch.setattr(clocks, "time", _Shifted(3 * HOUR))
    read = read_clocks(counting.kafka, counting.topics)
    assert read is not None and abs(read.difference - 3 * HOUR) < MARGIN


def a_worker(counting: Counting, wrong: Path) -> ServerProcess:
    port = free_port()
    words = ["worker", "--app", counting.topics.prefix, "--web-port", str(port)]
    told = {**counting.environment, "HEARSAY_CLOCK_KEY": KEY.hex(), "COLUMNS": "300"}
    return ServerProcess(counting.directory / "fast.log", port, "-c", FAST, str(wrong), *words, **told).start()


def test_a_worker_with_a_fast_clock_does_not_start_and_names_both_clocks(counting: Counting, tmp_path: Path) -> None:
    """Failure would look like: code 70 and `[Error 32] InvalidTimestampError` at every start."""
    wrong = tmp_path / "wrong"
    wrong.touch()
    worker = a_worker(counting, wrong)
    eventually(lambda: not worker.running)
    said = worker.log.read_text()
    assert worker.leave() == 1, said
    assert "hearsay: the clock of this machine says" in said and "and that of the broker" in said
    assert "Traceback" not in said and "InvalidTimestamp" not in said


@pytest.mark.long(part="kills")
def test_a_worker_whose_clock_becomes_wrong_ends_with_a_sentence(counting: Counting, tmp_path: Path) -> None:
    worker = a_worker(counting, tmp_path / "wrong")
    try:
        worker.wait_until_ready()
        (tmp_path / "wrong").touch()
        counting.send([Reports(0, (Row(1),))])
        with suppress(AssertionError):  # what it said meanwhile says more
            eventually(lambda: not worker.running)
        ended = not worker.running
    finally:
        worker.kill()
    said = worker.log.read_text()
    assert ended, said
    assert "the broker refuses records of this moment: the clock of this machine says" in said
    assert "Traceback" not in said
