"""Late rows are counted by period, whatever crashes, and readers see them as the shortfall of windows."""

import random

import pytest

from hearsay.reports.files import mobility_of
from stream_app.counting.judging import Record
from stream_app.counting.partials import Part
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.log.flushes import state_key
from tests.helpers.published import Memory
from tests.stream_app.crashes import Step, keep, partials
from tests.stream_app.test_exactness import SAVINGS, count, merge
from tests.stream_app.worlds import HORIZON, KEY, SCHEME, SURVEYS, Event, Recount, Reports, Row, Tick, log_of


def log_with_late_rows(chance: random.Random, periods: int) -> list[Event]:
    """Reports of open periods, and late ones of every period that is closed, while the clock moves on."""
    events: list[Event] = [Reports(0, (Row(1), Row(2)))]
    for through in range(periods):
        events.append(Tick(through))
        for period in [through, *(chance.randint(0, through + 1) for _ in range(5))]:
            tokens = chance.sample(range(1, 90), chance.randint(1, 4))
            events.append(Reports(period, tuple(Row(token) for token in tokens)))
    return events


def crashing(chance: random.Random) -> list[Step]:
    steps: list[Step] = [("read", 7), ("read", 2), ("flush", 0), ("crash", chance.randint(0, 6)), ("revert", 5)]
    return chance.choices(steps, k=25)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("periods", [HORIZON, HORIZON + 2])
def test_late_rows_are_counted_by_period_and_are_the_shortfall_of_the_windows_that_include_it(
    periods: int, seed: int
) -> None:
    """Every period has some, as long as windows can include it. Those of earlier periods are not kept."""
    chance = random.Random(seed)
    logs = [log_with_late_rows(chance, periods) for _ in range(2)]
    parts = []
    for partition, events in enumerate(logs):
        world, _ = count(events, crashing(chance), partition, 2, chance.choice(SAVINGS))
        parts += world.topics["partials"]
    merged = merge(parts, crashing(chance), 2)
    results = Memory([*merged.topics["finals"], *merged.topics["open"]], SCHEME.survey)
    recount = Recount.of(logs)

    status = results.live("s")
    assert status is not None
    assert status.lates == recount.lates
    assert set(recount.lates) == set(range(periods - HORIZON, periods))

    windows = [window for window in mobility_of(results, "s").windows if window.first >= periods - HORIZON]
    lengths = {window.last - window.first + 1 for window in windows}
    assert lengths == ({1, 2, 3} if periods == HORIZON else {1}), "the first days are also published together"
    for window in windows:
        assert window.shortfall == sum(recount.lates[period] for period in range(window.first, window.last + 1))


def test_late_rows_that_are_read_again_are_counted_once() -> None:
    """The period that is next to close has nothing else, so late rows alone must be written, with their offset."""
    log = log_of([Reports(0, (Row(1),)), Tick(0), Reports(0, (Row(2), Row(3)))])
    store: dict[bytes, bytes] = {}
    assert late_rows(store, log) == {0: {}, 1: {0: 2}}
    del store[state_key("count", 0, "position")]  # as if it was written too late: all is read again
    assert late_rows(store, log)[1] == {0: 2}


def late_rows(store: dict[bytes, bytes], log: list[Record]) -> dict[int, dict[int, int]]:
    """Count what the state does not contain; the late rows of each period's part."""
    counter = PartitionCounter(0, 1, SURVEYS.get, KEY, store.items())
    for record in log[counter.next_offset :]:
        counter.apply(record)
    flush = list(counter.flush(everything=True))
    keep(store, flush)
    return {part.period: part.late for part in partials(flush, Part)}
