"""The set of tokens seen."""

from __future__ import annotations

import numpy as np
import pytest

from stream_app.counting.tokens import TokenSet

RNG = np.random.default_rng(5)


def test_the_compiled_loop_says_what_its_twin_in_numpy_says() -> None:
    compiled, plain = TokenSet(), TokenSet()
    for _ in range(60):
        batch = RNG.integers(1, 5_000, size=RNG.integers(0, 300), dtype=np.uint64)
        new = compiled.insert(batch)
        assert (new == plain.insert_plainly(batch)).all()
    assert len(compiled) == len(plain)


def test_it_is_a_set() -> None:
    tokens, seen, held = RNG.integers(1, 3_000, size=20_000, dtype=np.uint64), set(), TokenSet()
    for batch in np.array_split(tokens, 37):
        expected = [not (int(token) in seen or seen.add(int(token))) for token in batch]
        assert held.insert(batch).tolist() == expected


def test_a_token_takes_about_16_bytes() -> None:
    held, sizes = TokenSet(), []
    for batch in np.array_split(RNG.integers(1, 1 << 63, size=100_000, dtype=np.uint64), 300):
        held.insert(batch)
        sizes.append(held.nbytes / len(held))
    assert max(sizes) <= 19.2
    assert min(sizes) < 12


@pytest.mark.parametrize("shift", [0, 3, 20, 40])
def test_chosen_tokens_do_not_pile_up(shift: int) -> None:
    """Tokens in a row, or equal in their low bits, would fill one long run of slots if slots came from them plainly."""
    held = TokenSet()
    held.insert(np.arange(1, 50_001, dtype=np.uint64) << np.uint64(shift))
    empty = np.flatnonzero(held._slots == 0)
    assert np.diff(empty).max() < 2_500  # up to 650 by chance in 160 tries, 50,000 if they did


def test_what_follows_the_expected_finds_room() -> None:
    held = TokenSet()
    held.expect(60_000)
    room = held.nbytes
    held.insert(np.arange(1, 60_001, dtype=np.uint64))
    assert held.nbytes / len(held) <= 19.2
    held.insert(np.arange(60_001, 99_001, dtype=np.uint64))
    assert held.nbytes == room
