"""What memos show over time: how many bits they have, whether one device or two, and that a value changed.

(docs/audit.md, section 7.) What links two reports is in `protocols.privacy`.
"""

from __future__ import annotations

from math import comb, inf, log

import numpy as np

from protocols.arrays import PackedBits
from protocols.mechanisms import Buckets, Flip, Hashed, MatrixRound
from protocols.question import Question


def memo_bits(question: Question) -> float:
    """The entropy of a memo given the value, in bits: what unlimited reports can show of a device beyond its value."""
    first = question.mechanism.first
    if isinstance(first, MatrixRound):
        return float(np.mean([_entropy(row) for row in first.matrix]))
    size = question.mechanism.encoding.memo.count
    if isinstance(question.mechanism.encoding.memo, PackedBits):
        return _entropy([first.p, 1 - first.p]) + (size - 1) * _entropy([first.q, 1 - first.q])
    return _entropy([first.p, *[first.q] * (size - 1)])


def _entropy(chances: object) -> float:
    shares = np.asarray(chances, dtype=np.float64)
    shares = shares[shares > 0]
    return float(-(shares * np.log2(shares)).sum())


def trackability(question: Question, t: float) -> float | None:
    """The largest ln of P(2t reports are one device's) / P(they are t each of two devices with the same value).

    None for ordered values. Infinity: memos themselves are compared.

    >>> from protocols.scheme import Scheme
    >>> from protocols.survey_text import parse_survey
    >>> scheme = Scheme(parse_survey('''{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 2, eps_1: 1,
    ...  attributes: [{name: few, range: {last: 9}, mechanism: l-grr}]}'''))
    >>> [round(trackability(scheme.questions[0], t), 2) for t in (1, 2, inf)]
    [0.75, 2.26, 2.8]
    """
    first, second = question.mechanism.first, question.mechanism.second
    if isinstance(first, MatrixRound) or isinstance(second, MatrixRound):
        return None
    if second is None:
        second, t = Flip(1.0, 0.0), 1
    if not isinstance(question.mechanism.encoding.memo, PackedBits):
        return max(_one_or_two(chance, second.q / second.p, t) for chance in (first.p, first.q))
    zeros = (1 - second.p) / (1 - second.q)

    def bit(chance: float) -> float:
        return max(_one_or_two(chance, second.q / second.p, t), _one_or_two(1 - chance, zeros, t))

    return bit(first.p) + (question.mechanism.encoding.memo.count - 1) * bit(first.q)


def _one_or_two(chance: float, odds: float, t: float) -> float:
    """For reports that all name a memo that has this chance; odds: how likely another memo names it."""

    def likelihood(reports: float) -> float:
        return chance + (1 - chance) * odds**reports if odds or reports else 1.0

    return log(likelihood(2 * t if t != inf else inf)) - 2 * log(likelihood(t))


def change_shows(question: Question) -> float | None:
    """The chance that another value has another memo, so that linked reports can show a change. None if ordered."""
    encoding, first = question.mechanism.encoding, question.mechanism.first
    if isinstance(first, MatrixRound):
        return None
    kept = first.p * first.q + (1 - first.p) * (1 - first.q)  # a bit that one of both values sets, drawn alike twice
    idle = first.q**2 + (1 - first.q) ** 2
    if isinstance(encoding, Hashed):
        return (1 - 1 / encoding.g) * _symbols_differ(encoding.g, first)
    if isinstance(encoding, Buckets):
        held, ways = encoding.d, comb(encoding.k, encoding.d)
        neither = comb(encoding.k - 2, held) / ways
        both = comb(encoding.k - 2, held - 2) / ways if held > 1 else 0.0
        one = 1 - both - neither
        return 1 - neither - both * kept**2 * idle ** max(0, held - 2) - one * kept * idle ** (held - 1)
    if isinstance(encoding.memo, PackedBits):
        return 1 - kept**2 * idle ** (encoding.k - 2)
    return _symbols_differ(encoding.k, first)


def _symbols_differ(size: int, first: Flip) -> float:
    return 1 - (2 * first.p * first.q + (size - 2) * first.q**2)
