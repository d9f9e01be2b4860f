"""What every mechanism must pass: `check_mechanism(scheme)` runs all of it on a survey's first attribute.

The draws are those of devices (keyed AES, thresholds in whole numbers), with a seeded key so that what passes once
passes always.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import chdtrc

from lab.seeded_keyrings import seeded_keyring
from protocols.arrays import Floats
from protocols.mechanisms import RECORDS, MatrixRound
from protocols.mechanisms.encodings import Unary
from protocols.mechanisms.fresh import FreshHash
from protocols.mechanisms.lifelong import Buckets, Hashed
from protocols.question import Question
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from tests.helpers.crowd import answers_of
from tests.helpers.enumeration import answers, whole_loss

REPORTS = 10  # per estimate: small, so that many estimates are made of few draws
CALM = 20_000  # devices of one value, for the chi-square
FREQUENCIES = (0.0, 0.1, 0.5, 0.9)


def check_mechanism(scheme: Scheme) -> None:
    """Run every check on the survey's first attribute."""
    for check in CHECKS:
        check(scheme)


def what_is_declared_is_spent_and_not_more(scheme: Scheme) -> None:
    survey, promise = scheme.survey, scheme.guarantees
    declared = survey.eps or survey.eps_1 or survey.eps_inf
    assert declared is not None
    lossy = survey.calibration == "published" and RECORDS[scheme.questions[0].mechanism.name].published_differs
    ordered = promise.between_neighbours(1)
    spent = ordered[scheme.questions[0].name] if ordered else promise.per_report.whole
    assert spent <= declared * (1 + 1e-9)
    assert lossy or spent >= 0.999 * declared
    if survey.eps_inf is not None:
        for_ever = max(promise.between_neighbours(float("inf")).values(), default=promise.for_ever.whole)
        assert 0.999 * survey.eps_inf <= for_ever <= survey.eps_inf * (1 + 1e-9)


def the_enumerated_channel_agrees(scheme: Scheme) -> None:
    """Every answer's chance under every value. Of a unary vector two bits do: the others are alike under both."""
    question = _small_twin(scheme.questions[0])
    if question.faked:
        return  # whole tuples are enumerated with the guarantees
    rows, _ = answers(question, 1, scheme.survey.longitudinal)
    assert rows.sum(axis=1) == pytest.approx(1, abs=1e-12)
    if rows.min() > 0:
        assert whole_loss(rows) == pytest.approx(scheme.guarantees.per_report.whole, rel=1e-9)


def draws_follow_the_channel(scheme: Scheme) -> None:
    """Devices that all have one value: how often each value is supported, and how often each two at once."""
    question = scheme.questions[0]
    for value in (0, question.k - 1):
        supports = _supports(scheme, np.full(CALM, value), seed=value).astype(np.float64)
        truth = np.eye(question.k)[value]
        chance, together = question.channel.support(truth), question.channel.joint(truth)
        _supports_pass_a_chi_square(supports.sum(axis=0), chance, together)
        often = CALM * together >= 10
        off = (supports.T @ supports - CALM * together)[often]
        assert (np.abs(off) <= 6 * np.sqrt(CALM * together * (1 - together))[often]).all()


def _supports_pass_a_chi_square(counts: NDArray[np.float64], chance: NDArray[np.float64], together: Floats) -> None:
    """With the channel's own covariance: Pearson's for direct answers, a sum of squares for independent bits."""
    often = CALM * np.minimum(chance, 1 - chance) >= 10
    chance = chance[often]
    covariance = together[np.ix_(often, often)] - np.outer(chance, chance)
    excess = counts[often] - CALM * chance
    statistic = excess @ np.linalg.pinv(covariance, rcond=1e-9) @ excess / CALM
    assert chdtrc(np.linalg.matrix_rank(covariance, tol=1e-9), statistic) > 1e-6


def estimates_are_unbiased_and_vary_as_said(scheme: Scheme) -> None:
    """Many small crowds: no cell's mean is off by 6 standard errors, no variance by 5 %, at f = 0, .1, .5 and .9."""
    question = scheme.questions[0]
    crowds = _crowds(question)
    ratios: dict[float, list[float]] = {}
    for seed, frequencies in enumerate(_populations(question.k)):
        values = _draw(tuple(frequencies), crowds * REPORTS)
        estimates = _estimate(question, _support_counts(scheme, values, crowds, seed) / REPORTS)
        formula = question.channel.variance(frequencies) / REPORTS
        expected = crowds * REPORTS * question.channel.support(frequencies)
        off = np.abs(estimates.mean(axis=0) - frequencies)
        assert (off <= 6 * np.sqrt(formula / crowds))[expected >= 10].all()  # one rare answer may be many errors
        measured = np.square(estimates - frequencies).mean(axis=0)
        often = expected >= 2_000  # what is never said cannot vary
        for f, ratio in zip(frequencies[often], (measured / formula)[often], strict=True):
            ratios.setdefault(float(f), []).append(float(ratio))
    for f in FREQUENCIES:
        assert np.mean(ratios[f]) == pytest.approx(1, abs=0.05), f"variance at f = {f}"


