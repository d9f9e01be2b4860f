"""Where randomness comes from: one keyed stream, the same for one device and for a million, and nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import memo_store
import protocols
from lab.seeded_keyrings import seeded_keyring
from protocols.errors import SettingsError
from protocols.mechanisms import Direct, Flip, fitting
from protocols.mechanisms.encodings import Unary
from protocols.mechanisms.rounds import geometric, grr
from protocols.randomness import Keyring
from protocols.randomness.sampling import Rows, Table, eight_bits
from protocols.respondent import Respondent
from tests.helpers.crowd import answers_of
from tests.helpers.surveys import of_size, scheme_with

SURVEYS = {
    "one-shot": {"eps": 1.0},
    "memo only": {"eps_inf": 1.0},
    "two rounds": {"eps_inf": 2.0, "eps_1": 1.0},
}


def devices(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.uint64)


@pytest.mark.parametrize("terms", SURVEYS.values(), ids=SURVEYS)
@pytest.mark.parametrize("solution", ["smp", "spl", "rs+fd"])
def test_a_device_alone_answers_as_it_does_in_a_fleet(terms: dict[str, float], solution: str) -> None:
    scheme = scheme_with(of_size(5), of_size(60, "b"), solution=solution, **terms)
    respondent = Respondent(scheme, seeded_keyring(3))
    values = np.arange(200) % 5
    for question in scheme.questions:
        together = answers_of(question, respondent, values, period=9)
        cells = respondent.cells(question, devices(200), values)
        memos = respondent.memoise(question, devices(200), cells)
        for device in (0, 57, 199):
            own, value = np.array([device], dtype=np.uint64), values[[device]]
            memo = respondent.memoise(question, own, respondent.cells(question, own, value))
            assert (memo[0] == memos[device]).all()
            if scheme.survey.longitudinal:
                alone = respondent.report(question, own, 9, memo)
            else:
                alone = respondent.answer_once(question, own, 9, value)
            assert (alone[0] == together[device]).all()
    assert respondent.sampled(devices(200))[57] == respondent.sampled(np.array([57], dtype=np.uint64))[0]
    assert respondent.tokens(devices(200), 9)[57] == respondent.tokens(np.array([57], dtype=np.uint64), 9)[0]


@pytest.mark.parametrize("name", [record.name for record in fitting("memo only") if record.lifelong])
def test_what_is_for_life_is_the_same_alone_and_in_a_fleet(name: str) -> None:
    scheme = scheme_with(of_size(20, mechanism=name), eps_inf=2.0)
    question, respondent = scheme.questions[0], Respondent(scheme, seeded_keyring(4))
    values = np.arange(100) % 20
    together = answers_of(question, respondent, values)
    one = np.array([31], dtype=np.uint64)
    cells = respondent.cells(question, one, values[[31]])
    alone = respondent.report(question, one, 0, respondent.memoise(question, one, cells))
    assert (alone[0] == together[31]).all()


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


def test_no_devices_draw_nothing() -> None:
    nobody = seeded_keyring(1).draws(("a",), devices(0))
    assert len(Table([0.5, 0.5]).sample(nobody)) == 0
    assert Unary(20).memoise(np.zeros(0, dtype=np.int64), Flip(0.5, 0.3), nobody).shape == (0, 3)
    assert len(Rows(geometric(4, 1.0).matrix).sample(np.zeros(0, dtype=np.int64), nobody)) == 0


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
    exact = table.exact()
    assert sum(exact) == 1
    assert all(abs(have - want / total) <= Fraction(1, 2**64) for have, want in zip(exact, wanted, strict=True))


@pytest.mark.parametrize(("q", "p"), [(0.25, 0.5), (0.0812, 0.5), (0.1, 0.9)])
def test_eight_bits_are_independent_and_one_of_them_has_its_own_chance(q: float, p: float) -> None:
    table = eight_bits(q, p)
    for kind in range(9):
        exact = table.exact(kind)
        assert sum(exact) == 1
        chances = [Fraction(p) if bit == kind - 1 else Fraction(q) for bit in range(8)]
        for byte in range(256):
            wanted = Fraction(1)
            for bit, chance in enumerate(chances):
                wanted *= chance if byte >> bit & 1 else 1 - chance
            assert abs(exact[byte] - wanted) < Fraction(1, 2**50)  # floats have 53 digits


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


def sources(*rooms: object) -> Iterator[tuple[Path, ast.AST]]:
    for room in rooms:
        for path in sorted(Path(str(room.__file__)).parent.rglob("*.py")):  # type: ignore[attr-defined]
            yield path, ast.parse(path.read_text())


def test_no_generator_but_the_keystream_is_used_where_privacy_depends_on_it() -> None:
    offences = []
    for path, tree in sources(protocols, memo_store):
        for node in ast.walk(tree):
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


def test_protocols_do_not_reach_for_seeds() -> None:
    """The rooms above are kept away by an import contract; within the room, by this."""
    users = [
        path for path, tree in sources(protocols) if path.name != "simulation.py" and "seeded_keyring" in ast.dump(tree)
    ]
    assert not users
