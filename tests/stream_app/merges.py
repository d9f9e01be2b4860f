"""A merger that is given partials one after another, and what it published."""

from collections.abc import Iterable

import numpy as np

from protocols.randomness import Keyring
from protocols.wire import Lookup
from stream_app.counting import Statistics
from stream_app.counting.counters import Counts
from stream_app.counting.partials import Part, Progress, encode_partial
from stream_app.finals import Final, Release, Status
from stream_app.log.flushes import FINALS, OPEN, Flush, Output, Write
from stream_app.merging.merger import Merger
from tests.stream_app.crashes import outputs
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


def finals(flush: Iterable[Write | Output]) -> dict[int, int]:
    """Period to n of the finals that were published."""
    found = [Final.decode(output.value) for output in outputs(flush, FINALS)]
    return {final.period: _reports(final) for final in found}


def _reports(final: Final) -> int:
    assert not isinstance(final.counts, Release)
    return final.counts["colour"].total


def status(flush: Iterable[Write | Output]) -> Status:
    """What was published about the survey beside its finals."""
    return next(Status.model_validate_json(one.value) for one in outputs(flush, OPEN) if b"/" not in one.key)


def results(flush: Iterable[Write | Output]) -> dict[bytes, bytes]:
    """The finals that were published."""
    return {output.key: output.value for output in outputs(flush, FINALS)}
