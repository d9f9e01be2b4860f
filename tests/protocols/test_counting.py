"""Symbols, bits, hashes and buckets: drawn without bias, counted as one by one, and refused where there is none."""

from itertools import combinations
from math import exp, sqrt

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hearsay_device.questions import FRESH_PRIMES, MOST_HASHES
from lab.seeded_keyrings import seeded_keyring
from protocols.arrays.aliases import Column, Counts
from protocols.arrays.columns import count_bits, count_ones, count_symbols
from protocols.errors import InfeasibleError
from protocols.mechanisms import Flip, SupportChannel, fresh
from protocols.mechanisms.catalogue import RECORDS, build
from protocols.mechanisms.encodings import Unary, bit_flip
from protocols.mechanisms.fresh import FreshHash
from protocols.mechanisms.lifelong import Buckets, Hashed
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
    k = int(random.integers(g ** (digits - 1) + 1, g**digits + 1))
    column = answers.astype(np.uint32)
    assert np.array_equal(FreshHash(k, g).supports(column), plain(column, g, digits, k))


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


def test_more_bits_than_are_added_at_once_are_counted_and_what_is_no_answer_is_refused() -> None:
    assert count_bits(np.full((70_000, 1), 255, np.uint8), np.zeros(70_000, np.int64), 1, 8).tolist() == [[70_000] * 8]
    for symbols, groups in (([0, 3], [0, 0]), ([0, -1], [0, 0]), ([0, 0], [0, 2]), ([0, 0], [-1, 0]), ([0, 0], [0])):
        with pytest.raises(ValueError, match=r"one symbol of 0\.\.2 and one group of 0\.\.1"):
            count_symbols(np.array(symbols), np.array(groups), 2, 3)
    for groups in ([0, 2], [-1, 0], [0]):
        with pytest.raises(ValueError, match=r"one group of 0\.\.1"):
            count_bits(np.zeros((2, 1), dtype=np.uint8), np.array(groups), 2, 8)
    with pytest.raises(ValueError, match="more than 3 bits"):
        count_ones(np.array([[0xFF]], dtype=np.uint8), 3)
    assert FreshHash(9, 3).supports(np.array([26], dtype=np.uint8)).sum() == 3
    with pytest.raises(ValueError, match=r"not one of 0\.\.26"):
        FreshHash(9, 3).supports(np.array([5, 27], dtype=np.uint8))


def test_answers_that_are_too_many_for_one_transform_are_counted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = np.random.default_rng(1).integers(7**3, size=100).astype(np.uint16)
    monkeypatch.setattr(fresh, "MOST_AT_ONCE", 7)
    assert np.array_equal(FreshHash(49, 7).supports(answers), plain(answers, 7, 2, 49))


def test_sums_that_are_not_near_whole_numbers_are_no_supports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh, "_transformed", lambda answers, g, digits: np.full(g**digits, 0.3 * g))
    with pytest.raises(ArithmeticError, match="not near whole numbers"):
        FreshHash(9, 3).supports(np.array([1], dtype=np.uint8))


@pytest.mark.long(part="statistics")
def test_a_million_equal_answers_are_counted_exactly() -> None:
    """Nothing is farther from exact than a sum of many equal numbers: its error has one sign."""
    answer = np.full(1, 1234 * 53 + 17, dtype=np.uint32)
    counted = FreshHash(53**2, 53).supports(np.repeat(answer, 1 << 20))
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


LIFELONG = [g for g in FRESH_PRIMES if Hashed(2, g).digits > 1]  # one digit would send no two values together
K = 7
PRIOR = [0.4, 0.2, 0.1, 0.1, 0.1, 0.06, 0.04]
CHANNELS = {
    **{name: scheme_with(of_size(K, mechanism=name), eps_inf=2.0, eps_1=1.0) for name in ("l-grr", "l-osue", "loloha")},
    **{f"olh, {g}": scheme_with(of_size(K, mechanism="olh", parameter=g), eps=1.0) for g in (2, 3, 5)},
    "dbitflip": scheme_with(of_size(K, mechanism="dbitflip", parameter=3), eps_inf=2.0),
    **{
        name: scheme_with(of_size(K, mechanism=name), of_size(2, "b"), eps=1.0, solution="rs+fd")
        for name in ("grr", "oue-z", "sue-r")
    },
    "prior": scheme_with(
        of_size(K, mechanism="oue-r", prior=PRIOR), of_size(2, "b", prior=[0.5, 0.5]), eps=1.0, solution="rs+rfd"
    ),
}


