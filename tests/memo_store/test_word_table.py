"""The table of commits against a dictionary."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memo_store.tables.period_commits import WordTable

names = st.integers(1, 40) | st.integers(1, 2**64 - 1)


@given(st.lists(st.lists(st.tuples(names, st.integers(0, 2**64 - 1)), max_size=60), max_size=6))
def test_it_keeps_what_a_dictionary_would_keep(batches: list[list[tuple[int, int]]]) -> None:
    table, model = WordTable(), {}
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
