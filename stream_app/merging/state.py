"""The merge state as records, recovered by the same rule as the counting state.

    merge/Q/position                          last offset, which log, {survey: the offset its record contains}
    merge/Q/survey/SURVEY                     its last offset, the status of the survey, {part: its offset}
    merge/Q/accepted                          what an operator has accepted: see `stream_app.log.marks.Acceptance`
    merge/Q/part/SURVEY/PERIOD/PARTITION      the newest part of one partition, and its offset in the partials topic
    merge/Q/final/SURVEY/PERIOD               the messages of a final, and its counts (or release) for later windows
    merge/Q/piece/SURVEY/PERIOD/DIGEST        a piece of a final that is too large for one record (`finals`)

Q is the partition of the partials topic. A final is written before it is published, so that a republication has the
same bytes and headers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from stream_app.counting.clocks import NEVER
from stream_app.counting.partials import Progress
from stream_app.counting.recovery import Records, resume_after
from stream_app.counting.state import NOTHING, Period
from stream_app.log.codec import pack, unpack
from stream_app.log.flushes import Write
from stream_app.log.marks import Acceptance, Mark
from stream_app.merging.finals import Final, final_key, piece_key
from stream_app.merging.parts import HeldPart, HeldParts, PartKey

K = TypeVar("K", str, int)


def merged_key(owner: int) -> bytes:
    return f"merge/{owner}/position".encode()


def survey_key(owner: int, survey: str) -> bytes:
    return f"merge/{owner}/survey/{survey}".encode()


def merge_accepted_key(owner: int) -> bytes:
    return f"merge/{owner}/accepted".encode()


def part_key(owner: int, part: PartKey) -> bytes:
    return "/".join(map(str, ("merge", owner, "part", *part))).encode()


@dataclass
class SurveyStatus:
    """The status of one survey in the merge: the progress of every partition, and the last published final."""

    offset: int = NOTHING  # of the last partial of this survey
    through: int = NEVER  # the last period that has a final or needs none
    begun: bool = False  # periods before the first report get no final
    progress: dict[int, Progress] = field(default_factory=dict)  # by partition
    listed: dict[PartKey, int] = field(default_factory=dict)  # the offset that each part record must contain
    losing: int = 0  # how many reports are lost at most, with partials that were given up
    unheard: set[int] = field(default_factory=set)  # partitions that have not sent progress since then
    given_up: dict[int, int] = field(default_factory=dict)  # by period: such reports of periods closed meanwhile
    acceptances: int = 0  # how often partials were given up, as far as this status takes it into account

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

    def encode(self) -> bytes:
        progress = [
            [p.partition, p.offset, p.through, p.rejects, sorted(p.lates.items()), sorted(p.lost.items())]
            for _, p in sorted(self.progress.items())
        ]
        listed = [[period, partition, offset] for (_, period, partition), offset in sorted(self.listed.items())]
        losing = [self.losing, sorted(self.unheard), sorted(self.given_up.items()), self.acceptances]
        head = {"offset": self.offset, "through": self.through, "begun": self.begun}
        return pack({**head, "progress": progress, "listed": listed, "losing": losing})

    @staticmethod
    def decode(survey: str, data: bytes) -> SurveyStatus:
        head, _ = unpack(data)
        progress = {
            partition: Progress(survey, partition, offset, through, rejects, dict(lates), dict(lost))
            for partition, offset, through, rejects, lates, lost in head["progress"]
        }
        listed = {(survey, period, partition): offset for period, partition, offset in head["listed"]}
        losing, unheard, given_up, acceptances = head["losing"]
        lost = losing, set(unheard), dict(given_up), acceptances
        return SurveyStatus(head["offset"], head["through"], head["begun"], progress, listed, *lost)


def _added(parts: Iterable[dict[K, int]]) -> dict[K, int]:
    totals: Counter[K] = Counter()
    for part in parts:
        totals.update(part)
    return {key: totals[key] for key in sorted(totals)}


@dataclass
class MergePosition:
    """The offset through which the partials are merged, and the offset that each survey's record must contain."""

    offset: int = NOTHING
    mark: Mark = field(default_factory=Mark)
    surveys: dict[str, int] = field(default_factory=dict)

    def encode(self) -> bytes:
        return pack({"offset": self.offset, "mark": self.mark.head, "surveys": self.surveys})

    @staticmethod
    def decode(data: bytes) -> MergePosition:
        head, _ = unpack(data)
        return MergePosition(head["offset"], Mark(**head["mark"]), head["surveys"])


