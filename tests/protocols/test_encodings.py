"""Hashes with no bias at all, for life and fresh, and buckets drawn without replacement."""

from itertools import combinations

import numpy as np
import pytest

from lab.seeded_keyrings import seeded_keyring
from protocols.errors import InfeasibleError
from protocols.mechanisms import Flip, SupportChannel
from protocols.mechanisms.builders.hashing import PRIMES
from protocols.mechanisms.catalogue import RECORDS, build
from protocols.mechanisms.encodings import Unary
from protocols.mechanisms.fresh import FreshHash
from protocols.mechanisms.lifelong import Buckets, Hashed
from protocols.mechanisms.mechanism import Budget
from tests.helpers.surveys import of_size, scheme_with

LIFELONG = [g for g in PRIMES if Hashed(2, g).digits > 1]  # one digit would send no two values together
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
    else:
        sent = FreshHash(k, g).hashed(np.arange(FreshHash(k, g).family)[:, None], np.arange(k)[None, :])
    together = sum((sent == symbol).astype(np.int64).T @ (sent == symbol) for symbol in range(g))
    assert (together[~np.eye(k, dtype=bool)] * g == len(sent)).all()


@pytest.mark.parametrize("g", LIFELONG)
def test_every_value_is_sent_everywhere_alike(g: int) -> None:
    hashes = Hashed(g + 1, g).sent
    for value in range(g + 1):
        assert (np.bincount(hashes[:, value], minlength=g) == len(hashes) // g).all()


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
        if fits is not None:
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
