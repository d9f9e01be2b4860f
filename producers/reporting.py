"""From one period's truth to confirmed frames: what a fleet and a replay have in common.

    present ─► tokens ─► portions ─► status ─► cells ─► memos ─► reports ─► frames ─► sink, confirmed ─► delivered

Rows are assigned to portions and frames by token, so a frame holds a random set of devices, a different one in every
period: neither order nor company links two reports. Because everything is derived (PROTOCOLS 3), a second attempt at a
period makes the same reports. It leaves out devices whose delivery was recorded; what was sent but not recorded, the
collector refuses as a repeat. So a crash at any moment neither loses nor doubles a device.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np

from memo_store.presence import Presence
from memo_store.survey_memos import SurveyMemos
from producers.scenarios.base import Presences
from producers.sinks import Sink
from producers.stopping import Stop, never
from protocols.arrays import Column, Devices, Places, Tokens, Whole
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


@dataclass(frozen=True)
class _Portion:
    """Frames that are sent and confirmed together, and the devices whose reports are in them."""

    devices: Devices  # ascending
    frames: list[Encoded]
    repeats: int
    ineligible: int


class Reporter:
    """Reports periods of one survey for the devices of one keyring."""

    def __init__(self, memos: SurveyMemos, presence: Presence, sink: Sink) -> None:
        self._respondent = memos.respondent
        self.scheme = self._respondent.scheme
        self._memos = memos
        self._presence = presence
        self._sink = sink

    def report(self, truth: Presences, progress: ProgressCallback = lambda _: None, stop: Stop = never) -> Reported:
        """Report one period for every device that is present and has not reported it yet.

        While the sink delivers one portion of frames, the next one is made.
        """
        for attribute in self.scheme.survey.attributes:
            places = truth.values[attribute.name]
            if places.size and not UNKNOWN <= places.min() <= places.max() < attribute.k:
                raise ScenarioError(
                    f"a value of {attribute.name!r} in period {truth.period} is not one of 0 to {attribute.k - 1}",
                    "give each value by its position in the survey's list",
                )
        so_far, sent = Reported(truth.period, len(truth.devices)), None
        try:
            for portion in self._portions(truth):
                so_far = self._confirm(sent, so_far, progress)
                for partition, value in portion.frames:
                    self._sink.send(partition, FRAME, value)
                sent = portion
                if stop():
                    break
            so_far = self._confirm(sent, so_far, progress)
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
        portions = -(-len(tokens) // (ROWS_PER_FRAME * FRAMES_PER_FLUSH))
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
        rows, gaps = rows.take(eligible), status.gaps.take(eligible)
        devices = truth.devices.take(rows)
        terms, frames = (self.scheme.survey.id, self.scheme.fingerprint, truth.period), list[Encoded]()
        for asked, members in self._respondent.asked(devices, truth.period):
            if len(members):
                answers = {question.name: self._answers(truth, question, rows[members]) for question in asked}
                frames += self._frames(Frame(*terms, tokens.take(rows[members]), gaps.take(members), answers))
        return _Portion(devices, frames, repeats, ineligible)

    def _frames(self, reports: Frame) -> list[Encoded]:
        """Cut into frames of ascending tokens and nearly equal sizes; partitions take turns."""
        by_token = np.argsort(reports.tokens)
        partitions = self._sink.partitions
        by_partition = _groups(by_token, partition_of(reports.tokens.take(by_token), partitions), partitions)
        cuts = [
            [(partition, cut) for cut in np.array_split(rows, -(-len(rows) // ROWS_PER_FRAME))]
            for partition, rows in enumerate(by_partition)
            if len(rows)
        ]
        turns = (cut for turn in zip_longest(*cuts) for cut in turn if cut is not None)
        return [
            (partition, encode_frame(part, self.scheme))
            for partition, rows in turns
            for part in reports.take(rows).parts()  # more than one if answers are wide
        ]

    def _confirm(self, portion: _Portion | None, so_far: Reported, progress: ProgressCallback) -> Reported:
        """Record the delivery of the portion that was sent, once the sink has confirmed it."""
        self._sink.flush()
        if portion is None:
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

    def _answers(self, truth: Presences, question: Question, rows: Places) -> Column:
        """The answers of some rows: values to cells to memos to answers. One-shot, committed values become answers."""
        respondent, period, devices = self._respondent, truth.period, truth.devices.take(rows)
        known = {source.name: truth.values[source.name].take(rows, axis=0) for source in question.sources}
        values = respondent.values(question, devices, known, period)
        if not self.scheme.survey.longitudinal:
            values = self._memos.commit_values(question, devices, values, period)
            return respondent.answer_once(question, devices, period, values)
        memos = self._memos.lookup(question, devices, respondent.cells(question, devices, values), period)
        return respondent.report(question, devices, period, memos)


def _groups(rows: Places, group: Whole, count: int) -> list[Places]:
    """The rows of each group, in the order they came in."""
    group = group.astype(np.uint16)
    ends = np.cumsum(np.bincount(group, minlength=count))
    return np.split(rows[np.argsort(group, kind="stable")], ends[:-1])
