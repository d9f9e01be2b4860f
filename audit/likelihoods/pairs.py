"""How much likelier two answers are if one device gave both than if two did (docs/audit.md, section 7).

The score of a pair is ln P(y, y' | one device) / (P(y) P(y')), where the device's value did not change in between. It
is a table for symbols, and a sum over bits for bit vectors (the bits are taken as independent). On a grid of very many
cells it depends on how far two answers are apart, as if the grid had no border.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from protocols.arrays import Column, Floats, PackedBits, Whole
from protocols.mechanisms import Buckets, Flip, FreshHash, Hashed, PlanarRound, bit_flip
from protocols.privacy import memos_of, pairs_of
from protocols.question import Question

FEW_VALUES = 4096
FEW_CELLS = 1024  # of a grid whose channel is gone through
NEVER = 1e-300  # in place of a chance of 0, so that scores stay finite


@dataclass(frozen=True, eq=False)
class PairScores:
    """The score of any two answers to one question."""

    question: Question
    table: Floats | None  # of symbols
    cells: tuple[Floats, Floats, Floats] | None  # of bits: none set, one of both, both
    by_distance: Floats | None = None  # of large grids: [row, column] of one answer from the other

    def between(self, later: Column, earlier: Column) -> Floats:
        """`[later, earlier]`"""
        encoding = self.question.mechanism.encoding
        if isinstance(encoding, FreshHash):
            return _of_fresh_hashes(encoding, bit_flip(self.question.mechanism.first), later, earlier)
        if self.by_distance is not None:
            return _of_cells(self.by_distance, later, earlier)
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
    encoding = question.mechanism.encoding
    if isinstance(encoding, FreshHash):
        return PairScores(question, None, None)
    plane = question.mechanism.first
    if isinstance(plane, PlanarRound) and question.k > FEW_CELLS:
        scores = np.maximum(pairs_of(question, memoised)[0].score, np.log(NEVER))
        return PairScores(question, None, None, scores.reshape(2 * plane.rows - 1, 2 * plane.columns - 1))
    memos = memos_of(question, memoised)
    if not memos.bits:
        return PairScores(question, _table(memos.shares, memos.matrix), None)
    assert isinstance(memos.noise, Flip)
    ones = memos.shares
    if isinstance(encoding, Buckets):  # an answer shows a bit where it is held and set
        ones = np.full(question.k, ones[0] * encoding.d / question.k)
    return PairScores(question, None, _cells(ones, memos.noise))


def _of_cells(scores: Floats, later: Column, earlier: Column) -> Floats:
    rows, columns = (size // 2 for size in scores.shape)  # the largest distances
    (up, across), (up_before, across_before) = (
        np.divmod(column.astype(np.int64), columns + 1) for column in (later, earlier)
    )
    return np.asarray(
        scores[up[:, None] - up_before[None, :] + rows, across[:, None] - across_before[None, :] + columns]
    )


def _of_fresh_hashes(encoding: FreshHash, noise: Flip, later: Column, earlier: Column) -> Floats:
    """Answers to few values are compared value by value; to many, only by whether their hashes divide them alike."""
    g = encoding.g
    columns = [np.divmod(column.astype(np.int64), g) for column in (later, earlier)]
    if encoding.k <= FEW_VALUES:
        values = np.arange(encoding.k)[None, :]
        sent = [encoding.hashed(hashes[:, None], values) == symbols[:, None] for hashes, symbols in columns]
        one, other = (np.where(supported, noise.p, noise.q) for supported in sent)
        marginal = np.outer(one.mean(axis=1), other.mean(axis=1))
        return np.asarray(np.log(one @ other.T / encoding.k) - np.log(marginal))
    (a, y), (b, z) = (_scaled(encoding, *column) for column in columns)
    same = noise.p**2 + (g - 1) * noise.q**2
    score = np.where(y[:, None] == z[None, :], np.log(g * same), np.log(g / (g - 1) * (1 - same)))
    return np.where((a[:, None] == b[None, :]) & (a > 0)[:, None], score, 0.0)


def _scaled(encoding: FreshHash, hashes: Whole, symbols: Whole) -> tuple[Whole, Whole]:
    """Answers that divide the values alike, made equal: multiplied so that the last digit other than 0 is 1."""
    g, rest, last = encoding.g, hashes.copy(), np.zeros_like(hashes)
    for _ in range(encoding.digits):
        last = np.where(last == 0, rest % g, last)
        rest //= g
    factor = np.array([pow(digit, -1, g) if digit else 1 for digit in range(g)])[last]
    scaled, power, rest = np.zeros_like(hashes), 1, hashes.copy()
    for _ in range(encoding.digits):
        scaled += rest % g * factor % g * power
        rest //= g
        power *= g
    return scaled, symbols * factor % g


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