@dataclass(frozen=True)
class RecoveredMerge:
    """The recovered state: read on after `start`, delete `stale` records; `missing` describes lost records, if any."""

    position: MergePosition
    statuses: dict[str, SurveyStatus]
    parts: HeldParts
    finals: dict[Period, Final]
    pieces: dict[Period, set[str]]
    start: int
    stale: tuple[Write, ...]
    missing: str
    changed: set[str]  # surveys whose records must be written again


def recover_merge(owner: int, records: Records, log_start: int = 0) -> RecoveredMerge:
    """Recover the merge state of one partition of the partials topic from records of any age, in any order."""
    found = dict(records)
    position = MergePosition.decode(found.pop(merged_key(owner))) if merged_key(owner) in found else MergePosition()
    accepted = found.pop(merge_accepted_key(owner), None)
    lost, changed = 0, set[str]()
    if accepted is not None:
        lost = Acceptance.decode(accepted).lost
        if Acceptance.decode(accepted).mark.acceptances > position.mark.acceptances:
            position.mark = Acceptance.decode(accepted).mark
    acceptances = position.mark.acceptances
    log_start = max(log_start + position.mark.shift, position.mark.floor)
    statuses: defaultdict[str, SurveyStatus] = defaultdict(lambda: SurveyStatus(acceptances=acceptances))
    manifests: dict[Period, bytes] = {}
    pieces: dict[Period, dict[str, bytes]] = {}
    written: dict[PartKey, bytes] = {}
    for key, value in sorted(found.items()):
        _, _, kind, survey, *rest = key.decode().split("/")
        if kind == "survey":
            statuses[survey] = SurveyStatus.decode(survey, value)
            if statuses[survey].acceptances < acceptances:
                statuses[survey].lose(lost)
                statuses[survey].acceptances = acceptances
                changed.add(survey)
        elif kind == "final":
            manifests[survey, int(rest[0])] = value
        elif kind == "piece":
            pieces.setdefault((survey, int(rest[0])), {})[rest[1]] = value
        else:
            written[survey, int(rest[0]), int(rest[1])] = value
    decoded = {period: Final.decode(value, pieces.get(period, {})) for period, value in manifests.items()}
    finals = {period: final for period, final in decoded.items() if final is not None}
    for (survey, _), final in finals.items():  # a late write may have replaced the status by an older one
        statuses[survey].published_through(final.after)
    stale = [final_key(owner, period) for period in decoded if period not in finals]
    for survey, number in [period for period in pieces if period not in finals]:
        # Of a period that is not final yet, someone may still write the manifest.
        if number <= statuses[survey].through:
            stale += [piece_key(owner, (survey, number), name) for name in pieces.pop((survey, number))]
    parts, held = HeldParts(), {}
    for place, value in written.items():
        if place[1] <= statuses[place[0]].through:
            stale.append(part_key(owner, place))
        else:
            part = HeldPart.decode(value)
            parts.put(place, part)
            held[place] = part.offset
    for status in statuses.values():  # parts of periods that have a final are not needed again
        status.listed = {part: due for part, due in status.listed.items() if part[1] > status.through}
    listed = {part: due for status in statuses.values() for part, due in status.listed.items()}
    start = resume_after(position.offset, position.surveys, {name: statuses[name].offset for name in position.surveys})
    start = min(start, resume_after(position.offset, listed, held))
    missing = ""
    if start + 1 < log_start:
        missing = (
            f"partition {owner} of the partials: offsets {start + 1} to {log_start - 1} are no longer in the log and "
            "not all of them are in the state; periods that they closed may lack reports"
        )
        for status in statuses.values():  # the log no longer has them: do not look for them at the next recovery
            status.listed = {part: due for part, due in status.listed.items() if due >= log_start}
        for name in [name for name, due in position.surveys.items() if due < log_start]:
            position.surveys[name] = statuses[name].offset
        start = log_start - 1
    deletions = tuple(Write(key, None) for key in stale)
    named = {period: set(names) for period, names in pieces.items()}
    return RecoveredMerge(position, statuses, parts, finals, named, start, deletions, missing, changed)
