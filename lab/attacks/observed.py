"""What an observer sees of devices: their reports as they were on the wire, matched by tokens.

Nobody else can match reports: tokens link nothing. The audit can, because it made the devices and knows their secret.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from protocols.arrays import Column, Devices, Gaps, Mask, PackedBits, Places, Tokens, Traits, Whole, smallest_unsigned
from protocols.errors import SurveyError, WireError
from protocols.mechanisms import Hashed
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey import with_paddings
from protocols.wire import Frame, Reject, decode_frame


class Retry(NamedTuple):
    """A report that was sent again, because a gateway did not take it.

    `same`: its bytes are those that came first. `request` has all bytes but the digits of answers.
    """

    period: int
    device: int
    same: bool
    request: bytes


class Observed:
    """Reports of devices 0 .. n-1 in some periods, and what only the audit knows: their values and attributes.

    Arrays are `[period, device]`; answers of absent devices, and to attributes that a device does not answer, are 0.
    Where values are sets, a further axis has their elements, paddings too. What devices drew for life is read from
    their reports, unless the audit knows their secret, as `respondent` does.
    """

    def __init__(self, scheme: Scheme, devices: int, periods: int, respondent: Respondent | None = None) -> None:
        self.scheme, self.devices, self.periods = scheme, devices, periods
        self._reads, everybody, shape = respondent is None, np.arange(devices, dtype=np.uint64), (periods, devices)
        self.present: Mask = np.zeros(shape, dtype=bool)
        self.answered: Mask = np.zeros(shape, dtype=bool)  # where devices take turns, some reports answer nothing
        self.gaps: Gaps = np.zeros(shape, dtype=np.uint16)
        self.tokens: Tokens = np.zeros(shape, dtype=np.uint64)
        self.sampled: Column | None = None  # the place of the attribute that a device answers truly; None: all
        if respondent is None:
            self.sampled = np.zeros(devices, dtype=np.int64) if scheme.discloses else None
        elif scheme.sampling:
            self.sampled = respondent.sampled(everybody)
        self.values, self.answers, self.traits = dict[str, Whole](), dict[str, Column](), dict[str, Traits]()
        self.around = dict[str, NDArray[Any]]()
        """What else was seen of reports: numbers as [period, device], bytes as [period, device, byte]."""
        self.retries = list[Retry]()
        for question in scheme.questions:
            name, encoding = question.name, question.mechanism.encoding
            layout, lifelong = encoding.answer, encoding.lifelong
            row = (layout.bytes,) if isinstance(layout, PackedBits) else ()
            elements = (question.several,) if question.sets else ()
            self.values[name] = np.zeros((*shape, *elements), dtype=smallest_unsigned(question.listed.k))
            self.answers[name] = np.zeros((*shape, *row), dtype=layout.dtype)
            self.traits[name] = np.zeros(devices, dtype=np.int64) if lifelong else None
            if respondent is not None:
                self.traits[name] = respondent.traits(question, everybody)
            elif lifelong and row:
                raise SurveyError("a report does not show which buckets a device has", "choose another mechanism")

    def knows(self, period: int, devices: Devices, values: Mapping[str, Whole]) -> None:
        """The truth of a period."""
        for question in self.scheme.questions:
            places = question.places(values)
            if question.sets:
                places = with_paddings(places, question.items.k, question.several)[:, : question.several]
            self.values[question.name][period, devices] = places

    def put(self, frame: Frame, rows: Places) -> None:
        """Reports of these devices."""
        self.present[frame.period, rows] = True
        self.answered[frame.period, rows] = bool(frame.answers)
        self.gaps[frame.period, rows] = frame.gaps
        self.tokens[frame.period, rows] = frame.tokens
        for name, column in frame.answers.items():
            self.answers[name][frame.period, rows] = column
            encoding = self.scheme.question(name).mechanism.encoding
            if self._reads and self.sampled is not None:
                self.sampled[rows] = self.scheme.survey.index(name)
            if self._reads and isinstance(encoding, Hashed):
                np.asarray(self.traits[name])[rows] = column // encoding.g

    @property
    def restart(self) -> int:
        """Before this period the audit starts its devices anew."""
        return self.periods // 2

    def answering(self, name: str) -> Mask:
        """The devices that answer this attribute."""
        if not self.scheme.discloses or self.sampled is None:
            return np.ones(self.devices, dtype=bool)
        return np.asarray(self.sampled == self.scheme.survey.index(name))

    def answering_first(self, name: str) -> Places:
        """The devices that answer this attribute in the first period."""
        return np.flatnonzero(self.answered[0] & self.answering(name))

    def there(self, periods: range) -> Mask:
        """The devices that report in all these periods."""
        return np.asarray(self.present[periods.start : periods.stop].all(axis=0))

    def kept(self, name: str, periods: range) -> Mask:
        """The devices whose value of this attribute is the same in all these periods."""
        values = self.values[name][periods.start : periods.stop]
        return np.asarray((values == values[0]).reshape(len(values), self.devices, -1).all(axis=(0, 2)))


class Witness:
    """A sink that sees the reports of devices 0 .. n-1, whose keyring the audit has."""

    partitions = 4

    def __init__(self, respondent: Respondent, devices: int, periods: int) -> None:
        self.observed = Observed(respondent.scheme, devices, periods, respondent)
        self._respondent, self._devices = respondent, np.arange(devices, dtype=np.uint64)
        self._period, self._tokens, self._rows = -1, np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.intp)
        self._order = self.observed.around["order"] = np.zeros((periods, devices))

    def send(self, partition: int, content_type: str, value: bytes) -> None:
        """A record, from the wire."""
        scheme = self.observed.scheme
        frame = decode_frame(value, {scheme.survey.id: scheme}.get)
        if isinstance(frame, Reject):
            raise WireError(f"a frame of the audit's own devices was refused: {frame.detail}", "this is a bug")
        if self._period != frame.period:
            tokens = self._respondent.tokens(self._devices, frame.period)
            self._period, self._rows = frame.period, np.argsort(tokens)
            self._tokens = tokens[self._rows]
        places = np.minimum(np.searchsorted(self._tokens, frame.tokens), len(self._tokens) - 1)
        if not np.array_equal(self._tokens[places], frame.tokens):
            raise WireError("a report has a token that none of the audit's devices made", "use a survey id of its own")
        rows = self._rows[places]
        self._order[frame.period, rows] = self.observed.present[frame.period].sum() + np.arange(len(rows))
        self.observed.put(frame, rows)

    def flush(self) -> None:
        """Nothing is waiting."""

    def close(self) -> None:
        """Nothing is open."""
