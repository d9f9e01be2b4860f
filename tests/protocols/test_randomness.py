"""Where randomness comes from: one keyed stream, the same for one device and for a million, and nothing else."""

import ast
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import memo_store
import protocols
from lab.seeded_keyrings import seeded_keyring
from protocols.errors import SettingsError
from protocols.mechanisms import Direct
from protocols.mechanisms.rounds import grr
from protocols.randomness import Keyring
from protocols.randomness.sampling import Table, eight_bits
from protocols.respondent import Respondent
from tests.helpers.enumeration import exact
from tests.helpers.surveys import of_size, scheme_with


def devices(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.uint64)


def test_a_retry_repeats_the_report_and_another_period_does_not() -> None:
    scheme = scheme_with(of_size(100, mechanism="l-osue"), eps_inf=2.0, eps_1=1.0)
    question, respondent = scheme.questions[0], Respondent(scheme, seeded_keyring(1))
    memo = respondent.memoise(question, devices(50), np.zeros(50, dtype=np.int64))
    first = respondent.report(question, devices(50), 4, memo)
    assert (first == respondent.report(question, devices(50), 4, memo)).all()
    assert (first != respondent.report(question, devices(50), 5, memo)).any(axis=1).all()
    assert not np.intersect1d(respondent.tokens(devices(50), 4), respondent.tokens(devices(50), 5)).size


def test_each_value_gets_a_fake_of_its_own() -> None:
    """A fake that stayed while true values change would point at the attribute that is true."""
    scheme = scheme_with(of_size(50, mechanism="grr"), of_size(50, "b"), solution="rs+fd", eps_inf=6.0, eps_1=1.0)
    question, respondent = scheme.questions[0], Respondent(scheme, seeded_keyring(2))
    faking = devices(400)[respondent.sampled(devices(400)) == 1]
    before = respondent.memoise(question, faking, np.full(len(faking), 7))
    after = respondent.memoise(question, faking, np.full(len(faking), 8))
    assert (before != after).mean() > 0.9


def test_purposes_devices_tweaks_and_lanes_share_no_bits() -> None:
    ring = seeded_keyring(5)
    streams = [
        ring.draws(("a",), devices(1)),
        ring.draws(("b",), devices(1)),
        ring.draws(("a", ""), devices(1)),
        ring.draws(("a",), devices(2)[1:]),
        ring.draws(("a",), devices(1), 1),
        ring.draws(("a",), devices(1)).fork(1),
        ring.draws(("a",), devices(1)).fork(2),
    ]
    seen = {
        int(half)
        for stream in streams
        for drawn in (stream.blocks(4), stream.words(16), stream.further(np.zeros(4, dtype=np.intp), np.arange(4)))
        for half in drawn.reshape(-1).view("<u8")
    }
    assert len(seen) == (8 + 4 + 4) * len(streams)  # a block has two halves, a device alone has 16 words of a stream


@pytest.mark.parametrize("count", [1, 2, 5, 13])
@pytest.mark.parametrize("cells", [False, True], ids=["one tweak", "a tweak each"])
def test_any_selection_of_devices_in_any_order_draws_what_each_draws_alone(count: int, cells: bool) -> None:
    rng = np.random.default_rng(2)
    table = Table(rng.random(50), rng.random(50))  # leaves many words that need further bits
    low = np.uint64(1 << 40)
    selections = [
        np.arange(3, 3 * 2048, dtype=np.uint64),  # in a row
        np.arange(2048, dtype=np.uint64) + np.uint64((1 << 63) + 5),
        np.arange(2048, dtype=np.uint64)[::-1] + np.uint64((1 << 63) + 5),
        np.arange(3, 3 * 2048, dtype=np.uint64)[rng.random(3 * 2048 - 3) < 0.7],  # many neighbours
        rng.permutation(np.arange(2 * 2048, dtype=np.uint64)),
        rng.integers(0, 1 << 64, 2048, dtype=np.uint64),  # no neighbours
        np.repeat(low, 5),
    ]
    ring = seeded_keyring(9)
    for devices in selections:
        tweaks = (devices % np.uint64(11)).astype(np.int64) if cells else 4
        own, there = 8 * (devices % np.uint64(count)).astype(np.int64), devices % np.uint64(2) == 1
        together = table.sample(ring.draws(("a",), devices, tweaks), count, (own, there))
        for row in (0, 1, len(devices) // 2, len(devices) - 1):
            one = slice(row, row + 1)
            tweak = tweaks[one] if isinstance(tweaks, np.ndarray) else tweaks
            alone = table.sample(ring.draws(("a",), devices[one], tweak), count, (own[one], there[one]))
            assert np.array_equal(alone[0], together[row])


def test_a_short_secret_is_refused_and_none_is_shown() -> None:
    with pytest.raises(SettingsError, match="too short"):
        Keyring(b"secret")
    assert "61" not in repr(Keyring(b"a" * 32))


@pytest.mark.parametrize("k", [2, 3, 7, 1000, 70_000])
def test_a_table_has_the_probabilities_it_was_given(k: int) -> None:
    flip = grr(k, 1.0)
    table = Table([flip.p] + [flip.q] * (k - 1))
    wanted = [Fraction(flip.p)] + [Fraction(flip.q)] * (k - 1)
    total = sum(wanted)
    found = exact(table)
    assert sum(found) == 1
    assert all(abs(have - want / total) <= Fraction(1, 2**64) for have, want in zip(found, wanted, strict=True))


@pytest.mark.parametrize(("q", "p"), [(0.25, 0.5), (0.0812, 0.5), (0.1, 0.9)])
def test_eight_bits_are_independent_and_one_of_them_has_its_own_chance(q: float, p: float) -> None:
    table = eight_bits(q, p)
    for kind in range(9):
        found = exact(table, kind)
        assert sum(found) == 1
        chances = [Fraction(p) if bit == kind - 1 else Fraction(q) for bit in range(8)]
        for byte in range(256):
            wanted = Fraction(1)
            for bit, chance in enumerate(chances):
                wanted *= chance if byte >> bit & 1 else 1 - chance
            assert abs(found[byte] - wanted) < Fraction(1, 2**50)  # floats have 53 digits


@pytest.mark.parametrize("k", [255, 256, 257, 65_536, 65_537, 200_000])
def test_direct_answers_fit_domains_of_any_size(k: int) -> None:
    direct, flip = Direct(k), grr(k, 5.0)
    values = np.full(30_000, k - 1)
    said = direct.memoise(values, flip, seeded_keyring(k).draws(("a",), devices(len(values))))
    assert said.dtype == direct.answer.dtype and said.max() < k
    spread = (len(values) * flip.p * (1 - flip.p)) ** 0.5
    assert abs(int((said == k - 1).sum()) - len(values) * flip.p) < 6 * spread
    lies = said[said != k - 1]
    assert abs(lies.mean() / (k - 2) - 0.5) < 6 * (12 * len(lies)) ** -0.5


def test_no_generator_but_the_keystream_is_used_where_privacy_depends_on_it() -> None:
    offences = []
    rooms = [Path(str(room.__file__)).parent for room in (protocols, memo_store)]
    for path in (path for room in rooms for path in room.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Attribute):
                names = [node.attr, f"{ast.unparse(node.value)}.{node.attr}"]
            else:
                continue
            banned = {"random", "np.random", "numpy.random", "rvs"}
            if any(name in banned or name.startswith(("random.", "numpy.random.")) for name in names):
                offences.append(f"{path}:{node.lineno}")
    assert not offences
