"""The noise on what is published about presence, for surveys with `presence_epsilon` (PROTOCOLS 7).

What is published is a set of *series*: lists of numbers that the terms and the calendar alone determine, each number
about fixed periods and released once. The *cost* of a series is the most that one presence can change it, summed over
all its numbers for ever. With two-sided geometric noise of scale b on each number, a presence changes the law of all
releases by a factor of at most exp(sum of cost / b), which is exp(presence_epsilon).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal, NamedTuple

import numpy as np

from protocols.arrays.aliases import Column, Mask, Whole
from protocols.arrays.columns import PackedBits
from protocols.mechanisms.channels import SupportChannel
from protocols.mechanisms.encodings import bit_flip
from protocols.mechanisms.mechanism import Channel
from protocols.mechanisms.rounds import MatrixRound, with_own_bit
from protocols.privacy.geometric import geometric_variance
from protocols.question import Question
from protocols.survey.released import Released

NEVER_MORE = 2.0**-64  # the chance that an honest report supports more values than the largest number
SHARE_OF_ANSWERS = 0.5  # of the budget, where answers are asked: numbers and tables are about equally useful

STEPS = 10**6
"""Scales are rounded up to a millionth: roots differ in their last digits between machines, and noise must not."""

What = Literal["reports", "answers", "visitors", "visitors by question", "new", "rolling", "supports"]


class SeriesName(NamedTuple):
    """What the numbers of a series count, and of which windows."""

    what: What
    of: str

    def __str__(self) -> str:
        return f"{self.what} of {self.of}"


REPORTS = SeriesName("reports", "period")
ANSWERS = SeriesName("answers", "period")
SUPPORTS = SeriesName("supports", "period")


def series_costs(released: Released, kinds: int, most: int) -> dict[SeriesName, int]:
    """The series of a survey, with the cost of each.

    `kinds` is how many kinds of reports are counted apart, `most` how many values one report may support.

    >>> for series, cost in series_costs(Released(("period", "week"), ("week",), ("period",)), 1, 3).items():
    ...     print(series, cost)
    reports of period 1
    visitors of week 1
    new of week 2
    supports of period 3
    """
    costs: dict[SeriesName, int] = {}
    for of in released.numbers:
        costs[SeriesName("reports" if of == "period" else "visitors", of)] = 1
    for of in released.new:
        costs[SeriesName("new", of)] = 2  # the presence may be its device's first; then a later one is
    for window in released.rolling:
        costs[SeriesName("rolling", window.name)] = ceil(window.days / window.every)
    for of in released.tables:
        of_periods = of == "period"
        if kinds > 1:
            named: What = "answers" if of_periods else "visitors by question"
            costs[SeriesName(named, of)] = 1 if of_periods else 2
        costs[SeriesName("supports", of)] = most if of_periods else 2 * most
    return costs


def series_scales(costs: Mapping[SeriesName, int], epsilon: float) -> dict[SeriesName, float]:
    """The scale of the noise of each series: the sum of cost / scale is epsilon.

    A part of the budget is for answers. Within both parts, scales are proportional to the cube roots of the costs: that
    makes the sum of the variances smallest.

    >>> scales = series_scales({SeriesName("reports", "period"): 1, SeriesName("new", "week"): 8}, 1.0)
    >>> {str(series): round(scale, 3) for series, scale in scales.items()}
    {'reports of period': 5.0, 'new of week': 10.0}
    """
    of_answers = {name: cost for name, cost in costs.items() if name.what == "supports"}
    of_numbers = {name: cost for name, cost in costs.items() if name not in of_answers}
    share = SHARE_OF_ANSWERS if of_answers else 0.0
    if not of_numbers:
        share = 1.0
    scales = {}
    for part, budget in ((of_numbers, (1 - share) * epsilon), (of_answers, share * epsilon)):
        total = sum(cost ** (2 / 3) for cost in part.values())
        for name, cost in part.items():
            exact = cost ** (1 / 3) * total / budget
            scales[name] = ceil(exact * STEPS + 1e-3) / STEPS
    return {name: scales[name] for name in costs}


@dataclass(frozen=True)
class PresenceNoise:
    """How much noise the numbers of a survey have.

    `largest` is, for each attribute, how many values one report may support: of this attribute where a report answers
    one, otherwise of all attributes together.
    """

    epsilon: float
    released: Released
    costs: Mapping[SeriesName, int]
    scales: Mapping[SeriesName, float]
    largest: Mapping[str, int]

    @property
    def supports_epsilon(self) -> float:
        """The part of the budget that tables have."""
        return sum(self.costs[name] / self.scales[name] for name in self.scales if name.what == "supports")

    @property
    def reports_epsilon(self) -> float:
        """The part of the budget that numbers of devices have."""
        return self.epsilon - self.supports_epsilon

    def supports_scale(self, question: str, of: str = "period") -> float:
        """The scale of the noise on each N[value] of a question.

        A report supports values of one question alone, or of all together. So questions of which it supports fewer need
        less noise.
        """
        return self.scales[SeriesName("supports", of)] * self.largest[question] / max(self.largest.values())

    def answers_scale(self, of: str = "period") -> float | None:
        """The scale of the noise on the number of answers to a question; None where it is not released."""
        by_question = ANSWERS if of == "period" else SeriesName("visitors by question", of)
        together = REPORTS if of == "period" else SeriesName("visitors", of)
        return self.scales.get(by_question, self.scales.get(together))

    def loss(self, periods: int, instances: Mapping[str, int], with_answers: bool = True) -> float:
        """What all presences of a device in so many periods change at most, as an epsilon.

        `instances` says in how many instances of each unit these periods lie, and on how many `days`.
        """
        total = 0.0
        for name, scale in self.scales.items():
            if name.what == "supports" and not with_answers:
                continue
            total += self._most_changed(name, periods, instances) / scale
        return total

    def _most_changed(self, name: SeriesName, periods: int, instances: Mapping[str, int]) -> float:
        cost = self.costs[name]
        if name.what == "new":
            return cost
        if name.what == "rolling":
            return self._rolling_changed(name, instances["days"])
        return cost * (periods if name.of == "period" else instances[name.of])

    def _rolling_changed(self, name: SeriesName, days: int) -> int:
        """How many windows contain one of so many consecutive days."""
        window = next(one for one in self.released.rolling if one.name == name.of)
        return min(days * self.costs[name], ceil((window.days + days - 1) / window.every))

    def too_many(self, answers: Mapping[str, Column], questions: Sequence[Question]) -> Mask | None:
        """Which reports support more values than the noise covers; None where they answer nothing."""
        asked = [question for question in questions if question.name in answers]
        counted = sum(_supported(question, answers[question.name]) for question in asked)
        return np.asarray(counted > self.largest[asked[0].name]) if asked else None


def presence_noise(
    epsilon: float, released: Released, kinds: int, questions: Sequence[Question], discloses: bool
) -> PresenceNoise:
    """The noise of a survey. `discloses`: whether a report answers one question only, and says which."""
    together = [[question] for question in questions] if discloses else [list(questions)]
    largest = {question.name: _largest(group) for group in together for question in group}
    costs = series_costs(released, kinds, max(largest.values()))
    return PresenceNoise(epsilon, released, costs, series_scales(costs, epsilon), largest)


def share_variance(noise: PresenceNoise, question: Question, frequency: float) -> float:
    """By n^2: the variance that this noise adds to the share of a value with this frequency in a period, on average."""
    of = "period" if "period" in noise.released.tables else noise.released.tables[0]
    answers = noise.answers_scale(of)
    supports = geometric_variance(noise.supports_scale(question.name, of)) * _votes(question.channel)
    if answers is None:
        return supports
    return supports + geometric_variance(answers) * _weight(question.channel, frequency)


def _votes(channel: Channel) -> float:
    """By how much noise on the supports is amplified: the sum of the squares of a value's votes, on average."""
    if isinstance(channel, SupportChannel):
        return 1 / channel.gain**2
    assert isinstance(channel, MatrixRound), "places do not go with noise on presence"
    return float((channel.votes**2).sum(axis=0).mean())


