"""What every mechanism must pass: `check_mechanism(scheme)` runs all of it on a survey's first attribute.

The draws are those of devices (keyed AES, thresholds in whole numbers), with a seeded key so that what passes once
passes always.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import exp

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from protocols import Question, Respondent, Scheme
from protocols.channels import MatrixChannel, variance
from protocols.encodings import Buckets, Hashed, Unary
from protocols.simulation import seeded_keyring
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
    lossy = survey.calibration == "published" and "grr" in scheme.questions[0].mechanism.name
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
    """Chi-square over the supports of devices that all have one value, with the channel's own covariance."""
    question = scheme.questions[0]
    for value in (0, question.k - 1):
        counts = _support_counts(scheme, np.full(CALM, value), crowds=1, seed=value)[0]
        truth = np.eye(question.k)[value]
        expected = question.channel.support(truth)
        often = CALM * np.minimum(expected, 1 - expected) >= 10
        expected = expected[often]
        covariance = question.channel.joint(truth)[np.ix_(often, often)] - np.outer(expected, expected)
        excess = counts[often] - CALM * expected
        degrees = np.linalg.matrix_rank(covariance, tol=1e-9)
        statistic = excess @ np.linalg.pinv(covariance, rcond=1e-9) @ excess / CALM
        assert chi2.sf(statistic, degrees) > 1e-6


def estimates_are_unbiased_and_vary_as_said(scheme: Scheme) -> None:
    """Many small crowds: no cell's mean is off by 6 standard errors, no variance by 5 %, at f = 0, .1, .5 and .9."""
    question = scheme.questions[0]
    crowds = _crowds(question)
    ratios: dict[float, list[float]] = {}
    for seed, frequencies in enumerate(_populations(question.k)):
        values = _draw(tuple(frequencies), crowds * REPORTS)
        estimates = _estimate(question, _support_counts(scheme, values, crowds, seed) / REPORTS)
        formula = variance(question.channel, frequencies) / REPORTS
        off = np.abs(estimates.mean(axis=0) - frequencies)
        assert (off <= 6 * np.sqrt(formula / crowds)).all()
        measured = np.square(estimates - frequencies).mean(axis=0)
        often = crowds * REPORTS * question.channel.support(frequencies) >= 2_000  # what is never said cannot vary
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
    one, memo = variance(question.channel, frequencies), variance(question.memo_channel, frequencies)
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


def _support_counts(
    scheme: Scheme, values: NDArray[np.int64], crowds: int, seed: int, period: int = 0
) -> NDArray[np.int64]:
    """How many devices of each crowd support each value, decoded here from the answers themselves."""
    question = scheme.questions[0]
    encoding, k = question.mechanism.encoding, question.k
    said = answers_of(question, Respondent(scheme, seeded_keyring(seed)), values, period)
    if isinstance(encoding, Unary | Buckets):
        supports = np.unpackbits(said, axis=1, count=k, bitorder="little")
    elif isinstance(encoding, Hashed):
        number, symbol = np.divmod(said.astype(np.int64), encoding.g)
        supports = encoding.hashes.astype(np.uint8)[number] == symbol[:, None].astype(np.uint8)
    else:
        crowd = np.repeat(np.arange(crowds), len(values) // crowds)
        return np.bincount(crowd * k + said, minlength=crowds * k).reshape(crowds, k)
    return supports.reshape(crowds, -1, k).sum(axis=1, dtype=np.int64)


def _estimate(question: Question, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    channel = question.channel
    if isinstance(channel, MatrixChannel):
        return np.linalg.solve(channel.matrix.T, shares.T).T
    return np.asarray((shares - channel.floor) / channel.gain)


def _crowds(question: Question) -> int:
    """Enough for the variance of the variance: rare supports vary more."""
    rarest = float(question.channel.support(np.eye(question.k)[0]).min())
    return int(min(80_000, 20_000 + 300 / max(rarest, exp(-9))))


def _populations(k: int) -> list[NDArray[np.float64]]:
    """Frequencies that have a 0, a .1, a .5 and a .9 among them."""
    shapes = [[0.5, 0.5], [0.9, 0.1], [1.0, 0.0]] if k == 2 else [[0.5, 0.1, 0.4], [0.9, 0.1, 0.0]]
    return [np.array(shape + [0.0] * (k - len(shape))) for shape in shapes]


@cache
def _draw(frequencies: tuple[float, ...], count: int) -> NDArray[np.int64]:
    return np.random.default_rng(7).choice(len(frequencies), size=count, p=frequencies)
