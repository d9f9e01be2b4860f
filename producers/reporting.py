"""From one period's truth to confirmed frames: what a fleet and a replay have in common.

    devices present ─► tokens ─► frames' rows ─► standing ─► memos ─► reports ─► sink, confirmed ─► presence recorded

Rows are put into frames by token, so a frame gathers devices by chance, other ones in every period: neither order nor
company links two reports. Because everything is derived (PROTOCOLS 3), a second attempt at a period cuts the same
frames and makes the same reports; devices whose presence was recorded are left out of it, and what was sent but not
recorded is refused by the collector as a repeat. So a crash at any moment neither loses nor doubles a device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memo_store import Standing
from producers.scenarios import Presences
from producers.sinks.base import Sink
from producers.stopping import Stop, never
from protocols.columns import Column
from protocols.encodings import Values
from protocols.errors import DeliveryError, Stopped
from protocols.keystream import Devices
from protocols.respondent import Respondent, Tokens
from protocols.scheme import Question
from protocols.wire import FRAME, Frame, encode_frame, partition_of

ROWS_PER_FRAME = 4096
FRAMES_PER_FLUSH = 32

Rows = NDArray[np.intp]


class Memos(Protocol):
    """The memo store for one survey, or something that answers as it would."""

    def standing(self, devices: Devices, period: int) -> Standing: ...
    def lookup(self, question: Question, devices: Devices, values: Values, period: int) -> Column: ...
    def settle(self, question: Question, devices: Devices, values: Values, period: int) -> Values: ...
    def delivered(self, devices: Devices, period: int) -> None: ...


@dataclass(frozen=True)
class Reported:
    """How far a period has come.

    Of the `present` devices, `sent` were reported now; of `repeats` the store says that they have reported in this
    period or a later one, or that the period is over.
    """

    period: int
    present: int
    sent: int = 0
    repeats: int = 0
    frames: int = 0
    bytes: int = 0

    @property
    def done(self) -> int:
        return self.sent + self.repeats


Progress = Callable[[Reported], None]


def no_progress(reported: Reported) -> None:
    """Nobody watches."""


class Reporter:
    """Reports periods of one survey for the devices of one keyring."""

    def __init__(
        self,
        respondent: Respondent,
        memos: Memos,
        sink: Sink,
        rows_per_frame: int = ROWS_PER_FRAME,
        frames_per_flush: int = FRAMES_PER_FLUSH,
    ) -> None:
        self.scheme = respondent.scheme
        self._respondent = respondent
        self._memos = memos
        self._sink = sink
        self._rows_per_frame = rows_per_frame
        self._frames_per_flush = frames_per_flush

    def report(self, truth: Presences, progress: Progress = no_progress, stop: Stop = never) -> Reported:
        """Report one period for every device that is there and has not reported it yet."""
        so_far = Reported(truth.period, len(truth.devices))
        tokens = self._respondent.tokens(truth.devices, truth.period)
        for questions, members in self._answering(truth.devices):
            cuts = self._frames(tokens, members)
            for first in range(0, len(cuts), self._frames_per_flush):
                batch = cuts[first : first + self._frames_per_flush]
                try:
                    so_far = self._deliver(truth, questions, tokens, batch, so_far, stop)
                except DeliveryError as error:
                    where = f"period {so_far.period} of survey {self.scheme.survey.id!r}, after {so_far.done} devices"
                    raise DeliveryError(f"{where}: {error.message}", error.hint) from error
                progress(so_far)
                if stop():
                    raise Stopped(
                        f"stopped in period {so_far.period}, {so_far.done} of its {so_far.present} devices reported",
                        f"resume with period {so_far.period}: what was reported is not reported again",
                    )
        return so_far

    def _answering(self, devices: Devices) -> Iterator[tuple[Sequence[Question], Rows]]:
        """Which questions are answered by which rows: all by all, or under smp each device its own."""
        questions = self.scheme.questions
        if not self.scheme.discloses:
            yield questions, np.arange(len(devices))
            return
        sampled = self._respondent.sampled(devices)
        for place, question in enumerate(questions):
            yield [question], np.flatnonzero(sampled == place)

    def _frames(self, tokens: Tokens, members: Rows) -> list[Rows]:
        """The rows of each frame: one partition, ascending tokens, nearly equal sizes."""
        ordered = members[np.argsort(tokens[members])]
        partitions = partition_of(tokens[ordered], self._sink.partitions)
        frames: list[Rows] = []
        for partition in range(self._sink.partitions):
            rows = ordered[partitions == partition]
            if len(rows):
                frames += np.array_split(rows, -(-len(rows) // self._rows_per_frame))
        return frames

    def _deliver(
        self,
        truth: Presences,
        questions: Sequence[Question],
        tokens: Tokens,
        batch: list[Rows],
        so_far: Reported,
        stop: Stop,
    ) -> Reported:
        """Send some frames, wait until they are safe, record presence; frames after a wish to stop are not begun."""
        rows = np.concatenate(batch)
        frame_of = np.repeat(np.arange(len(batch)), [len(part) for part in batch])
        standing = self._memos.standing(truth.devices[rows], truth.period)
        fresh = np.flatnonzero(standing.fresh)
        so_far = replace(so_far, repeats=so_far.repeats + len(rows) - len(fresh))
        if not len(fresh):
            return so_far
        rows = rows[fresh]
        devices = truth.devices[rows]
        answers = {q.name: self._answers(q, devices, truth.period, truth.values[q.name][rows]) for q in questions}
        survey = self.scheme.survey
        reports = Frame(survey.id, survey.fingerprint, truth.period, tokens[rows], standing.gaps[fresh], answers)
        sent = 0
        ends = np.searchsorted(frame_of[fresh], np.arange(len(batch)), side="right")
        for end in np.unique(ends[ends > 0]).tolist():
            if stop():
                break
            size = self._send(reports.take(slice(sent, end)))
            so_far = replace(so_far, sent=so_far.sent + end - sent, frames=so_far.frames + 1, bytes=so_far.bytes + size)
            sent = end
        self._sink.flush()
        self._memos.delivered(devices[:sent], truth.period)
        return so_far

    def _send(self, frame: Frame) -> int:
        value = encode_frame(frame, self.scheme)
        self._sink.send(int(partition_of(frame.tokens[:1], self._sink.partitions)[0]), FRAME, value)
        return len(value)

    def _answers(self, question: Question, devices: Devices, period: int, values: Values) -> Column:
        if not self.scheme.survey.longitudinal:
            settled = self._memos.settle(question, devices, values, period)
            return self._respondent.answer_once(question, devices, period, settled)
        memos = self._memos.lookup(question, devices, values, period)
        return self._respondent.report(question, devices, period, memos)
