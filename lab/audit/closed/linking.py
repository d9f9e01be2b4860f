"""What memos show over time: how many bits they have, and that a value changed.

(docs/audit.md, section 7.) What links two reports is in `protocols.privacy`.
"""

from __future__ import annotations

import numpy as np

from protocols.arrays import PackedBits
from protocols.mechanisms import MatrixRound
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


def change_shows(question: Question) -> float | None:
    """The chance that another value has another memo, so that linked reports can show a change. None if ordered."""
    encoding, first = question.mechanism.encoding, question.mechanism.first
    return None if isinstance(first, MatrixRound) else encoding.memo_differs(first)
