"""What an observer sees of devices: their reports as they were on the wire, matched by tokens.

Nobody else can match reports: tokens link nothing. The audit can, because it made the devices and knows their secret.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocols.arrays import Column, Devices, Gaps, Mask, PackedBits, Places, Tokens, Traits, Whole, smallest_unsigned
from protocols.errors import SurveyError, WireError
from protocols.mechanisms import Hashed
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey import with_paddings
from protocols.wire import FRAME, Frame, Reject, decode_frame


@dataclass(frozen=True, eq=False)
class Observed:
    """Reports of devices 0 .. n-1 in some periods, and what only the audit knows: their values and attributes.

    Arrays are `[period, device]`; answers of absent devices, and to attributes that a device does not answer, are 0.
    Where values are sets, a further axis has their elements, paddings too.
    """

    scheme: Scheme
    values: Mapping[str, Whole]
    present: Mask
    answered: Mask  # where devices take turns, some reports answer nothing
    answers: Mapping[str, Column]
    sampled: Column | None  # the place of the attribute that a device answers truly; None: all
    traits: Mapping[str, Traits]
    gaps: Gaps
    tokens: Tokens
    around: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """What else was seen of reports: numbers as [period, device], bytes as [period, device, byte]."""

    @property
    def restart(self) -> int:
        """Before this period the audit starts its devices anew."""
        return self.periods // 2

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

    def answering_first(self, name: str) -> Places:
        """The devices that answer this attribute in the first period."""
        return np.flatnonzero(self.answered[0] & self.answering(name))

    def traits_of(self, name: str, rows: Places) -> Traits:
        """What some devices keep for life and show."""
        traits = self.traits[name]
        return None if traits is None else np.asarray(traits)[rows]

    def there(self, periods: range) -> Mask:
        """The devices that report in all these periods."""
        return np.asarray(self.present[periods.start : periods.stop].all(axis=0))

    def kept(self, name: str, periods: range) -> Mask:
        """The devices whose value of this attribute is the same in all these periods."""
        values = self.values[name][periods.start : periods.stop]
        return np.asarray((values == values[0]).reshape(len(values), self.devices, -1).all(axis=(0, 2)))

    def steady(self, name: str, periods: range) -> Places:
        """The devices that answer this attribute in all these periods and have the same value throughout."""
        return np.flatnonzero(self.there(periods) & self.kept(name, periods) & self.answering(name))


class Record:
    """Keeps the reports of devices 0 .. n-1.

    What devices drew for life is read from their reports, unless the audit knows their secret, as `respondent` does.
    """

    def __init__(self, scheme: Scheme, devices: int, periods: int, respondent: Respondent | None = None) -> None:
        self._devices: Devices = np.arange(devices, dtype=np.uint64)
        self._respondent, shape = respondent, (periods, devices)
        answers, traits = {}, dict[str, Traits]()
        for question in scheme.questions:
            layout, lifelong = question.mechanism.encoding.answer, question.mechanism.encoding.lifelong
            row = (layout.bytes,) if isinstance(layout, PackedBits) else ()
            answers[question.name] = np.zeros((*shape, *row), dtype=layout.dtype)
            if respondent is not None:
                traits[question.name] = respondent.traits(question, self._devices)
            elif lifelong and row:
                raise SurveyError("a report does not show which buckets a device has", "choose another mechanism")
            else:
                traits[question.name] = np.zeros(devices, dtype=np.int64) if lifelong else None
        sampled: Column | None = np.zeros(devices, dtype=np.int64) if scheme.discloses else None
        if respondent is not None:
            sampled = respondent.sampled(self._devices) if scheme.sampling else None
        self.observed = Observed(
            scheme,
            {
                q.name: np.zeros((*shape, *[q.several] * q.sets), dtype=smallest_unsigned(q.listed.k))
                for q in scheme.questions
            },
            np.zeros(shape, dtype=bool),
            np.zeros(shape, dtype=bool),
            answers,
            sampled,
            traits,
            np.zeros(shape, dtype=np.uint16),
            np.zeros(shape, dtype=np.uint64),
        )

    def knows(self, period: int, devices: Devices, values: Mapping[str, Whole]) -> None:
        """The truth of a period."""
        for question in self.observed.scheme.questions:
            places = question.places(values)
            if question.sets:
                places = with_paddings(places, question.items.k, question.several)[:, : question.several]
            self.observed.values[question.name][period, devices] = places

    def put(self, frame: Frame, rows: Places) -> None:
        """Reports of these devices."""
        seen = self.observed
        seen.present[frame.period, rows] = True
        seen.answered[frame.period, rows] = bool(frame.answers)
        seen.gaps[frame.period, rows] = frame.gaps
        seen.tokens[frame.period, rows] = frame.tokens
        for name, column in frame.answers.items():
            seen.answers[name][frame.period, rows] = column
            if self._respondent is None and seen.sampled is not None:
                seen.sampled[rows] = seen.scheme.survey.index(name)
            encoding = seen.scheme.question(name).mechanism.encoding
            if self._respondent is None and isinstance(encoding, Hashed):
                np.asarray(seen.traits[name])[rows] = column // encoding.g


class Witness(Record):
    """A sink that sees the reports of devices 0 .. n-1, whose keyring the audit has."""

    partitions = 4

    def __init__(self, respondent: Respondent, devices: int, periods: int) -> None:
        super().__init__(respondent.scheme, devices, periods, respondent)
        self._tokens, self._known = respondent.tokens, (-1, self._devices, np.zeros(0, dtype=np.intp))
        self._order = np.zeros((periods, devices))
        self.observed = replace(self.observed, around={"order": self._order})

    def send(self, partition: int, content_type: str, value: bytes) -> None:
        """A record, from the wire."""
        if content_type != FRAME:
            return
        scheme = self.observed.scheme
        frame = decode_frame(value, {scheme.survey.id: scheme}.get)
        if isinstance(frame, Reject):
            raise WireError(f"a frame of the audit's own devices was refused: {frame.detail}", "this is a bug")
        if self._known[0] != frame.period:
            tokens = self._tokens(self._devices, frame.period)
            order = np.argsort(tokens)
            self._known = frame.period, tokens[order], order
        _, known, order = self._known
        places = np.minimum(np.searchsorted(known, frame.tokens), len(known) - 1)
        if not np.array_equal(known[places], frame.tokens):
            raise WireError("a report has a token that none of the audit's devices made", "use a survey id of its own")
        rows = order[places]
        self._order[frame.period, rows] = self.observed.present[frame.period].sum() + np.arange(len(rows))
        self.put(frame, rows)

    def flush(self) -> None:
        """Nothing is waiting."""

    def close(self) -> None:
        """Nothing is open."""
