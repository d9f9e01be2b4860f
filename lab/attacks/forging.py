"""Forged reports, counted and estimated like all others (docs/audit.md, section 6)."""

from collections.abc import Iterator

import numpy as np

from analytics.estimation import estimate
from lab.attacks.observed import Observed
from lab.audit.computed import FORGED, FORGERS, cheapest, forgeable, forgery_figure
from lab.audit.report import Figure
from protocols.arrays import Column, Floats, PackedBits
from protocols.mechanisms import FreshHash, Hashed, MatrixRound, SupportChannel
from protocols.question import Question


def forged_figures(observed: Observed) -> Iterator[Figure]:
    """How far forged reports, added to the honest ones of the first period, move the estimate of a value."""
    for question in forgeable(observed.scheme):
        rows, target = observed.answering_first(question.name), cheapest(question)
        forged = round(len(rows) * FORGED / (1 - FORGED))
        if not forged:
            continue
        honest, total = observed.answers[question.name][0][rows], len(rows) + forged
        liars = np.flatnonzero(observed.values[question.name][0][rows] == target)
        before = estimated(question, honest)
        for forgery in FORGERS if len(liars) else ("best", "random"):
            random = np.random.default_rng(0)
            if forgery == "lying":  # reports of devices that do have the target
                added = honest[random.choice(liars, forged)]
            else:
                added = (_best if forgery == "best" else _drawn)(question, target, forged, random)
            moved = estimated(question, np.concatenate([honest, added]))[target] - before[target]
            facts = {"measured": float(moved), "trials": forged}
            yield forgery_figure(question, target, forgery, forged / total, before, total, **facts)


def estimated(question: Question, reports: Column) -> Floats:
    """The shares of values, estimated from reports as they are published."""
    counts = question.mechanism.encoding.count(reports, np.zeros(len(reports), dtype=np.int64), 1)[0]
    return estimate(counts, len(reports), question.channel).value


def _best(question: Question, target: int, count: int, random: np.random.Generator) -> Column:
    """Every report supports the target; the rest looks like noise."""
    encoding = question.mechanism.encoding
    if isinstance(encoding, Hashed | FreshHash):
        chosen, wanted = random.integers(encoding.family, size=count), np.full(count, target)
        symbols = encoding.cells(wanted, chosen) if encoding.lifelong else encoding.hashed(chosen, wanted)
        return np.asarray(chosen * encoding.g + symbols, dtype=encoding.answer.dtype)
    if isinstance(encoding.answer, PackedBits):
        bits = np.zeros((count, question.k), dtype=np.uint8)
        if not encoding.lifelong:
            floor = question.channel.floor if isinstance(question.channel, SupportChannel) else 0.0
            bits[:] = random.random(bits.shape) < floor
        bits[:, target] = 1
        return encoding.answer.pack(bits)
    symbol = target
    if isinstance(question.channel, MatrixRound):
        symbol = int(question.channel.votes[:, target].argmax())
    return np.full(count, symbol, dtype=encoding.answer.dtype)


def _drawn(question: Question, target: int, count: int, random: np.random.Generator) -> Column:
    """Every possible report is equally likely."""
    encoding = question.mechanism.encoding
    if isinstance(encoding.answer, PackedBits):
        bits = (random.random((count, question.k)) < 0.5).astype(np.uint8)
        if encoding.lifelong:
            held = random.random((count, question.k)).argsort(axis=1)[:, : encoding.memo.count]
            mask = np.zeros_like(bits)
            np.put_along_axis(mask, held, 1, axis=1)
            bits &= mask
        return encoding.answer.pack(bits)
    return random.integers(encoding.answer.count, size=count).astype(encoding.answer.dtype)
