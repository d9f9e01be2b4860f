"""The law of single answers: how often devices with each value support each value.

The support channel says it exactly (PROTOCOLS 1). Devices are independent, so each count is binomial.
"""

import numpy as np

from lab.attacks.observed import Observed
from lab.conduct.levels import binomial_chances, smallest
from protocols.arrays import Floats, Places, Whole
from protocols.mechanisms import above
from protocols.question import Question


def truths(question: Question, values: Whole) -> tuple[Floats, Places]:
    """The different true values, each as the elements that it has in a row; and which of them each device has."""
    if question.sets:
        different, of_device = np.unique(values, axis=0, return_inverse=True)
        held = np.zeros((len(different), question.k))
        np.put_along_axis(held, different.astype(np.int64), 1.0, axis=1)
        return held, of_device.reshape(-1)
    different, of_device = np.unique(values, return_inverse=True)
    if question.numeric:
        over = above(question.listed.k, question.several)[:, different].T
        return np.concatenate([over, 1 - over], axis=1), of_device
    return np.eye(question.k)[different], of_device


def answers_chance(question: Question, observed: Observed, period: int) -> float:
    """The chance of luck of the oddest count of one period, among all values and all that they support."""
    rows = np.flatnonzero(observed.answered[period] & observed.answering(question.name))
    if not len(rows):
        return 1.0
    held, of_device = truths(question, observed.values[question.name][period][rows])
    answers = observed.answers[question.name][period][rows]
    counts = question.mechanism.encoding.count(answers, of_device, len(held))
    devices = np.bincount(of_device, minlength=len(held))
    return smallest(binomial_chances(counts, devices[:, None], expected(question, held)))


def expected(question: Question, held: Floats) -> Floats:
    """How often devices with these elements support each value."""
    return np.clip(question.channel.support(held), 0.0, 1.0)
