"""The merge state as records, recovered by the same rule as the counting state.

    merge/Q/position                          last offset, which log, status of each survey, {part: its offset}
    merge/Q/accepted                          what an operator has accepted: see `stream_app.log.marks.Acceptance`
    merge/Q/part/SURVEY/PERIOD/PARTITION      the newest part of one partition, and its offset in the partials topic
    merge/Q/final/SURVEY/PERIOD               the messages of a final, and its counts (or release) for later windows

Q is the partition of the partials topic. A final is written before it is published, so that a republication has the
same bytes and headers.
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
from stream_app.log.marks import Acceptance, Mark
from stream_app.results.presence_noise import Release

K = TypeVar("K", str, int)
PartKey = tuple[str, int, int]  # survey, period, partition


def merged_key(owner: int) -> bytes:
    return f"merge/{owner}/position".encode()


def merge_accepted_key(owner: int) -> bytes:
    return f"merge/{owner}/accepted".encode()


def part_key(owner: int, part: PartKey) -> bytes:
    return "/".join(map(str, ("merge", owner, "part", *part))).encode()


def final_key(owner: int, period: Period) -> bytes:
    return "/".join(map(str, ("merge", owner, "final", *period))).encode()


@dataclass
class SurveyStatus:
    """The status of one survey in the merge: the progress of every partition, and the last published final."""

    through: int = NEVER  # the last period that has a final or needs none
    begun: bool = False  # periods before the first report get no final
    progress: dict[int, Progress] = field(default_factory=dict)  # by partition
    losing: int = 0  # how many reports are lost at most, with partials that were given up
    unheard: set[int] = field(default_factory=set)  # partitions that have not sent progress since then
    given_up: dict[int, int] = field(default_factory=dict)  # by period: such reports of periods closed meanwhile

    def lose(self, reports: int) -> None:
        """Partials are lost. A partition whose next progress closes periods may have closed them in a lost one."""
        self.losing += reports
        self.unheard = set(self.progress)

    def hear(self, progress: Progress) -> None:
        """Take progress of a partition."""
        self.progress[progress.partition] = progress
        if progress.partition in self.unheard:
            self.given_up |= dict.fromkeys(range(self.through + 1, progress.through + 1), self.losing)
            self.unheard.discard(progress.partition)
            self.losing = self.losing if self.unheard else 0

    def closed_everywhere(self, partitions: int) -> int:
        """The last period that every partition has closed."""
        if len(self.progress) < partitions:
            return NEVER
        return min(progress.through for progress in self.progress.values())

    def published_through(self, period: int) -> None:
        """Note that finals were published through this period. They cannot be made again: their parts are deleted."""
        if period > self.through:
            self.through, self.begun = period, True

    @property
    def rejects(self) -> dict[str, int]:
        """Rows refused by all partitions since the beginning, by reason."""
        return _added(progress.rejects for progress in self.progress.values())

    @property
    def lates(self) -> dict[int, int]:
        """Late rows of all partitions by period, for the periods that windows can still include."""
        return _added(progress.lates for progress in self.progress.values())

    @property
    def lost(self) -> dict[int, int]:
        """Reports that are lost at most in all partitions by period, for the periods that windows can still include."""
        return _added([self.given_up, *(progress.lost for progress in self.progress.values())])


def _added(parts: Iterable[dict[K, int]]) -> dict[K, int]:
    totals: Counter[K] = Counter()
    for part in parts:
        totals.update(part)
    return {key: totals[key] for key in sorted(totals)}


@dataclass
class MergePosition:
    """The offset through which the partials are merged, and the offset that each part record must contain."""

    offset: int = NOTHING
    mark: Mark = field(default_factory=Mark)
    surveys: dict[str, SurveyStatus] = field(default_factory=dict)
    listed: dict[PartKey, int] = field(default_factory=dict)

    def status(self, survey: str) -> SurveyStatus:
        return self.surveys.setdefault(survey, SurveyStatus())

    def encode(self) -> bytes:
        surveys = {
            name: {
                "through": status.through,
                "begun": status.begun,
                "progress": [
                    [p.partition, p.offset, p.through, p.rejects, sorted(p.lates.items()), sorted(p.lost.items())]
                    for _, p in sorted(status.progress.items())
                ],
                "losing": [status.losing, sorted(status.unheard), sorted(status.given_up.items())],
            }
            for name, status in self.surveys.items()
        }
        listed = [[*part, offset] for part, offset in sorted(self.listed.items())]
        return pack({"offset": self.offset, "mark": self.mark.head, "surveys": surveys, "listed": listed})

    @staticmethod
    def decode(data: bytes) -> MergePosition:
        head, _ = unpack(data)
        surveys = {
            name: SurveyStatus(
                status["through"],
                status["begun"],
                {
                    partition: Progress(name, partition, offset, through, rejects, dict(lates), dict(lost))
                    for partition, offset, through, rejects, lates, lost in status["progress"]
                },
                status["losing"][0],
                set(status["losing"][1]),
                dict(status["losing"][2]),
            )
            for name, status in head["surveys"].items()
        }
        listed = {(s, t, p): offset for s, t, p, offset in head["listed"]}
        return MergePosition(head["offset"], Mark(**head["mark"]), surveys, listed)


@dataclass
class HeldPart:
    """The newest part of one partition, and its offset in the partials topic."""

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
    """A closed period: its messages, its counts (or release), and the last period published before it."""

    outputs: tuple[Output, ...]
    counts: Counts | Release
    after: int = NEVER
    unsaved: bool = True

    def encode(self) -> bytes:
        head: Head = {"outputs": [_packed(output) for output in self.outputs], "after": self.after}
        if isinstance(self.counts, Release):
            return pack(head | {"attributes": list(self.counts.n), "late": self.counts.late}, self.counts.arrays)
        return pack(head | {"attributes": list(self.counts)}, arrays_of(self.counts))

    @staticmethod
    def decode(data: bytes) -> Final:
        head, arrays = unpack(data)
        outputs = tuple(_unpacked(*packed) for packed in head["outputs"])
        names = head["attributes"]
        released = "late" in head
        counts = Release.of_arrays(names, head["late"], arrays) if released else from_arrays(names, arrays)
        return Final(outputs, counts, head["after"], unsaved=False)


def _packed(output: Output) -> list[Any]:
    headers = [[name, text.decode()] for name, text in output.headers]
    return [output.topic, output.key.decode(), output.value.decode(), headers]


def _unpacked(topic: TopicName, key: str, value: str, headers: Iterable[tuple[str, str]]) -> Output:
    return Output(topic, key.encode(), value.encode(), tuple((name, text.encode()) for name, text in headers))


@dataclass(frozen=True)
class RecoveredMerge:
    """The recovered state: read on after `start`, delete `stale` records; `missing` describes lost records, if any."""

    position: MergePosition
    parts: dict[PartKey, HeldPart]
    finals: dict[Period, Final]
    start: int
    stale: tuple[Write, ...]
    missing: str


def recover_merge(owner: int, records: Records, log_start: int = 0) -> RecoveredMerge:
    """Recover the merge state of one partition of the partials topic from records of any age, in any order."""
    found = dict(records)
    position = MergePosition.decode(found.pop(merged_key(owner))) if merged_key(owner) in found else MergePosition()
    accepted = found.pop(merge_accepted_key(owner), None)
    if accepted is not None and Acceptance.decode(accepted).mark.acceptances > position.mark.acceptances:
        position.mark = Acceptance.decode(accepted).mark
        for status in position.surveys.values():
            status.lose(Acceptance.decode(accepted).lost)
    log_start = max(log_start + position.mark.shift, position.mark.floor)
    finals: dict[Period, Final] = {}
    written: dict[PartKey, bytes] = {}
    for key, value in sorted(found.items()):
        _, _, kind, survey, period, *rest = key.decode().split("/")
        if kind == "final":
            finals[survey, int(period)] = Final.decode(value)
        else:
            written[survey, int(period), int(rest[0])] = value
    for (survey, _), final in finals.items():  # a late write may have replaced the position by an older one
        position.status(survey).published_through(final.after)
    closed = {part for part in written if part[1] <= position.status(part[0]).through}
    stale = [Write(part_key(owner, part), None) for part in sorted(closed)]
    parts = {part: HeldPart.decode(value) for part, value in written.items() if part not in closed}
    start = resume_after(position.offset, position.listed, {part: held.offset for part, held in parts.items()})
    missing = ""
    if start + 1 < log_start:
        missing = (
            f"partition {owner} of the partials: offsets {start + 1} to {log_start - 1} are no longer in the log and "
            "not all of them are in the state; periods that they closed may lack reports"
        )
        for lost in [part for part, due in position.listed.items() if due < log_start]:
            del position.listed[lost]  # the log no longer has it: do not look for it at the next recovery
        start = log_start - 1
    return RecoveredMerge(position, parts, finals, start, tuple(stale), missing)


def outdated(finals: Mapping[Period, Final], survey: str, horizon: int) -> list[Period]:
    """Published finals that are in no window of a period whose final may still be made.

    Such a period comes after the last one that is known, from the kept finals, to be published.
    """
    published_through = max((final.after for key, final in finals.items() if key[0] == survey), default=NEVER)
    oldest = published_through - max(horizon - 2, 0)
    return [key for key in finals if key[0] == survey and key[1] < oldest]
