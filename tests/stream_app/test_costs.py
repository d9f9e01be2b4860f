"""What counting writes."""

from __future__ import annotations

from collections import Counter

import numpy as np

from protocols.randomness import Keyring
from protocols.wire import FRAME, Frame, encode_frame
from stream_app.counting.judging import Record
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.log.flushes import PARTIALS, Output
from stream_app.merging.merger import Merger
from tests.helpers.surveys import of_size, scheme_with
from tests.stream_app.worlds import KEY


def test_little_that_comes_in_for_a_large_counter_is_not_written_a_thousandfold() -> None:
    """Sixty reports a second for a counter of 192 kB: it would be written every second, and its counts every third."""
    values, horizon, seconds = 2_000, 12, 300
    wide = scheme_with(of_size(values, mechanism="l-grr"), id="wide", eps_inf=4, eps_1=2, horizon=horizon)
    counter, merger = PartitionCounter(0, 1, {"wide": wide}.get, KEY), Merger(0, 1, {"wide": wide}.get, Keyring(KEY))
    came_in, records, sizes = 0, Counter[str](), Counter[str]()
    for second in range(seconds):
        tokens = np.arange(1 + 60 * second, 61 + 60 * second, dtype=np.uint64)
        gaps, answers = (tokens % horizon + 1).astype(np.uint16), {"a": (tokens % values).astype(np.uint16)}
        value = encode_frame(Frame("wide", wide.fingerprint, 0, tokens, gaps, answers), wide)
        came_in += len(value)
        counter.apply(Record(counter.next_offset, FRAME, value))
        provisional = second % 3 == 2
        counted = list(counter.flush(provisional))
        for item in counted:
            if isinstance(item, Output) and item.topic == PARTIALS:
                merger.apply(merger.next_offset, item.value)
        for item in (*counted, *merger.flush(provisional)):
            kind = item.topic if isinstance(item, Output) else "/".join(item.key.decode().split("/")[0:3:2])
            records[kind] += 1
            sizes[kind] += len(item.value or b"")
    counter_bytes = horizon * (10 + 8 * values)
    assert seconds * counter_bytes > 90 * came_in, "else this shows nothing"
    constant = 2 + 2 * np.log2(60 * seconds)  # the first record, and counts that have doubled, with their merge
    assert sum(sizes.values()) < 20 * came_in + constant * counter_bytes
    assert sizes["count/counter"] < 5 * came_in + counter_bytes
    assert records["count/position"] == seconds, "the position is written every second"
