"""The set of tokens seen."""

import numpy as np
import pytest

from stream_app.counting.tables.tokens import TokenSet

RNG = np.random.default_rng(5)


def test_it_is_a_set_whatever_the_batches() -> None:
    tokens, seen, held = RNG.integers(1, 3_000, size=20_000, dtype=np.uint64), set(), TokenSet()
    for batch in np.split(tokens, np.sort(RNG.integers(0, len(tokens), 60))):
        expected = [not (int(token) in seen or seen.add(int(token))) for token in batch]
        assert held.insert(batch).tolist() == expected
        assert len(held) == len(seen)


@pytest.mark.parametrize("shift", [0, 3, 20, 40])
def test_chosen_tokens_do_not_pile_up(shift: int) -> None:
    """Consecutive tokens, or tokens with equal low bits, would fill one long run of slots if they were not hashed."""
    held = TokenSet()
    held.insert(np.arange(1, 50_001, dtype=np.uint64) << np.uint64(shift))
    empty = np.flatnonzero(held._slots == 0)
    assert np.diff(empty).max() < 2_500  # up to 650 by chance in 160 tries, 50,000 if they did
