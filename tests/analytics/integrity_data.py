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
    supports, laws = supported(question, rng.multinomial(n, shares), rng), width_laws(question)
    widths = np.zeros(0, dtype=np.int64) if question.channel.exclusive else rng.multinomial(n, laws[0])
    return answers(question, n, supports, widths)


def supported(question: Question, people: Whole, rng: np.random.Generator) -> Whole:
    """How many reports of so many people with each value support each value."""
    channel = question.channel
    if channel.exclusive:
        return np.asarray(sum(map(rng.multinomial, people, channel.matrix)))
    assert isinstance(channel, SupportChannel)
    return rng.binomial(people, channel.floor + channel.gain) + rng.binomial(people.sum() - people, channel.floor)
