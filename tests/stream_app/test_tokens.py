"""The set of tokens seen."""

import numpy as np
import pytest
from numpy.typing import NDArray

from protocols.arrays import Mask, Tokens
from stream_app.counting.tables import SLOTS_PER_LINE
from stream_app.counting.tables.tokens import TokenSet

RNG = np.random.default_rng(5)
EMPTY, HALF = np.uint64(0), np.uint64(32)


class ReferenceTokenSet(TokenSet):
    """The same table, filled in numpy instead of by the compiled loop."""

    def insert(self, tokens: Tokens) -> Mask:
        self.reserve(len(tokens))
        distinct, first = np.unique(tokens, return_index=True)
        new = np.zeros(len(tokens), dtype=np.bool_)
        table = self._slots.reshape(-1, SLOTS_PER_LINE)
        lines = self._first_lines(distinct, len(table))
        while len(distinct):
            found = table[lines]
            seen, full = (found == distinct[:, None]).any(axis=1), found.all(axis=1)
            room = np.flatnonzero(~seen & ~full)
            room = room[np.unique(lines[room], return_index=True)[1]]  # of several that want one line, one gets it
            table[lines[room], (found[room] != EMPTY).sum(axis=1)] = distinct[room]
            new[first[room]] = True
            lines = (lines + (full & ~seen)) % len(table)
            seen[room] = True
            distinct, first, lines = distinct[~seen], first[~seen], lines[~seen]
        self._count += int(new.sum())
        return new

    def _first_lines(self, tokens: Tokens, count: int) -> NDArray[np.int64]:
        mixed = (tokens ^ self._keys[0]) * self._keys[1]
        mixed = (mixed ^ (mixed >> HALF)) * self._keys[2]
        return np.asarray(((mixed >> HALF) * np.uint64(count)) >> HALF, dtype=np.int64)


def test_the_compiled_loop_says_what_the_reference_says() -> None:
    compiled, reference = TokenSet(), ReferenceTokenSet()
    for _ in range(60):
        batch = RNG.integers(1, 5_000, size=RNG.integers(0, 300), dtype=np.uint64)
        new = compiled.insert(batch)
        assert (new == reference.insert(batch)).all()
    assert len(compiled) == len(reference)


def test_it_is_a_set() -> None:
    tokens, seen, held = RNG.integers(1, 3_000, size=20_000, dtype=np.uint64), set(), TokenSet()
    for batch in np.array_split(tokens, 37):
        expected = [not (int(token) in seen or seen.add(int(token))) for token in batch]
        assert held.insert(batch).tolist() == expected


@pytest.mark.parametrize("shift", [0, 3, 20, 40])
def test_chosen_tokens_do_not_pile_up(shift: int) -> None:
    """Consecutive tokens, or tokens with equal low bits, would fill one long run of slots if they were not hashed."""
    held = TokenSet()
    held.insert(np.arange(1, 50_001, dtype=np.uint64) << np.uint64(shift))
    empty = np.flatnonzero(held._slots == 0)
    assert np.diff(empty).max() < 2_500  # up to 650 by chance in 160 tries, 50,000 if they did
