"""The noise on what is published about presence, for surveys with `presence_epsilon` (PROTOCOLS 7).

The cells of a period are n[gap], reports by gap or by flags, with the budget e1; and N[value], supports of each value,
with e2. Everything published is computed from these cells.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from protocols.arrays.aliases import Column, Mask, Whole
from protocols.arrays.columns import PackedBits
from protocols.mechanisms.channels import SupportChannel
from protocols.mechanisms.encodings import bit_flip
from protocols.mechanisms.mechanism import Channel
from protocols.mechanisms.rounds import MatrixRound, with_own_bit
from protocols.question import Question

# Its own n[gap], and the two between which the device's next report moves.
CELLS_PER_PRESENCE = 3
NEVER_MORE = 2.0**-64  # the chance that an honest report supports more values than the largest number
LEAST_SHARE = 1 / 3  # of the budget for n[gap]


@dataclass(frozen=True)
class PresenceNoise:
    """How much noise the cells of a survey have.

    `largest` is, for each attribute, how many values one report may support: of this attribute where a report answers
    one, otherwise of all attributes together.
    """

    reports_epsilon: float  # e1
    supports_epsilon: float  # e2
    largest: dict[str, int]

    @property
    def epsilon(self) -> float:
        return self.reports_epsilon + self.supports_epsilon

    @property
    def reports_scale(self) -> float:
        """The scale of the noise on each n[gap]."""
        return CELLS_PER_PRESENCE / self.reports_epsilon

    def supports_scale(self, name: str) -> float:
        """The scale of the noise on each N[value] of an attribute; presence-only reports have no values."""
        return self.largest.get(name, 1) / self.supports_epsilon

    def too_many(self, answers: Mapping[str, Column], questions: Sequence[Question]) -> Mask | None:
        """Which reports support more values than the noise covers; None where they answer nothing."""
        asked = [question for question in questions if question.name in answers]
        counted = sum(_supported(question, answers[question.name]) for question in asked)
        return np.asarray(counted > self.largest[asked[0].name]) if asked else None


def presence_noise(epsilon: float, cells: int, questions: Sequence[Question], discloses: bool) -> PresenceNoise:
    """The noise of a survey, with its budget divided between n[gap] and N[value].

    The division gives shares the smallest error, if all values are equally frequent; but the numbers of visitors depend
    on n[gap] alone, so it gets at least a third.
    """
    together = [[question] for question in questions] if discloses else [list(questions)]
    largest = {question.name: _largest(group) for group in together for question in group}
    supports = sum(largest[q.name] ** 2 * _votes(q.channel) for q in questions)
    reports = CELLS_PER_PRESENCE**2 * cells * sum(_weight(q.channel, 1 / q.k) for q in questions)
    ratio = (reports / supports) ** (1 / 3)
    share = max(LEAST_SHARE, ratio / (1 + ratio))
    return PresenceNoise(share * epsilon, epsilon - share * epsilon, largest)


def geometric_variance(scale: float) -> float:
    """The variance of two-sided geometric noise, P(x) proportional to e^(-|x| / scale).

    >>> round(geometric_variance(3.0), 3)
    17.834
    """
    alpha = exp(-1 / scale)
    return 2 * alpha / (1 - alpha) ** 2


def share_variance(noise: PresenceNoise, question: Question, cells: int, frequency: float) -> float:
    """By n^2: the variance that this noise adds to the share of a value with this frequency, on average."""
    supports = geometric_variance(noise.supports_scale(question.name)) * _votes(question.channel)
    return supports + geometric_variance(noise.reports_scale) * cells * _weight(question.channel, frequency)


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
