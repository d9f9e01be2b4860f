"""How many values honest answers support: the law of their widths (docs/audit.md, section 9).

It does not depend on the shares of values for bit vectors, and hardly for hashes. So reports that were not made by the
survey's mechanism show in their widths, whatever people's values are.
"""

from __future__ import annotations

from math import log, log1p

import numpy as np

from protocols.arrays.aliases import Floats
from protocols.mechanisms.encodings import Unary, bit_flip
from protocols.mechanisms.fresh import FreshHash
from protocols.mechanisms.lifelong import Buckets, Hashed
from protocols.question import Question


def width_laws(question: Question) -> Floats:
    """The chances that an honest answer supports 0, 1 .. k values: the law of a survey is a mixture of the rows.

    One row where the law does not depend on the value; none where every answer supports one value, and for hashes that
    are new in every report: nearly all of them support the same number, whoever chose them.

    >>> from protocols.mechanisms.catalogue import RECORDS, build
    >>> from protocols.mechanisms.mechanism import Budget
    >>> from protocols.survey.attribute import Attribute
    >>> budget, three = Budget(1.0), Attribute(name="a", values=("x", "y", "z"))
    >>> width_laws(Question(three, build("oue", 3, budget), RECORDS["oue"], budget)).round(4).tolist()
    [[0.2672, 0.4638, 0.2328, 0.0362]]
    """
    encoding, k = question.mechanism.encoding, question.k
    if encoding.exclusive or isinstance(encoding, FreshHash):
        return np.zeros((0, k + 1))
    flip = bit_flip(question.mechanism.one_report)
    if isinstance(encoding, Hashed):
        sent = encoding.hashes[:, :, None] == np.arange(encoding.g)  # [hash, value, symbol]
        chances = np.where(sent, flip.p, flip.q) / encoding.family
        laws = [np.bincount(encoding.width_of, chances[:, value].ravel(), k + 1) for value in range(k)]
        return np.unique(np.round(laws, 15), axis=0)
    held = encoding.d if isinstance(encoding, Buckets) else k
    own = question.share if isinstance(encoding, Unary) and question.fake_kind == "zero" else held / k
    law = np.zeros(k + 1)
    law[: held + 1] = own * with_own_bit(held, flip.p, flip.q) + (1 - own) * binomial(held, flip.q)
    return law[None, :]


def with_own_bit(bits: int, p: float, q: float) -> Floats:
    """The chances of 0, 1 .. set bits, of which one is set with p and the others with q."""
    return np.convolve(binomial(bits - 1, q), [1 - p, p])


def binomial(n: int, q: float) -> Floats:
    """The chances of 0 .. n successes, in logarithms: their tails go far below the smallest float's accuracy."""
    if not 0 < q < 1:
        return np.asarray(np.eye(1, n + 1, n if q >= 1 else 0)[0])
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    times = np.arange(n + 1)
    logarithms = factorials[n] - factorials - factorials[::-1] + times * log(q) + (n - times) * log1p(-q)
    return np.asarray(np.exp(logarithms))
