"""One device through the counters and the merge: what is released of it, in each of its possible histories.

Noise is left out: a stand-in keeps the numbers that would get it, with their series, their window and their scale.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.windows import Window
from protocols.arrays import Whole
from protocols.arrays.columns import PackedBits
from protocols.privacy import PresenceNoise
from protocols.question import Question
from protocols.randomness import Keyring
from protocols.scheme import PRESENCE_ONLY, Scheme
from protocols.survey.visits import NEVER
from protocols.wire import Frame
from stream_app.counting.counters import Counts, PeriodCounts
from stream_app.counting.partials import Part
from stream_app.merging.survey import Frozen, HeldPart, MergedSurvey, SurveyStatus

ABSENT = "absent"
LOST = "lost"
"""Settled by the device, which counts its next gap or flags from it, but never counted."""
NO_KEY = Keyring(bytes(16))


@dataclass(frozen=True)
class Number:
    """Which number is released: its series, its window, and its place among the numbers of both."""

    series: str
    window: Window
    place: int


@dataclass
class NoNoise:
    """In place of `Noise`: it adds nothing, and keeps what would get noise."""

    law: PresenceNoise
    exact: dict[Number, int] = field(default_factory=dict)
    scales: dict[Number, float] = field(default_factory=dict)

    def __call__(self, scheme: Scheme, keyring: Keyring) -> "NoNoise":
        return self

    def on(self, series: str, window: Window, exact: Sequence[int], scale: float) -> Whole:
        for place, number in enumerate(np.asarray(exact).tolist()):
            name = Number(series, window, place)
            # A table may show the number that its window has: with the same noise.
            assert self.exact.setdefault(name, number) == number
            assert self.scales.setdefault(name, scale) == scale
        return np.asarray(exact, dtype=np.int64)


@dataclass
class Codes:
    """In place of `Noise`: every number becomes a code of its own, which does not depend on what is counted."""

    law: PresenceNoise
    issued: set[Number] = field(default_factory=set)

    def __call__(self, scheme: Scheme, keyring: Keyring) -> "Codes":
        return self

    def on(self, series: str, window: Window, exact: Sequence[int], scale: float) -> Whole:
        names = [Number(series, window, place) for place in range(len(exact))]
        self.issued.update(names)
        return np.array([code(name) for name in names], dtype=np.int64)


def code(number: Number) -> int:
    """The code of a number: large, so that it is no count and no number of a period."""
    text = f"{number.series} {number.window.first} {number.window.last} {number.place}"
    return int.from_bytes(sha256(text.encode()).digest()[:6], "little")


@dataclass(frozen=True)
class Enumeration:
    """All histories of a device: `numbers[state of period 0, state of period 1, .., number]`."""

    states: Sequence[str]
    named: list[Number]
    scales: NDArray[np.float64]
    numbers: NDArray[np.int64]

    @property
    def periods(self) -> int:
        return self.numbers.ndim - 1

    def changes(self, removed: Sequence[int]) -> NDArray[np.int64]:
        """By how much each number changes if a device was not there in these periods: [history, number]."""
        here = self.numbers
        absent = self.numbers
        for period in removed:
            first = absent.take([0], axis=period)
            absent = np.broadcast_to(first, absent.shape)
        return np.abs(here - absent).reshape(-1, len(self.named))

    def most_changed(self, removed: Sequence[int]) -> dict[str, int]:
        """The most that a series changes, over all histories. The tables of questions are one series."""
        changes = self.changes(removed)
        found: dict[str, int] = {}
        names = np.array([series_of(number) for number in self.named])
        for name in dict.fromkeys(names.tolist()):
            found[name] = int(changes[:, names == name].sum(axis=1).max())
        return found

    def loss(self, removed: Sequence[int]) -> float:
        """How much likelier a release becomes at most, as an epsilon."""
        return float((self.changes(removed) / self.scales).sum(axis=1).max())


def series_of(number: Number) -> str:
    """The series of a number; tables of several questions belong to one."""
    return number.series.partition(": ")[0]


def enumerate_device(scheme: Scheme, noise: NoNoise, periods: int, states: Sequence[str]) -> Enumeration:
    """Every history of so many periods, in each of which the device is in one of the states.

    What is released until a period depends on the history until then: histories that begin alike share it.
    """
    device = OneDevice(scheme, noise)
    found = dict(device.walk((), None, {}, periods, states))
    named = list(next(iter(found.values())))
    assert all(list(numbers) == named for numbers in found.values()), "what is released does not depend on counts"
    shape = (len(states),) * periods + (len(named),)
    table = np.zeros(shape, dtype=np.int64)
    for history, numbers in found.items():
        table[history] = list(numbers.values())
    return Enumeration(states, named, np.array([noise.scales[name] for name in named]), table)


@dataclass
class OneDevice:
    """The releases of one device, period by period."""

    scheme: Scheme
    noise: NoNoise
    made: dict[tuple[int, int, str], Counts] = field(default_factory=dict)

    def walk(
        self,
        history: tuple[int, ...],
        before: Frozen | None,
        released: dict[Number, int],
        periods: int,
        states: Sequence[str],
    ) -> Iterator[tuple[tuple[int, ...], dict[Number, int]]]:
        """All histories that begin with this one, each with what is released."""
        if len(history) == periods:
            yield history, released
            return
        for place, state in enumerate(states):
            self.noise.exact = {}
            frozen = self.next(len(history), last_in(history, states), state, before)
            ends = {number.window.last for number in self.noise.exact}
            assert ends <= {len(history)}, "a number is released when its last period is closed"
            also = released | self.noise.exact
            assert len(also) == len(released) + len(self.noise.exact), "and only once"
            yield from self.walk((*history, place), frozen, also, periods, states)

    def next(self, period: int, last: int, state: str, before: Frozen | None) -> Frozen:
        """The final of a period in which the device is in some state."""
        return final_after(self.scheme, period, self.counts(period, last, state), before)

    def counts(self, period: int, last: int, state: str) -> Counts:
        """What the counters have of the device's report: `state` is the question that it answers."""
        key = period, last, state
        if key not in self.made:
            counter = PeriodCounts(self.scheme)
            if state not in (ABSENT, LOST):
                counter.count(report_of(self.scheme, period, last, state))
            self.made[key] = counter.snapshot()
        return self.made[key]