def _weight(channel: Channel, frequency: float) -> float:
    """The same for noise on the number of reports: the mean square of what a share changes by, times n."""
    if isinstance(channel, SupportChannel):
        return float(np.mean((channel.floor / channel.gain + frequency) ** 2))
    return frequency**2


def _largest(questions: Sequence[Question]) -> int:
    """How many values a report to these questions supports at most, but for a chance of 2^-64."""
    law, fixed = np.ones(1), 0
    for question in questions:
        encoding = question.mechanism.encoding
        if isinstance(encoding.answer, PackedBits):  # fakes support no more: a zero vector has no own bit
            law = np.convolve(law, with_own_bit(encoding.most, bit_flip(question.mechanism.one_report)))
        else:
            fixed += encoding.most
    beyond = np.cumsum(law[::-1])[::-1]  # [c]: the chance of c or more
    return int(np.count_nonzero(beyond > NEVER_MORE)) - 1 + fixed


def _supported(question: Question, answers: Column) -> Whole:
    """How many values each answer supports; of answers that are not bits, the most."""
    encoding = question.mechanism.encoding
    if isinstance(encoding.answer, PackedBits):
        return np.asarray(np.bitwise_count(answers).sum(axis=1, dtype=np.int64))
    return np.full(len(answers), encoding.most)
