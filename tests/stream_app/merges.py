"""A merger that is given partials one after another, and what it published."""

from __future__ import annotations

import numpy as np
from stream_app.results import Live

from protocols.randomness import Keyring
from protocols.wire import Lookup
from stream_app.counting import Statistics
from stream_app.counting.counters import Counts
from stream_app.counting.partials import Part, Progress, encode_partial
from stream_app.log.flushes import Flush, Output
from stream_app.merging.merger import Merger
from tests.helpers.published import Memory
from tests.stream_app.worlds import SURVEYS

KEYRING = Keyring(bytes(16))


def counts(n: int, gap: int = 1) -> Counts:
    """n reports, all of them for the first colour and no page."""
    gaps, total = np.array([gap], dtype=np.uint16), np.array([n])
    return {
        "colour": Statistics(gaps, total, np.array([[n, 0, 0]])),
        "page": Statistics(gaps, total, np.zeros((1, 10), dtype=np.int64), np.eye(11, dtype=np.int64)[0] * n),
    }


def part(period: int, partition: int, offset: int, n: int, closed: bool = False) -> Part:
    return Part("s", period, partition, offset, closed, counts(n))


def progress(partition: int, offset: int, through: int, **rejects: int) -> Progress:
    return Progress("s", partition, offset, through, rejects, {})


class Owner:
    """A merger that applies partials one after another."""

    def __init__(self, partitions: int = 2, lookup: Lookup = SURVEYS.get, **options: object) -> None:
        self.merger = Merger(0, partitions, lookup, KEYRING, **options)  # type: ignore[arg-type]

    def take(self, *partials: Part | Progress) -> Flush:
        for partial in partials:
            self.merger.apply(self.merger.next_offset, encode_partial(partial))
        return self.merger.flush()


def finals(flush: Flush) -> dict[int, int | None]:
    """Period to n of what was published."""
    return {result.period: result.n for result in Memory(flush).histograms("s")}


def live(flush: Flush) -> Live:
    found = Memory(flush).live("s")
    assert found is not None
    return found


def results(flush: Flush) -> dict[tuple[str, bytes], bytes]:
    outputs = [item for item in flush if isinstance(item, Output) and item.topic in ("histograms", "mobility")]
    return {(output.topic, output.key): output.value for output in outputs}
