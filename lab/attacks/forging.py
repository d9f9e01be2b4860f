"""Forged reports, counted and estimated like all others (docs/audit.md, section 6)."""

from __future__ import annotations

import numpy as np

from analytics.estimation import estimate
from audit.closed import Forgery, moved, moved_places
from lab.attacks.observed import Observed
from protocols.arrays import Column, Floats, PackedBits
from protocols.mechanisms import Buckets, FreshHash, Hashed, MatrixChannel, SupportChannel
from protocols.question import Question


def forged_gain(
    observed: Observed, question: Question, target: int, forgery: Forgery, beta: float
) -> tuple[float, int, float] | None:
    """Add forged reports to the honest ones of the first period.

    How far they move the estimate of the target, how many they are, and what the formula says; None if there are no
    reports to add them to.
    """
    rows = observed.answering_first(question.name)
    forged = round(len(rows) * beta / (1 - beta))
    honest, random = observed.answers[question.name][0][rows], np.random.default_rng(0)
    liars = np.flatnonzero(observed.values[question.name][0][rows] == target)
    if not forged or (forgery == "lying" and not len(liars)):
        return None
    if forgery == "lying":  # reports of devices that do have the target
        added = honest[random.choice(liars, forged)]
    elif forgery == "random":
        added = _drawn(question, forged, random)
    else:
        added = _best(question, target, forged, random)
    before, after = (estimated(question, reports) for reports in (honest, np.concatenate([honest, added])))
    total = forged + len(rows)
    if question.attribute.placed:
        expected = moved_places(question, target, forgery, forged / total, before, total)
    else:
        expected = moved(question, np.array([target]), forgery, forged / total, before)
    return float(after[target] - before[target]), forged, expected


def estimated(question: Question, reports: Column) -> Floats:
    """The shares of values, estimated from reports as they are published."""
    counts = question.mechanism.encoding.count(reports, np.zeros(len(reports), dtype=np.int64), 1)[0]
    return estimate(counts, len(reports), question.channel).value


def _best(question: Question, target: int, count: int, random: np.random.Generator) -> Column:
    """Every report supports the target; the rest looks like noise."""
    encoding = question.mechanism.encoding
    if isinstance(encoding, Hashed | FreshHash):
        chosen = random.integers(encoding.family, size=count)
        if isinstance(encoding, Hashed):
            symbols = encoding.hashes[chosen, target]
        else:
            symbols = encoding.hashed(chosen, np.full(count, target))
        return np.asarray(chosen * encoding.g + symbols, dtype=encoding.answer.dtype)
    if isinstance(encoding.answer, PackedBits):
        bits = np.zeros((count, question.k), dtype=np.uint8)
        if not isinstance(encoding, Buckets):
            floor = question.channel.floor if isinstance(question.channel, SupportChannel) else 0.0
            bits[:] = random.random(bits.shape) < floor
        bits[:, target] = 1
        return encoding.answer.pack(bits)
    symbol = target
    if isinstance(question.channel, MatrixChannel):
        symbol = int(question.channel.votes[:, target].argmax())
    return np.full(count, symbol, dtype=encoding.answer.dtype)


def _drawn(question: Question, count: int, random: np.random.Generator) -> Column:
    """Every possible report is equally likely."""
    encoding = question.mechanism.encoding
    if isinstance(encoding.answer, PackedBits):
        bits = (random.random((count, question.k)) < 0.5).astype(np.uint8)
        if isinstance(encoding, Buckets):
            held = random.random((count, question.k)).argsort(axis=1)[:, : encoding.d]
            mask = np.zeros_like(bits)
            np.put_along_axis(mask, held, 1, axis=1)
            bits &= mask
        return encoding.answer.pack(bits)
    return random.integers(encoding.answer.count, size=count).astype(encoding.answer.dtype)
