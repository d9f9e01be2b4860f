"""Partials: what a partition sends to the merge. Each is absolute and has its offset, so repeats change nothing.

Part       the partition's counts of one period: so far, or (closed) for good
Progress   how far the partition has closed a survey, and what it has refused of it
"""

from dataclasses import dataclass, field

from protocols.errors import StateError
from stream_app.counting.counters import Counts, arrays_of, from_arrays, version_of
from stream_app.log.codec import pack, unpack
from stream_app.log.flushes import PARTIALS, Output
from stream_app.log.marks import Loss


@dataclass(frozen=True, eq=False)
class Part:
    """The counts of one period in one partition, as of an offset of the reports topic."""

    survey: str
    period: int
    partition: int
    offset: int
    closed: bool
    counts: Counts = field(repr=False)
    late: dict[int, int] = field(default_factory=dict)  # by period: late rows that came while this was next to close
    refused: int = 0  # rows of this period that were refused, without repeats

    @property
    def total(self) -> int:
        """Answers counted, of all attributes together, and presence-only reports; 0 if there was no report."""
        return sum(statistics.total for statistics in self.counts.values())


@dataclass(frozen=True)
class Progress:
    """A partition has closed a survey through a period, as of an offset of the reports topic.

    `rejects` are rows by reason since the beginning; `lates` are late rows by period, and `lost` reports that are lost
    at most, for the periods that windows can still reach.
    """

    survey: str
    partition: int
    offset: int
    through: int
    rejects: dict[str, int]
    lates: dict[int, int]
    lost: tuple[Loss, ...] = ()


Partial = Part | Progress


def encode_partial(partial: Partial) -> bytes:
    head = dict(vars(partial))
    if isinstance(partial, Progress):
        return pack({**head, "kind": "progress", "lates": sorted(partial.lates.items())})
    counts = head.pop("counts")
    written = {**head, "kind": "part", "late": sorted(partial.late.items()), "attributes": list(counts)}
    return pack(written, arrays_of(counts), version_of(counts))


def decode_partial(data: bytes) -> Partial:
    head, arrays = unpack(data)
    try:
        if head.pop("kind") == "progress":
            lost = tuple(Loss(*loss) for loss in head["lost"])
            return Progress(**{**head, "lates": dict(head["lates"]), "lost": lost})
        counts = from_arrays(head.pop("attributes"), arrays)
        return Part(**{**head, "counts": counts, "late": dict(head["late"])})
    except (KeyError, TypeError) as error:
        raise StateError(
            f"a partial cannot be read: {error!r}", "only workers may write to the partials topic"
        ) from None


def message(partial: Partial) -> Output:
    """A partial as a message. Its key is the survey: one owner merges all partitions of a survey."""
    return Output(PARTIALS, partial.survey.encode(), encode_partial(partial))
