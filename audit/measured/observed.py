"""What an observer sees of devices: their reports as they were on the wire, matched by tokens.

Nobody else can match reports: tokens link nothing. The audit can, because it made the devices and knows their secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from protocols.arrays import Column, Devices, Gaps, Mask, PackedBits, Places, Traits, Whole, smallest_unsigned
from protocols.errors import WireError
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.wire import Frame


@dataclass(frozen=True, eq=False)
class Observed:
    """Reports of devices 0 .. n-1 in some periods, and what only the audit knows: their values and attributes.

    Arrays are `[period, device]`; answers of absent devices, and to attributes that a device does not answer, are 0.
    """

    scheme: Scheme
    values: Mapping[str, Whole]
    present: Mask
    answered: Mask  # where devices take turns, some reports answer nothing
    answers: Mapping[str, Column]
    sampled: Column | None  # the place of the attribute that a device answers truly; None: all
    traits: Mapping[str, Traits]
    gaps: Gaps

    @property
    def devices(self) -> int:
        return int(self.present.shape[1])

    @property
    def periods(self) -> int:
        return len(self.present)

    def answering(self, name: str) -> Mask:
        """The devices that answer this attribute."""
        if not self.scheme.discloses or self.sampled is None:
            return np.ones(self.devices, dtype=bool)
        return np.asarray(self.sampled == self.scheme.survey.index(name))

    def reports(self, name: str, rows: Places, periods: range) -> list[Column]:
        """The answers of some devices, a column per period."""
        return [self.answers[name][period][rows] for period in periods]

    def traits_of(self, name: str, rows: Places) -> Traits:
        """What some devices keep for life and show."""
        traits = self.traits[name]
        return None if traits is None else np.asarray(traits)[rows]

    def steady(self, name: str, periods: range) -> Places:
        """The devices that answer this attribute in all these periods and have the same value throughout."""
        values = self.values[name][periods.start : periods.stop]
        there = self.present[periods.start : periods.stop].all(axis=0) & (values == values[0]).all(axis=0)
        return np.flatnonzero(there & self.answering(name))


class Witness:
    """Collects reports of devices 0 .. n-1, whose keyring the audit has."""

    def __init__(self, respondent: Respondent, devices: int, periods: int) -> None:
        self.scheme = respondent.scheme
        self._respondent = respondent
        self._devices: Devices = np.arange(devices, dtype=np.uint64)
        shape = (periods, devices)
        self._present = np.zeros(shape, dtype=bool)
        self._answered = np.zeros(shape, dtype=bool)
        self._gaps: Gaps = np.zeros(shape, dtype=np.uint16)
        self._values = {q.name: np.zeros(shape, dtype=smallest_unsigned(q.k)) for q in self.scheme.questions}
        self._answers: dict[str, Column] = {}
        for question in self.scheme.questions:
            layout = question.mechanism.encoding.answer
            row = (layout.bytes,) if isinstance(layout, PackedBits) else ()
            self._answers[question.name] = np.zeros((*shape, *row), dtype=layout.dtype)
        self._tokens: tuple[int, Whole, Places] | None = None

    def knows(self, period: int, devices: Devices, values: Mapping[str, Whole]) -> None:
        """The truth of a period."""
        for question in self.scheme.questions:
            self._values[question.name][period, devices] = question.places(values)

    def take(self, frame: Frame) -> None:
        """Reports, from the wire."""
        if self._tokens is None or self._tokens[0] != frame.period:
            tokens = self._respondent.tokens(self._devices, frame.period)
            order = np.argsort(tokens)
            self._tokens = frame.period, tokens[order], order
        _, known, order = self._tokens
        places = np.minimum(np.searchsorted(known, frame.tokens), len(known) - 1)
        if not np.array_equal(known[places], frame.tokens):
            raise WireError("a report has a token that none of the audit's devices made", "use a survey id of its own")
        rows = order[places]
        self._present[frame.period, rows] = True
        self._answered[frame.period, rows] = bool(frame.answers)
        self._gaps[frame.period, rows] = frame.gaps
        for name, column in frame.answers.items():
            self._answers[name][frame.period, rows] = column

    @property
    def observed(self) -> Observed:
        sampled = self._respondent.sampled(self._devices) if self.scheme.sampling else None
        traits = {q.name: self._respondent.traits(q, self._devices) for q in self.scheme.questions}
        masks = self._present, self._answered
        return Observed(self.scheme, self._values, *masks, self._answers, sampled, traits, self._gaps)