@pytest.mark.parametrize(("k", "g"), [(2, 2), (7, 2), (7, 3), (27, 3), (30, 5), *((None, g) for g in LIFELONG)])
def test_any_two_values_are_sent_together_by_one_in_g_of_all_hashes(k: int | None, g: int) -> None:
    """Of fresh ones, and of lifelong ones in full: every pair of the largest domain, every hash."""
    if k is None:
        k = (Hashed(2, g).family - 1) // (g - 1)
        sent = Hashed(k, g).sent
        assert len(sent) <= 256
        assert all((np.bincount(column, minlength=g) * g == len(sent)).all() for column in sent.T), (
            "each value as often"
        )
    else:
        sent = FreshHash(k, g).hashed(np.arange(FreshHash(k, g).family)[:, None], np.arange(k)[None, :])
    together = sum((sent == symbol).astype(np.int64).T @ (sent == symbol) for symbol in range(g))
    assert (together[~np.eye(k, dtype=bool)] * g == len(sent)).all()


def test_a_domain_beyond_the_family_is_refused_with_what_is_possible() -> None:
    with pytest.raises(InfeasibleError, match="at most 255"):
        build("loloha", 256, Budget(1.0))
    with pytest.raises(InfeasibleError, match="possible here: 2, 3"):
        build("loloha", 100, Budget(1.0), 5)


def test_every_set_of_buckets_is_as_likely() -> None:
    draws = seeded_keyring(1).draws(("trait",), np.arange(60_000, dtype=np.uint64))
    held = Buckets(5, 3).traits(draws)
    assert held is not None and (np.diff(held, axis=1) > 0).all()
    found = {some: int((held == some).all(axis=1).sum()) for some in combinations(range(5), 3)}
    expected = 60_000 / len(found)
    assert sum((n - expected) ** 2 / expected for n in found.values()) < 37  # chi-square, 9 degrees: p > 2e-5


@pytest.mark.parametrize("k", [1, 8, 9, 256, 300])
@pytest.mark.parametrize("rows", [5, 3000])
def test_without_noise_a_cell_is_one_bit_and_the_cell_after_the_last_is_none(k: int, rows: int) -> None:
    draws = seeded_keyring(3).draws(("memo",), np.arange(rows, dtype=np.uint64))
    cells = np.arange(rows) % (k + 1)
    assert (Unary(k).memo.unpack(Unary(k).memoise(cells, Flip(1.0, 0.0), draws)) == np.eye(k + 1)[cells, :k]).all()


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_says_whether_devices_keep_something_for_life(name: str) -> None:
    record = RECORDS[name]
    draws = seeded_keyring(4).draws(("trait",), np.arange(3, dtype=np.uint64))
    for fits, budget in ((record.one_round, Budget(2.0)), (record.two_rounds, Budget(2.0, 1.0))):
        if fits is not None and not record.needs_grid:
            assert (build(name, 7, budget).encoding.traits(draws) is not None) == record.lifelong


@pytest.mark.parametrize("name", CHANNELS)
def test_a_part_of_the_joint_support_is_that_part_and_pairs_are_its_sum(name: str) -> None:
    channel = CHANNELS[name].questions[0].channel
    assert isinstance(channel, SupportChannel)
    random = np.random.default_rng(1)
    for frequencies in (random.dirichlet(np.ones(K)), np.eye(K)[2], np.zeros(K)):
        whole = channel.joint(frequencies)
        for group in (random.random(K) < 0.5, np.ones(K, dtype=bool), np.arange(K) == 2, np.zeros(K, dtype=bool)):
            part = whole[np.ix_(group, group)]
            assert channel.joint(frequencies, np.flatnonzero(group)) == pytest.approx(part)
            assert channel.pairs(frequencies, group) == pytest.approx(part.sum())
