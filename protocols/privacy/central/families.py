"""The walks of each family of mechanisms (PROTOCOLS 11).

`report`: all the noise of one report hides it, where every report has fresh noise. `second`: memos are known, because
other periods show them, and only round 2 hides. Of bits, each that differs between two memos is then a release of its
own: readers see sums.
"""

from functools import lru_cache
from math import log
from typing import Literal

import numpy as np

from protocols.arrays.aliases import Floats
from protocols.arrays.columns import PackedBits
from protocols.mechanisms.fresh import FreshHash
from protocols.mechanisms.rounds import Flip, MatrixRound
from protocols.privacy.central.walks import Walks, mixture
from protocols.question import Question

Seen = Literal["report", "second"]
SYMBOLS, VECTORS = (48, 32), (32, 12, 24)  # bins of each kind of messages
ETAS = (0.02, 0.05, 0.1, 0.2, 0.4)  # of what could be labelled as one of both values, the part that is not
TYPICAL = 1e-8  # the delta by which labels are chosen; whatever is chosen is a bound


def walks_of(question: Question, crowd: int, seen: Seen, bins: tuple[int, int] = SYMBOLS) -> Walks:
    """The walks of one release among this number of honest answers; there are none of places, nor of memos alone.

    >>> from protocols.survey_text.parsing import parse_survey
    >>> from protocols.scheme import Scheme
    >>> (question,) = Scheme(parse_survey('''
    ... {id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps: 2,
    ...  attributes: [{name: hour, range: {last: 9}, mechanism: grr}]}''')).questions
    >>> [round(walks_of(question, crowd, "report").epsilon(1e-8), 3) for crowd in (12, 150, 1_000_000)]
    [2.0, 0.921, 0.009]
    """
    encoding = question.mechanism.encoding
    noise = question.mechanism.one_report if seen == "report" else question.mechanism.second
    if isinstance(noise, MatrixRound):
        return _labelled(tuple(map(tuple, noise.matrix.tolist())), crowd, bins)
    assert isinstance(noise, Flip), "a place, or a memo that is sent"
    if isinstance(encoding, FreshHash):
        return _hashes(crowd, encoding.g, noise)
    if not isinstance(encoding.memo, PackedBits):
        fakes = question.fake_answer if seen == "report" else None  # other periods show whose answers are fakes
        rate = noise.q if fakes is None else min(noise.q, float(fakes.min()))
        return _symbols(crowd, encoding.memo.count, noise, rate, bins)
    if seen == "report":
        return _vectors(crowd, noise)
    if abs(noise.p + noise.q - 1) < 1e-12:
        return _symbols(crowd, 2, noise, noise.q, bins)
    return _labelled(((1 - noise.q, noise.q), (1 - noise.p, noise.p)), crowd, bins)


def _symbols(crowd: int, k: int, noise: Flip, rate: float, bins: tuple[int, int]) -> Walks:
    """Messages name one of both values, or a third one."""
    p, q, kinds = noise.p, noise.q, min(k, 3) - 1
    others, victim, factors = (2 * rate, (k - 2) * rate), (p + q, 1 - p - q), ((p + q) / (p - q), 2 * q / (p - q))
    return mixture(crowd, others[:kinds], victim[:kinds], factors[:kinds], bins, log(p / q))


def _vectors(crowd: int, noise: Flip) -> Walks:
    """Of the bits of both values one is set, or both, or none."""
    p, q = noise.p, noise.q
    up, down = p / q, (1 - p) / (1 - q)
    others = 2 * down * q * (1 - q), down * q * q, down * (1 - q) ** 2
    victim = p * (1 - q) + (1 - p) * q, p * q, (1 - p) * (1 - q)
    factors = (up + down) / (up - down), 2 * up / (up - down), 2 * down / (up - down)
    return mixture(crowd, others, victim, factors, VECTORS, log(up / down))


def _hashes(crowd: int, g: int, noise: Flip) -> Walks:
    """The hash of a message sends one of both values to its symbol, or both, or neither."""
    p, q, apart = noise.p, noise.q, 1 - 1 / g
    others = 2 * q * apart, q / g, g * q - 2 * q * apart - q / g
    victim = apart * (p + q), p / g, 1 - apart * (p + q) - p / g
    factors = (p + q) / (p - q), 2 * p / (p - q), 2 * q / (p - q)
    return mixture(crowd, others, victim, factors, VECTORS, log(p / q))


@lru_cache(maxsize=64)
def _labelled(rows: tuple[tuple[float, ...], ...], crowd: int, bins: tuple[int, int]) -> Walks:
    """Any matrix: a message is labelled as the first value's, the second's, or as what both have in common.

    One figure holds for all pairs of values: it grows with how far two of them are apart, and falls with how often
    other devices send each label.
    """
    matrix = np.array(rows)
    most = float(np.log(matrix.max(axis=0) / np.maximum(matrix.min(axis=0), 1e-300)).max())
    found = []
    for eta in ETAS:
        apart, either, common = _labels(matrix, eta)
        if min(either, common, 1 - apart) <= 0:
            continue
        factors = 1.0, 2 * (1 - apart) * either / (apart * common)
        found.append(mixture(crowd, (2 * either, common), (apart, 1 - apart), factors, bins, most))
    alone = mixture(1, (0.0,), (1.0,), (1.0,), bins, most)
    return min([alone, *found], key=lambda walks: walks.epsilon(TYPICAL))


def _labels(matrix: Floats, eta: float) -> tuple[float, float, float]:
    """The largest distance of two rows, and the least chance of each label: one of both values, and in common."""
    least, apart, either, common = matrix.min(axis=0), 0.0, 1.0, 1.0
    for place, row in enumerate(matrix[:-1]):
        others = matrix[place + 1 :]
        distances = np.abs(others - row)
        total = distances.sum(axis=1, keepdims=True) / 2
        own, shared = distances / total, np.minimum(others, row)
        with np.errstate(divide="ignore", invalid="ignore"):
            rates = (1 - eta) * np.where(own > 0, least / own, np.inf).min(axis=1, keepdims=True)
            rest = np.where(shared > 0, (least - rates * own) / shared * (1 - total), np.inf).min()
        apart, either = max(apart, float(total.max())), min(either, float(rates.min()))
        common = min(common, float(rest))
    return apart, either, common
