"""The merge state as records, found again by the same rule as the counting state (DESIGN 5).

    merge/Q/position                          last offset, how each survey stands, {part: its offset}
    merge/Q/part/SURVEY/PERIOD/PARTITION      the newest part of one partition, and the offset it came with
    merge/Q/final/SURVEY/PERIOD               what was, or is about to be, published; its counts, for later windows

Q is the partition of the partials topic. A final is written before it is published, so that whoever publishes it again
publishes the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from stream_app.counting.clocks import NEVER
from stream_app.counting.counters import Counts, arrays_of, from_arrays
from stream_app.counting.partials import Part, Progress, decode_partial, encode_partial
from stream_app.counting.recovery import Records, resume_after
from stream_app.counting.state import NOTHING, Period
from stream_app.log.codec import Head, pack, unpack
from stream_app.log.flushes import Output, TopicName, Write

K = TypeVar("K", str, int)
Place = tuple[str, int, int]  # survey, period, partition


def merged_key(owner: int) -> bytes:
    return f"merge/{owner}/position".encode()


def part_key(owner: int, place: Place) -> bytes:
    return "/".join(map(str, ("merge", owner, "part", *place))).encode()


def final_key(owner: int, period: Period) -> bytes:
    return "/".join(map(str, ("merge", owner, "final", *period))).encode()


@dataclass
class Standing:
    """How one survey stands: what every partition has closed and refused, and through where finals are out."""

    through: int = NEVER  # the last period with a final, or that needs none
    begun: bool = False  # no finals for the periods before the first report
    progress: dict[int, Progress] = field(default_factory=dict)  # by partition

    def closed_everywhere(self, partitions: int) -> int:
        if len(self.progress) < partitions:
            return NEVER
        return min(progress.through for progress in self.progress.values())

    def published_through(self, period: int) -> None:
        """Finals are out through this period, whatever we thought. They are not made again: what they need is gone."""
        if period > self.through:
            self.through, self.begun = period, True

    @property
    def rejects(self) -> dict[str, int]:
        """Rows refused by all partitions since the beginning, by reason."""
        return _added(progress.rejects for progress in self.progress.values())

    @property
    def lates(self) -> dict[int, int]:
        """Rows that came too late, by period, as far back as windows reach: what a window may lack."""
        return _added(progress.lates for progress in self.progress.values())


def _added(parts: Iterable[dict[K, int]]) -> dict[K, int]:
    totals: Counter[K] = Counter()
    for part in parts:
        totals.update(part)
    return {key: totals[key] for key in sorted(totals)}


@dataclass
class MergePosition:
    """How far the partials have been merged."""

    offset: int = NOTHING
    surveys: dict[str, Standing] = field(default_factory=dict)
    listed: dict[Place, int] = field(default_factory=dict)

    def standing(self, survey: str) -> Standing:
        return self.surveys.setdefault(survey, Standing())

    def encode(self) -> bytes:
        surveys = {
            name: {
                "through": standing.through,
                "begun": standing.begun,
                "progress": [
                    [p.partition, p.offset, p.through, p.rejects, sorted(p.lates.items())]
                    for _, p in sorted(standing.progress.items())
                ],
            }
            for name, standing in self.surveys.items()
        }
        listed = [[*place, offset] for place, offset in sorted(self.listed.items())]
        return pack({"offset": self.offset, "surveys": surveys, "listed": listed})

    @staticmethod
    def decode(data: bytes) -> MergePosition:
        head, _ = unpack(data)
        surveys = {
            name: Standing(
                stood["through"],
                stood["begun"],
                {
                    partition: Progress(name, partition, offset, through, rejects, dict(lates))
                    for partition, offset, through, rejects, lates in stood["progress"]
                },
            )
            for name, stood in head["surveys"].items()
        }
        return MergePosition(head["offset"], surveys, {(s, t, p): offset for s, t, p, offset in head["listed"]})


@dataclass
class HeldPart:
    """The newest part of one partition, and the offset of the partials topic it came with."""

    offset: int
    part: Part
    unsaved: bool = True

    def encode(self) -> bytes:
        return pack({"offset": self.offset}, [np.frombuffer(encode_partial(self.part), dtype=np.uint8)])

    @staticmethod
    def decode(data: bytes) -> HeldPart:
        head, (partial,) = unpack(data)
        part = decode_partial(partial.tobytes())
        assert isinstance(part, Part)
        return HeldPart(head["offset"], part, unsaved=False)


@dataclass
class Final:
    """A closed period: the messages that announce it, its counts, and through where finals were out before it."""

    outputs: tuple[Output, ...]
    counts: Counts
    after: int = NEVER
    unsaved: bool = True

    def encode(self) -> bytes:
        head: Head = {
            "outputs": [_packed(output) for output in self.outputs],
            "attributes": list(self.counts),
            "after": self.after,
        }
        return pack(head, arrays_of(self.counts))

    @staticmethod
    def decode(data: bytes) -> Final:
        head, arrays = unpack(data)
        outputs = tuple(_unpacked(*packed) for packed in head["outputs"])
        return Final(outputs, from_arrays(head["attributes"], arrays), head["after"], unsaved=False)


def _packed(output: Output) -> list[Any]:
    headers = [[name, text.decode()] for name, text in output.headers]
    return [output.topic, output.key.decode(), output.value.decode(), headers]


def _unpacked(topic: TopicName, key: str, value: str, headers: Iterable[tuple[str, str]]) -> Output:
    return Output(topic, key.encode(), value.encode(), tuple((name, text.encode()) for name, text in headers))


@dataclass(frozen=True)
class RecoveredMerge:
    """Read on after `start`; `stale` records can go; `missing` says what is lost."""

    position: MergePosition
    parts: dict[Place, HeldPart]
    finals: dict[Period, Final]
    start: int
    stale: tuple[Write, ...]
    missing: str


def recover_merge(owner: int, records: Records, log_start: int = 0) -> RecoveredMerge:
    """The merge state of one partition of the partials topic, from records of any age and in any order."""
    found = dict(records)
    position = MergePosition.decode(found.pop(merged_key(owner))) if merged_key(owner) in found else MergePosition()
    finals: dict[Period, Final] = {}
    written: dict[Place, bytes] = {}
    for key, value in sorted(found.items()):
        _, _, kind, survey, period, *rest = key.decode().split("/")
        if kind == "final":
            finals[survey, int(period)] = Final.decode(value)
        else:
            written[survey, int(period), int(rest[0])] = value
    for (survey, _), final in finals.items():  # a position written late may be older than they are
        position.standing(survey).published_through(final.after)
    over = {place for place in written if place[1] <= position.standing(place[0]).through}
    stale = [Write(part_key(owner, place), None) for place in sorted(over)]
    parts = {place: HeldPart.decode(value) for place, value in written.items() if place not in over}
    start = resume_after(position.offset, position.listed, {place: held.offset for place, held in parts.items()})
    missing = ""
    if start + 1 < log_start:
        missing = (
            f"partition {owner} of the partials: offsets {start + 1} to {log_start - 1} are no longer in the log and "
            "not all of them are in the state; periods they closed may lack reports"
        )
        for lost in [place for place, due in position.listed.items() if due < log_start]:
            del position.listed[lost]  # it cannot be brought further: do not look again
        start = log_start - 1
    return RecoveredMerge(position, parts, finals, start, tuple(stale), missing)


def outdated(finals: Mapping[Period, Final], survey: str, horizon: int) -> list[Period]:
    """Finals that are published, and that no window of a later period reaches back to.

    Later are those after the last one that a kept final knows to be out: only they are ever made, or made again.
    """
    out_through = max((final.after for key, final in finals.items() if key[0] == survey), default=NEVER)
    oldest = out_through - max(horizon - 2, 0)
    return [key for key in finals if key[0] == survey and key[1] < oldest]
