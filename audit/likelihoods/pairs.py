"""How much likelier two answers are if one device gave both than if two did (docs/audit.md, section 7).

The score of a pair is ln P(y, y' | one device) / (P(y) P(y')), where the device's value did not change in between. It
is a table for symbols, and a sum over bits for bit vectors (the bits are taken as independent).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from protocols.arrays import Column, Floats, PackedBits
from protocols.mechanisms import Buckets, Flip, Hashed
from protocols.privacy import memos_of
from protocols.question import Question

NEVER = 1e-300  # in place of a chance of 0, so that scores stay finite


@dataclass(frozen=True, eq=False)
class PairScores:
    """The score of any two answers to one question."""

    question: Question
    table: Floats | None  # of symbols
    cells: tuple[Floats, Floats, Floats] | None  # of bits: none set, one of both, both

    def between(self, later: Column, earlier: Column) -> Floats:
        """`[later, earlier]`"""
        encoding = self.question.mechanism.encoding
        if self.table is not None:
            size = len(self.table)
            a, b = (np.asarray(column, dtype=np.int64) for column in (later, earlier))
            scores = self.table[np.ix_(a % size, b % size)]
            if isinstance(encoding, Hashed):  # a device keeps its hash
                scores = np.where((a // size)[:, None] == (b // size)[None, :], scores, np.log(NEVER))
            return np.asarray(scores)
        assert self.cells is not None and isinstance(encoding.answer, PackedBits)
        none, one, both = self.cells
        ones, before = (encoding.answer.unpack(column).astype(np.float64) for column in (later, earlier))
        flips = one - none
        alone = (ones @ flips)[:, None] + (before @ flips)[None, :] + none.sum()
        return np.asarray((ones * (both - one - flips)) @ before.T + alone)


def pair_scores(question: Question, memoised: bool) -> PairScores:
    """The scores of pairs of answers to a question, with values spread evenly or like the survey's prior."""
    memos, encoding = memos_of(question, memoised), question.mechanism.encoding
    if not memos.bits:
        return PairScores(question, _table(memos.shares, memos.matrix), None)
    assert isinstance(memos.noise, Flip)
    ones = memos.shares
    if isinstance(encoding, Buckets):  # an answer shows a bit where it is held and set
        ones = np.full(question.k, ones[0] * encoding.d / question.k)
    return PairScores(question, None, _cells(ones, memos.noise))


def _table(memos: Floats, noise: Floats) -> Floats:
    both, marginal = noise.T @ (memos[:, None] * noise), memos @ noise
    return np.asarray(np.log(np.maximum(both, NEVER)) - np.log(np.outer(marginal, marginal)))


def _cells(ones: Floats, noise: Flip) -> tuple[Floats, Floats, Floats]:
    seen = ones * noise.gain + noise.q

    def score(count: int) -> Floats:
        up, down = (chance**count * (1 - chance) ** (2 - count) for chance in (noise.p, noise.q))
        return np.asarray(
            np.log(np.maximum(ones * up + (1 - ones) * down, NEVER)) - np.log(seen**count * (1 - seen) ** (2 - count))
        )

    return score(0), score(1), score(2)
