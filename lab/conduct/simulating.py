"""Devices whose conduct deviates in a known way, drawn in arrays: what they need to be noticed is read from them."""

from collections.abc import Callable

import numpy as np

from protocols.arrays import Floats, Places, Whole
from protocols.mechanisms import Flip, Unary, noise_matrix
from protocols.question import Question

RUNS = 40  # in none of which the deviation may be missed
FEWEST = 40  # devices
MOST = 200_000
GROWTH = 1.25  # from one number of devices that is tried to the next


def enough(chance: Callable[[int, np.random.Generator], float], level: float) -> int:
    """The number of devices from which on a deviation was never missed; MOST if there is none up to it.

    The number is one step larger than the first one with which no run missed it.

    >>> enough(lambda devices, rng: 0.5 ** (devices / 10), 1e-6)
    298
    """
    devices = FEWEST
    while devices < MOST:
        rng = np.random.default_rng(devices)
        if all(chance(devices, rng) <= level for _ in range(RUNS)):
            return round(devices * GROWTH)
        devices = round(devices * GROWTH)
    return MOST


def noise_of(
    question: Question, values: Places, cells: Places, words: Floats, reports: int, rng: np.random.Generator
) -> Floats:
    """What `noise_seen` would show of devices that have `values`, and memoise `cells` with these words.

    `words` are uniform numbers, one a device; of bits each one is drawn with a word that follows from it.
    """
    if isinstance(question.mechanism.encoding, Unary):
        return _bits(question, cells, words, reports, rng)
    size = question.mechanism.encoding.memo.count
    first = noise_matrix(question.mechanism.first, size)
    shifts = _shift(first, words)
    seen = np.zeros((len(values), size))
    for _ in range(reports):
        again = _again(question, size, len(values), rng)
        total = (cells + shifts + again - values) % size
        seen[np.arange(len(values)), total] += 1 / reports
    return seen


def _shift(noise: Floats, words: Floats) -> Whole:
    """The shift that each word draws, by the row of the first symbol."""
    ends = np.cumsum(noise[0])
    return np.minimum(np.searchsorted(ends, words, side="right"), len(ends) - 1)


def _again(question: Question, size: int, devices: int, rng: np.random.Generator) -> Whole:
    second = question.mechanism.second
    if second is None:
        return np.zeros(devices, dtype=np.int64)
    return _shift(noise_matrix(second, size), rng.random(devices))


def _bits(question: Question, cells: Places, words: Floats, reports: int, rng: np.random.Generator) -> Floats:
    first = question.mechanism.first
    second = question.mechanism.second
    assert isinstance(first, Flip)
    places = np.arange(question.k)
    uniform = (words[:, None] + 0.6180339887498949 * places * (1 + words[:, None] * 1e3)) % 1.0
    own = cells[:, None] == places
    memo = uniform < np.where(own, first.p, first.q)
    seen = np.zeros(memo.shape)
    for _ in range(reports):
        chances = memo.astype(np.float64)
        if isinstance(second, Flip):
            chances = np.where(memo, second.p, second.q)
        seen += (rng.random(memo.shape) < chances) / reports
    return seen
