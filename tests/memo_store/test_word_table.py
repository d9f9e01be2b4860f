"""The table of commits against a dictionary."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memo_store.tables.word_table import SMALLEST, WordTable

crowded = st.integers(1, 40) | st.integers(2**64 - 40, 2**64 - 1) | st.integers(1, 2**64 - 1)


@given(
    st.lists(st.lists(st.tuples(crowded, st.integers(0, 2**64 - 1)), max_size=60), max_size=6),
    st.sampled_from([0, SMALLEST - 1, SMALLEST]),
)
def test_it_keeps_what_a_dictionary_would_keep(batches: list[list[tuple[int, int]]], expected: int) -> None:
    """Names crowd at both ends, so that searches run over the end of the table and begin again."""
    table, model = WordTable(expected), {}
    for batch in batches:
        table.add(np.array([name for name, _ in batch], np.uint64), np.array([word for _, word in batch], np.uint64))
        for name, word in batch:
            model.setdefault(name, word)
        asked = [*model, *(name ^ 1 for name in model if name != 1)]
        known, words = table.find(np.array(asked, dtype=np.uint64))
        assert known.tolist() == [name in model for name in asked]
        assert [word for word, there in zip(words.tolist(), known, strict=True) if there] == [
            model[name] for name in asked if name in model
        ]
        assert len(table) == len(model)


def test_it_grows_and_forgets_nothing() -> None:
    names = np.unique(np.random.default_rng(1).integers(1, 2**64 - 1, 20 * SMALLEST, dtype=np.uint64))
    table = WordTable()
    for part in np.array_split(names, 7):
        table.add(part, part ^ np.uint64(5))
    known, words = table.find(names)
    assert known.all() and (words == names ^ np.uint64(5)).all()
    assert sorted(table.entries()[0].tolist()) == names.tolist()