def averages_vary_as_said(scheme: Scheme) -> None:
    """Of T periods: the memo's variance, and a T-th of what round 2 adds (PROTOCOLS 3); if half have value 0."""
    question, crowds, periods = scheme.questions[0], 40_000, 6
    frequencies = np.array([0.5, 0.5] + [0.0] * (question.k - 2))
    values = _draw(tuple(frequencies), crowds * REPORTS)
    counts = [_support_counts(scheme, values, crowds, seed=1, period=period) for period in range(periods)]
    averages = _estimate(question, np.mean(counts, axis=0) / REPORTS)
    one, memo = question.channel.variance(frequencies), question.memo_channel.variance(frequencies)
    formula = (memo + (one - memo) / periods) / REPORTS
    ratios = np.square(averages - frequencies).mean(axis=0) / formula
    assert ratios == pytest.approx(1, abs=0.05)
    assert (memo < one).all()


CHECKS: list[Callable[[Scheme], None]] = [
    what_is_declared_is_spent_and_not_more,
    the_enumerated_channel_agrees,
    draws_follow_the_channel,
    estimates_are_unbiased_and_vary_as_said,
]


def _small_twin(question: Question) -> Question:
    """The same rounds over as few bits as two values can differ in."""
    encoding = question.mechanism.encoding
    if isinstance(encoding, Unary):
        return _with_size(replace(question, mechanism=replace(question.mechanism, encoding=Unary(2))), 2)
    if isinstance(encoding, Buckets):
        d = min(encoding.d, 2)
        return _with_size(replace(question, mechanism=replace(question.mechanism, encoding=Buckets(3, d))), 3)
    return question


def _with_size(question: Question, k: int) -> Question:
    return replace(question, attribute=question.attribute.model_copy(update={"values": tuple(map(str, range(k)))}))


def _supports(scheme: Scheme, values: NDArray[np.int64], seed: int, period: int = 0) -> NDArray[np.uint8]:
    """Which values each device's answer supports, decoded here from the answer itself."""
    question = scheme.questions[0]
    encoding = question.mechanism.encoding
    said = answers_of(question, Respondent(scheme, seeded_keyring(seed)), values, period)
    if isinstance(encoding, Unary | Buckets):
        return np.unpackbits(said, axis=1, count=question.k, bitorder="little")
    if isinstance(encoding, Hashed):
        number, symbol = np.divmod(said.astype(np.int64), encoding.g)
        return (encoding.sent.astype(np.uint8)[number] == symbol[:, None].astype(np.uint8)).view(np.uint8)
    if isinstance(encoding, FreshHash):
        number, symbol = np.divmod(said.astype(np.int64), encoding.g)
        vectors = np.array(list(product(range(encoding.g), repeat=encoding.digits)), dtype=np.float32)
        sent = vectors[number] @ vectors[: question.k].T % encoding.g
        return (sent == symbol[:, None]).view(np.uint8)
    return np.eye(question.k, dtype=np.uint8)[said]


def _support_counts(
    scheme: Scheme, values: NDArray[np.int64], crowds: int, seed: int, period: int = 0
) -> NDArray[np.uint8]:
    """How many devices of each crowd support each value."""
    supports = _supports(scheme, values, seed, period)
    return supports.reshape(crowds, REPORTS, supports.shape[1]).sum(axis=1, dtype=np.uint8)


def _estimate(question: Question, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    channel = question.channel
    if isinstance(channel, MatrixRound):
        return np.asarray(shares @ channel.votes)
    return np.asarray((shares - channel.floor) / channel.gain)


def _crowds(question: Question) -> int:
    """Enough for the variance of the variance: rare supports vary more."""
    chances = question.channel.support(np.eye(question.k)[0])
    return int(20_000 + 300 / chances[chances > 0.005].min())


def _populations(k: int) -> list[NDArray[np.float64]]:
    """Frequencies that have a 0, a .1, a .5 and a .9 among them."""
    shapes = [[0.5, 0.5], [0.9, 0.1], [1.0, 0.0]] if k == 2 else [[0.5, 0.1, 0.4], [0.9, 0.0, 0.1]]
    return [np.array(shape + [0.0] * (k - len(shape))) for shape in shapes]


@cache
def _draw(frequencies: tuple[float, ...], count: int) -> NDArray[np.int64]:
    return np.random.default_rng(7).choice(len(frequencies), size=count, p=frequencies)
