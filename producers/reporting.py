"""From one period's truth to confirmed frames: what a fleet and a replay have in common.

    present ─► tokens ─► portions ─► status ─► cells ─► memos ─► reports ─► frames ─► sink, confirmed ─► delivered

Rows are assigned to portions and frames by token, so a frame holds a random set of devices, a different one in every
period: neither order nor company links two reports. Because everything is derived (PROTOCOLS 3), a second attempt at a
period makes the same reports. It leaves out devices whose delivery was recorded; what was sent but not recorded, the
collector refuses as a repeat. So a crash at any moment neither loses nor doubles a device.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np

from memo_store.presence import Presence
from memo_store.survey_memos import Lookup, SurveyMemos
from producers.scenarios.base import Presences
from producers.sinks.base import Sink
from producers.stopping import Stop, never
from protocols.arrays import Column, Devices, Places, Tokens, Values, Whole
from protocols.errors import DeliveryError, ScenarioError, Stopped
from protocols.question import Question
from protocols.respondent import UNKNOWN
from protocols.wire import FRAME, Frame, encode_frame, partition_of

ROWS_PER_FRAME = 4096
FRAMES_PER_FLUSH = 64
LOWER_HALF = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class Reported:
    """How far a period has come.

    Of the `present` devices, `sent` were reported now, and `repeats` were reported before. The `ineligible` ones can no
    longer report this period: it is closed, or they have reported a later one.
    """

    period: int
    present: int
    sent: int = 0
    repeats: int = 0
    ineligible: int = 0

    @property
    def done(self) -> int:
        return self.sent + self.repeats + self.ineligible


ProgressCallback = Callable[[Reported], None]
Encoded = tuple[int, bytes]
"""A frame as it travels: the partition it was cut for, and its bytes."""


def no_progress(reported: Reported) -> None:
    """Default progress callback: does nothing."""


@dataclass(frozen=True)
class _Portion:
    """Frames that are sent and confirmed together, and the devices whose reports are in them."""

    devices: Devices  # ascending
    frames: list[Encoded]
    repeats: int
    ineligible: int

    @classmethod
    def empty(cls) -> "_Portion":
        return cls(np.empty(0, dtype=np.uint64), [], 0, 0)

    @property
    def rows(self) -> int:
        """How many devices it accounts for."""
        return len(self.devices) + self.repeats + self.ineligible


class Reporter:
    """Reports periods of one survey for the devices of one keyring."""

    def __init__(
        self, memos: SurveyMemos, presence: Presence, sink: Sink, rows_per_frame: int = ROWS_PER_FRAME
    ) -> None:
        self._respondent = memos.respondent
        self.scheme = self._respondent.scheme
        self._memos = memos
        self._presence = presence
        self._sink = sink
        self._rows_per_frame = rows_per_frame

    def report(self, truth: Presences, progress: ProgressCallback = no_progress, stop: Stop = never) -> Reported:
        """Report one period for every device that is present and has not reported it yet.

        While the sink delivers one portion of frames, the next one is made. Delivery is recorded once the sink has
        confirmed a portion.
        """
        so_far = Reported(truth.period, len(truth.devices))
        unconfirmed = _Portion.empty()
        try:
            for portion in self._portions(truth):
                self._sink.flush()
                confirmed, unconfirmed = unconfirmed, _Portion.empty()
                try:
                    for partition, value in portion.frames:
                        self._sink.send(partition, FRAME, value)
                    unconfirmed = portion
                finally:
                    so_far = self._record(confirmed, so_far, progress)
                if stop():
                    break
            self._sink.flush()
            so_far = self._record(unconfirmed, so_far, progress)
        except DeliveryError as error:
            where = f"period {so_far.period} of survey {self.scheme.survey.id!r}, after {so_far.done} devices"
            raise DeliveryError(f"{where}: {error.message}", error.hint) from error
        if so_far.done < so_far.present:
            raise Stopped(
                f"stopped in period {so_far.period}: {so_far.done} of its {so_far.present} devices are reported",
                f"resume with period {so_far.period}: devices that are reported are not reported again",
            )
        return so_far

    def _portions(self, truth: Presences) -> Iterator[_Portion]:
        """All frames of a period, in portions. Which questions a device answers does not decide its portion.

        Portions are cut by the token's lower half, so that each has rows of all partitions.
        """
        tokens = self._respondent.tokens(truth.devices, truth.period)
        portions = -(-len(tokens) // (self._rows_per_frame * FRAMES_PER_FLUSH))
        portion = (tokens & LOWER_HALF) * np.uint64(portions) >> np.uint64(32)
        for rows in _groups(np.arange(len(tokens)), portion, portions):
            yield self._make(truth, tokens, rows)

    def _make(self, truth: Presences, tokens: Tokens, rows: Places) -> _Portion:
        """The reports of some rows, as frames. Devices that may not report are left out.

        Memos and draws are read in the order of devices: this is their order in memory and in keystream blocks.
        """
        status = self._presence.status(truth.devices[rows], truth.period)
        eligible = np.flatnonzero(status.eligible)
        repeats = int(np.count_nonzero(status.reported))
        ineligible = len(rows) - len(eligible) - repeats
        rows, gaps = rows[eligible], status.gaps[eligible]
        devices = truth.devices[rows]
        groups = [group for group in self._respondent.asked(devices, truth.period) if len(group[1])]
        answers = iter(self._answers(truth, [(q, rows[members]) for asked, members in groups for q in asked]))
        encoded = []
        for asked, members in groups:
            columns = {question.name: next(answers) for question in asked}
            encoded += self._frames(truth.period, tokens[rows[members]], gaps[members], columns)
        return _Portion(devices, encoded, repeats, ineligible)

    def _frames(self, period: int, tokens: Tokens, gaps: Column, answers: Mapping[str, Column]) -> list[Encoded]:
        """The reports of rows that answer the same questions."""
        reports = Frame(self.scheme.survey.id, self.scheme.fingerprint, period, tokens, gaps, dict(answers))
        return [(partition, encode_frame(reports.take(cut), self.scheme)) for partition, cut in self._cut(tokens)]

    def _cut(self, tokens: Tokens) -> list[tuple[int, Places]]:
        """Each frame's partition and rows: ascending tokens, nearly equal sizes; partitions take turns."""
        by_token = np.argsort(tokens)
        partitions = self._sink.partitions
        by_partition = _groups(by_token, partition_of(tokens.take(by_token), partitions), partitions)
        frames = [
            [(partition, cut) for cut in np.array_split(rows, -(-len(rows) // self._rows_per_frame))]
            for partition, rows in enumerate(by_partition)
            if len(rows)
        ]
        return [frame for turn in zip_longest(*frames) for frame in turn if frame is not None]

    def _record(self, portion: _Portion, so_far: Reported, progress: ProgressCallback) -> Reported:
        """Record the delivery of a confirmed portion."""
        if not portion.rows:
            return so_far
        if len(portion.devices):
            self._presence.delivered(portion.devices, so_far.period)
        so_far = replace(
            so_far,
            sent=so_far.sent + len(portion.devices),
            repeats=so_far.repeats + portion.repeats,
            ineligible=so_far.ineligible + portion.ineligible,
        )
        progress(so_far)
        return so_far

    def _answers(self, truth: Presences, asked: Sequence[tuple[Question, Places]]) -> list[Column]:
        """The answers of some rows to each question: values to cells to memos to answers.

        The memos of all questions are looked up together. In a one-shot survey, committed values become answers.
        """
        respondent, period = self._respondent, truth.period
        lookups = []
        for question, rows in asked:
            values = {source.name: truth.values[source.name][rows] for source in question.sources}
            _require_known(question, period, values)
            lookups.append(
                Lookup(question, truth.devices[rows], respondent.values(question, truth.devices[rows], values, period))
            )
        if not lookups:
            return []
        if not self.scheme.survey.longitudinal:
            return [
                respondent.answer_once(one.question, one.devices, period, values)
                for one, values in zip(lookups, self._memos.commit_values(lookups, period), strict=True)
            ]
        lookups = [replace(one, cells=respondent.cells(one.question, one.devices, one.cells)) for one in lookups]
        found = self._memos.lookup_all(lookups, period)
        return [
            respondent.report(one.question, one.devices, period, memos)
            for one, memos in zip(lookups, found, strict=True)
        ]


def _require_known(question: Question, period: int, values: Mapping[str, Values]) -> None:
    for source in question.sources:
        places = values[source.name]
        if not UNKNOWN <= places.min() <= places.max() < source.k:
            raise ScenarioError(
                f"a value of {source.name!r} in period {period} is not one of 0 to {source.k - 1}",
                "give each value by its position in the survey's list",
            )


def _groups(rows: Places, group: Whole, count: int) -> list[Places]:
    """The rows of each group, in the order they came in."""
    group = group.astype(np.uint16)
    ends = np.cumsum(np.bincount(group, minlength=count))
    return np.split(rows[np.argsort(group, kind="stable")], ends[:-1])
