"""Symbols, bits and answers with fresh hashes are counted as one by one, and what cannot be counted is refused."""

from math import exp, sqrt

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lab.seeded_keyrings import seeded_keyring
from protocols.arrays.aliases import Column, Counts
from protocols.arrays.columns import count_bits, count_ones, count_symbols
from protocols.mechanisms import fresh
from protocols.mechanisms.builders.hashing import MOST_HASHES
from protocols.mechanisms.catalogue import build
from protocols.mechanisms.encodings import bit_flip
from protocols.mechanisms.fresh import FreshHash, supports_of
from protocols.mechanisms.mechanism import Budget
from protocols.respondent import Respondent
from tests.helpers.mechanism_checks import answers_of
from tests.helpers.surveys import of_size, scheme_with

SIZES = [(2, 1), (2, 9), (3, 1), (3, 5), (5, 3), (7, 1), (7, 3), (11, 2), (23, 2), (31, 1), (53, 1)]


def plain(answers: Column, g: int, digits: int, k: int) -> Counts:
    """Answer by answer and value by value."""
    vectors = np.stack(np.unravel_index(np.arange(g**digits), (g,) * digits), axis=1)
    hashes, symbols = np.divmod(answers.astype(np.int64), g)
    return np.asarray((vectors[hashes] @ vectors[:k].T % g == symbols[:, None]).sum(axis=0))


@given(st.sampled_from(SIZES), st.integers(0, 300), st.floats(0, 1), st.integers(0, 1 << 30))
@example((53, 1), 300, 0.0, 1)
@example((3, 5), 300, 1.0, 2)  # only the hash 0
def test_supports_are_those_of_plain_counting(size: tuple[int, int], n: int, zeros: float, seed: int) -> None:
    (g, digits), random = size, np.random.default_rng(seed)
    answers = random.integers(g ** (digits + 1), size=n)
    answers[: int(zeros * n)] %= g
    k = int(random.integers(1, g**digits + 1))
    column = answers.astype(np.uint32)
    assert np.array_equal(supports_of(column, g, digits, k), plain(column, g, digits, k))


@given(st.integers(0, 300), st.integers(1, 70), st.integers(1, 5), st.integers(0, 1 << 30))
def test_symbols_and_bits_are_counted_as_one_by_one(n: int, k: int, size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    symbols, groups, bits = rng.integers(0, k, n), rng.integers(0, size, n), rng.random((n, k)) < 0.3
    counts, ones, widths = np.zeros((size, k)), np.zeros((size, k)), np.zeros(k + 1)
    for symbol, group, row in zip(symbols, groups, bits, strict=True):
        counts[group, symbol] += 1
        ones[group] += row
        widths[row.sum()] += 1
    packed = np.packbits(bits, axis=1, bitorder="little")
    assert np.array_equal(count_symbols(symbols.astype(np.uint16), groups.astype(np.uint8), size, k), counts)
    assert np.array_equal(count_bits(packed, groups.astype(np.uint16), size, k), ones)
    assert np.array_equal(count_ones(packed, k), widths)


def test_symbols_bits_groups_and_answers_that_are_none_are_refused() -> None:
    for symbols, groups in (([0, 3], [0, 0]), ([0, -1], [0, 0]), ([0, 0], [0, 2]), ([0, 0], [-1, 0]), ([0, 0], [0])):
        with pytest.raises(ValueError, match=r"one symbol of 0\.\.2 and one group of 0\.\.1"):
            count_symbols(np.array(symbols), np.array(groups), 2, 3)
    for groups in ([0, 2], [-1, 0], [0]):
        with pytest.raises(ValueError, match=r"one group of 0\.\.1"):
            count_bits(np.zeros((2, 1), dtype=np.uint8), np.array(groups), 2, 8)
    with pytest.raises(ValueError, match="more than 3 bits"):
        count_ones(np.array([[0xFF]], dtype=np.uint8), 3)
    assert supports_of(np.array([26], dtype=np.uint8), 3, 2, 9).sum() == 3
    with pytest.raises(ValueError, match=r"not one of 0\.\.26"):
        supports_of(np.array([5, 27], dtype=np.uint8), 3, 2, 9)


def test_answers_that_are_too_many_for_one_transform_are_counted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = np.random.default_rng(1).integers(7**3, size=100).astype(np.uint16)
    monkeypatch.setattr(fresh, "MOST_AT_ONCE", 7)
    assert np.array_equal(supports_of(answers, 7, 2, 49), plain(answers, 7, 2, 49))


def test_sums_that_are_not_near_whole_numbers_are_no_supports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh, "_transformed", lambda answers, g, digits: np.full(g**digits, 0.3 * g))
    with pytest.raises(ArithmeticError, match="not near whole numbers"):
        supports_of(np.array([1], dtype=np.uint8), 3, 2, 9)


@pytest.mark.long(part="statistics")
def test_a_million_equal_answers_are_counted_exactly() -> None:
    """Nothing is farther from exact than a sum of many equal numbers: its error has one sign."""
    answer = np.full(1, 1234 * 53 + 17, dtype=np.uint32)
    counted = supports_of(np.repeat(answer, 1 << 20), 53, 2, 53**2)
    assert np.array_equal(counted, plain(answer, 53, 2, 53**2) << 20)


@pytest.mark.parametrize("k", [100_000, 200_000, 1_000_000])
@pytest.mark.parametrize("eps", [0.5, 1.0, 2.0, 3.0, 3.4, 4.0])
def test_the_variance_is_near_the_optimum_for_any_number_of_values(k: int, eps: float) -> None:
    mechanism = build("olh", k, Budget(eps))
    assert isinstance(mechanism.encoding, FreshHash)
    assert mechanism.encoding.family <= MOST_HASHES and mechanism.encoding.answer.bytes <= 4
    seen = mechanism.encoding.seen(bit_flip(mechanism.first))
    assert seen.q * (1 - seen.q) / seen.gain**2 < 1.03 * 4 * exp(eps) / (exp(eps) - 1) ** 2


def test_very_many_values_at_a_large_budget_are_answered_and_counted_without_bias() -> None:
    scheme = scheme_with(of_size(150_000, mechanism="olh"), eps=4.0)
    question, n, own = scheme.questions[0], 5_000, 149_999
    encoding = question.mechanism.encoding
    assert isinstance(encoding, FreshHash)
    answers = answers_of(question, Respondent(scheme, seeded_keyring(1)), np.full(n, own), 0)
    supports = encoding.supports(answers)
    some = np.array([0, 1, 53, 52_000, 148_877, own])
    hashes, symbols = np.divmod(answers.astype(np.int64), encoding.g)
    assert np.array_equal(supports[some], (encoding.hashed(hashes[:, None], some) == symbols[:, None]).sum(axis=0))
    seen = encoding.seen(bit_flip(question.mechanism.first))
    assert abs(supports[own] / n - seen.p) < 5 * sqrt(seen.p * (1 - seen.p) / n)
    others = supports[:own]
    assert others.mean() / n == pytest.approx(1 / encoding.g, rel=0.05)
    assert others.var() == pytest.approx(n * seen.q * (1 - seen.q), rel=0.1)
