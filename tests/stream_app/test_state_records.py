"""The records of a period leave the state with it, whenever they were written."""

from stream_app.counting.open_periods import Saving
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.log.flushes import state_key
from tests.stream_app.crashes import keep
from tests.stream_app.worlds import KEY, SURVEYS, Event, Reports, Row, Tick, log_of

AT_ONCE = Saving(repaid=1e9)
"""Every flush writes the tokens and the counters of what changed."""


def test_a_period_that_is_closed_after_restarts_leaves_nothing_in_the_state() -> None:
    """What is not deleted then is never deleted: a year of hours would be read at every restart."""
    log: list[Event] = [
        Reports(0, (Row(1),)),
        Reports(0, (Row(2),)),
        Reports(1, (Row(3),)),
        Reports(0, (Row(4),)),
        Tick(0),
    ]
    store: dict[bytes, bytes] = {}
    for record in log_of(log):
        counter = PartitionCounter(0, 1, SURVEYS.get, KEY, store.items(), saving=AT_ONCE)
        assert counter.next_offset == record.offset
        counter.apply(record)
        keep(store, counter.flush())
    assert {key for key in store if b"/tokens/" not in key} == {
        state_key("count", 0, "position"),
        state_key("count", 0, "counter", "s", 1),
    }
    assert [key for key in store if b"/tokens/" in key] == [state_key("count", 0, "tokens", "s", 1, 2)]