def final_after(
    scheme: Scheme, period: int, counts: Counts, before: Frozen | None, keyring: Keyring = NO_KEY, **missing: Any
) -> Frozen:
    """The final of a period with these counts, after the one of the period before; `missing` is not counted."""
    survey = scheme.survey.id
    merged = MergedSurvey(0, survey, SurveyStatus())
    part = Part(survey, period, 0, 0, closed=True, counts=counts, **missing)
    merged.parts[period, 0] = HeldPart(0, part)
    if before is not None:
        merged.finals[period - 1] = before
    merged.freeze(scheme, period, keyring)
    return merged.finals[period]


def last_in(history: Sequence[int], states: Sequence[str]) -> int:
    """The last period in which the device has settled a report."""
    settled = [period for period, place in enumerate(history) if states[place] != ABSENT]
    return settled[-1] if settled else NEVER


def report_of(scheme: Scheme, period: int, last: int, state: str) -> Frame:
    """A report whose answers support as many values as possible, and none that one of another period supports."""
    survey = scheme.survey
    asked = [question for question in scheme.questions if state == question.name or not scheme.discloses]
    if state == PRESENCE_ONLY:
        asked = []
    answers = {question.name: answer_of(scheme, question, period) for question in asked}
    visits = survey.visits.of(np.array([last]), period)
    return Frame(survey.id, scheme.fingerprint, period, np.array([1], dtype=np.uint64), visits, answers)


def answer_of(scheme: Scheme, question: Question, period: int) -> NDArray[np.uint8]:
    """An answer of one period: a value of its own, or as many bits of its own as a report may have."""
    if not isinstance(question.mechanism.encoding.answer, PackedBits):
        return np.array([period], dtype=np.uint8)
    assert scheme.presence is not None
    own = scheme.presence.largest[question.name]
    assert question.k >= own * (period + 1), "answers of all periods differ"
    bits = np.zeros(question.k, dtype=bool)
    bits[own * period : own * (period + 1)] = True
    return np.packbits(bits, bitorder="little")[None]
