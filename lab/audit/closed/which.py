"""The chance to find the true attribute among fakes, whatever the spread of values (docs/audit.md, section 3).

Only one attribute of a report is true, so correlations between attributes do not help: the best guess is the attribute
with the largest ratio L_j = A_j(y_j) / F_j(y_j) of true to fake. Its accuracy is the mean of the largest ratio over
fake answers, divided by the number of attributes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf

import numpy as np

from protocols.arrays import Floats
from protocols.mechanisms import Flip
from protocols.privacy import mean_of_largest
from protocols.question import Question

GRID = 1 << 15
DRAWS = 50_000

Variable = tuple[Floats, Floats]


def attribute_inference(
    questions: Sequence[Question], spread: Mapping[str, Floats], t: float = 1
) -> tuple[float, bool]:
    """The accuracy of the best guess of the true attribute, and whether it is exact.

    `spread` has the shares of each attribute's values. t is 1, or infinity: the observer knows the memos. The ratios of
    drawn fakes of bits have no closed law; it is drawn, with the same draws every time.
    """
    assert t in (1, inf), "one report, or all of them"
    laws = [_ratios(question, spread[question.name], t) for question in questions]
    exact = all(exact for _, exact in laws)
    return mean_of_largest([law for law, _ in laws]) / len(questions), exact


def _ratios(question: Question, shares: Floats, t: float) -> tuple[Variable, bool]:
    """The law of true to fake of one attribute, over its fakes, and whether it is exact."""
    if t == inf:
        question = replace(question, mechanism=replace(question.mechanism, second=None))
    noise, fake = question.mechanism.one_report, question.fake
    assert isinstance(noise, Flip), "fakes are flips"
    if question.mechanism.encoding.exclusive:
        faked = np.asarray(question.fake_answer)
        return ((shares * noise.gain + noise.q) / faked, faked), True
    if fake is None:
        return _of_zero_vectors(noise, shares), True
    if np.allclose(shares, fake, rtol=0, atol=1e-12):
        return (np.ones(1), np.ones(1)), True  # a fake is perturbed like a true answer
    random = np.random.default_rng(0)
    bits = random.random((DRAWS, question.k)) < noise.q
    values = random.choice(question.k, DRAWS, p=fake / fake.sum())
    rows = np.arange(DRAWS)
    bits[rows, values] = random.random(DRAWS) < noise.p
    up, down = noise.p / noise.q, (1 - noise.p) / (1 - noise.q)
    ratio = (down + (up - down) * (bits @ shares)) / (down + (up - down) * (bits @ fake))
    return (ratio, np.full(DRAWS, 1 / DRAWS)), False


def _of_zero_vectors(noise: Flip, shares: Floats) -> Variable:
    """down + (up - down) times the sum of the shares whose bit is set, each with chance q: by convolution.

    A share between two points of the grid is divided between them, which keeps the mean.
    """
    up, down = noise.p / noise.q, (1 - noise.p) / (1 - noise.q)
    frequency = np.fft.rfftfreq(GRID) * 2 * np.pi
    law = np.ones(GRID // 2 + 1, dtype=np.complex128)
    size = GRID // 2
    for share, count in zip(*np.unique(shares, return_counts=True), strict=True):
        place = share * size
        low = np.floor(place)
        step = np.exp(-1j * frequency * low) * (1 - (place - low) + (place - low) * np.exp(-1j * frequency))
        law = law * (1 - noise.q + noise.q * step) ** count
    chances = np.maximum(np.fft.irfft(law, GRID), 0.0)[: size + len(shares) + 1]
    sums = np.arange(len(chances)) / size
    return down + (up - down) * sums, chances / chances.sum()
