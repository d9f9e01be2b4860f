"""Honest and forged counts, drawn from the channels of questions."""

import numpy as np

from analytics.integrity import Answers
from protocols.arrays import Floats, Mask, Whole
from protocols.mechanisms import Flip, SupportChannel
from protocols.privacy import width_laws
from protocols.question import Question


def zipf(k: int) -> Floats:
    shares = 1 / np.arange(1, k + 1) ** 1.5
    return np.asarray(shares / shares.sum())


def reports(question: Question, n: int, shares: Floats, rng: np.random.Generator) -> Mask:
    """Which values each of n honest reports supports; of symbols, or of bits that are all true."""
    values = rng.choice(question.k, n, p=shares)
    if question.channel.exclusive:
        limits = question.channel.matrix.cumsum(axis=1)[values]
        symbols = (limits < rng.random(n)[:, None]).sum(axis=1).clip(max=question.k - 1)
        return np.asarray(np.arange(question.k) == symbols[:, None])
    flip = question.mechanism.one_report
    assert isinstance(flip, Flip)
    bits = rng.random((n, question.k)) < flip.q
    bits[np.arange(n), values] = rng.random(n) < flip.p
    return np.asarray(bits)


def counted(question: Question, bits: Mask) -> Answers:
    widths = np.bincount(bits.sum(axis=1), minlength=question.k + 1)
    return answers(question, len(bits), bits.sum(axis=0), widths)


def answers(question: Question, n: int, supports: Whole, widths: Whole) -> Answers:
    laws = width_laws(question)
    return Answers(n, supports, widths if len(laws) else widths[:0], question.channel, laws)


def honest(question: Question, n: int, shares: Floats, rng: np.random.Generator) -> Answers:
    """The same counts as of `reports`, but drawn at once: widths and supports each have their own law."""
    people = rng.multinomial(n, shares)
    channel, laws = question.channel, width_laws(question)
    if channel.exclusive:
        return answers(question, n, sum(map(rng.multinomial, people, channel.matrix)), np.zeros(0, dtype=np.int64))
    assert isinstance(channel, SupportChannel)
    supports = rng.binomial(people, channel.flip.p) + rng.binomial(n - people, channel.flip.q)
    return answers(question, n, supports, rng.multinomial(n, laws[0]))
