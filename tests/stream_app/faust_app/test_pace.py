"""How often a partition is flushed, counted without a clock."""

from __future__ import annotations

import pytest

from stream_app.faust_app.partitions.task import FLUSH_BYTES, PAUSE_BYTES, QUIET_SECONDS, Pace
from stream_app.log.codec import RECORD_COST


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def flushes(reports_a_second: float, seconds: int, pressing: bool = False) -> int:
    """How often a partition is flushed into which small reports trickle; it is asked every second."""
    clock, made, waiting = Clock(), 0, 0.0
    pace = Pace(clock)
    for second in range(1, seconds + 1):
        clock.seconds = second
        waiting += reports_a_second
        pace.note_read(int(waiting) * (RECORD_COST + 150))
        waiting -= int(waiting)
        if pace.is_due(pressing):
            made += 1
            pace.flushed(provisional=False, seconds=0.001)
    return made


@pytest.mark.parametrize("rate", [2, 10, 50, 1000])
def test_reports_that_trickle_share_a_flush(rate: int) -> None:
    assert flushes(rate, 300) <= rate * 300 / min(QUIET_SECONDS * rate, 100)


def test_reports_that_hardly_come_wait_some_seconds() -> None:
    assert flushes(0.1, 300) == 300 / QUIET_SECONDS


def test_what_others_wait_for_is_written_every_second() -> None:
    assert flushes(1, 300, pressing=True) == 300


def test_much_is_written_at_once_and_reading_pauses_before_it_is_too_much() -> None:
    pace = Pace(Clock())
    pace.note_read(FLUSH_BYTES)
    assert pace.is_full and not pace.is_too_full
    pace.note_read(PAUSE_BYTES - FLUSH_BYTES)
    assert pace.is_too_full
    pace.flushed(provisional=False, seconds=1)
    assert not pace.is_full


@pytest.mark.parametrize(("cost", "pause"), [(0.001, 1), (0.2, 4), (3, 60)])
def test_results_that_are_not_final_take_a_small_share_of_the_time(cost: float, pause: float) -> None:
    clock = Clock()
    pace = Pace(clock)
    assert pace.is_provisional, "the first one is made at once"
    pace.flushed(provisional=True, seconds=cost)
    clock.seconds = pause * 0.99
    assert not pace.is_provisional
    clock.seconds = pause
    assert pace.is_provisional
