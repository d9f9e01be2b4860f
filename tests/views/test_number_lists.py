"""Long lists of numbers in JSON become arrays, with the same numbers, and nothing else does."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json, to_json

from stream_app.log.codec import compress
from views.encoding import digest, join
from views.number_lists import LONG_BYTES, parse

numbers = st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**53), 2**53))


def listed(tree: Any) -> Any:
    """The same with lists for arrays."""
    if isinstance(tree, np.ndarray):
        return [None if number != number else number for number in tree.tolist()]
    if isinstance(tree, dict):
        return {key: listed(entry) for key, entry in tree.items()}
    return [listed(entry) for entry in tree] if isinstance(tree, list) else tree


@given(st.lists(numbers, min_size=1, max_size=20))
def test_a_long_list_becomes_an_array_of_the_same_numbers(column: list[float | None]) -> None:
    text = to_json({"before": ["a"], "column": column * LONG_BYTES, "after": {"n": 1}})
    found = parse(text)
    assert isinstance(found["column"], np.ndarray)
    assert listed(found) == from_json(text)


def test_whole_numbers_stay_whole_numbers() -> None:
    found = parse(to_json({"counts": [2**62 + 1, 3] * LONG_BYTES}))
    assert found["counts"].dtype == np.int64
    assert found["counts"][0] == 2**62 + 1


@pytest.mark.parametrize(
    "tree",
    [
        {"text": 'x":[' + "1," * LONG_BYTES + "1]"},
        {"text": ":[" + "1," * LONG_BYTES + "1]"},
        {'key\\":[': ["1," * LONG_BYTES + "]"]},
        {"rows": [[1] * LONG_BYTES, [2] * LONG_BYTES]},
        {"texts": ["1"] * LONG_BYTES},
        {"mixed": [1, "a]"] * LONG_BYTES},
        {"short": [1.5, None]},
        {"": [0.5] * 3},
    ],
)
def test_what_is_no_long_list_of_numbers_is_read_as_it_is(tree: dict[str, Any]) -> None:
    assert parse(to_json(tree)) == tree


def test_keys_of_any_name_may_stand_beside_a_long_list() -> None:
    tree = {"": 0, "#": 1, "##": {"#": 5, "": {}}, "numbers": [1.5] * LONG_BYTES}
    found = parse(to_json(tree))
    assert found.pop("numbers").tolist() == tree.pop("numbers")
    assert found == tree


@pytest.mark.parametrize("column", ["1,,2", "1,2,", "nul", "1 2", "[1]x"])
def test_what_is_no_json_is_refused(column: str) -> None:
    with pytest.raises(ValueError, match="column"):
        parse(b'{"a":[%s]}' % (column + "," + "1," * LONG_BYTES + "1").encode())


def test_spaces_between_numbers_are_allowed() -> None:
    text = json.dumps({"a": [0.5] * LONG_BYTES}).encode()
    assert b", " in text
    assert parse(text) == {"a": [0.5] * LONG_BYTES}


def test_a_column_in_pieces_is_joined_from_long_and_short_ranges() -> None:
    column = [0.25, None, 3.0] * LONG_BYTES
    cut = len(column) - 2
    pieces = [
        compress(to_json({"columns": [{"path": "/a/0/b", "begin": begin, "entries": entries}]}))
        for begin, entries in ((cut, column[cut:]), (0, column[:cut]))
    ]
    tree: dict[str, Any] = {"a": [{"b": []}], "pieces": [digest(piece) for piece in pieces]}
    join(tree, pieces)
    assert listed(tree) == {"a": [{"b": column}], "pieces": []}
