"""What is published does not change with the code that makes it: documents of the four examples, byte for byte."""

from __future__ import annotations

import json
import lzma

import pytest

from tests.views.documents import KEPT, SCENARIOS, documents


@pytest.fixture(scope="module")
def kept() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(lzma.decompress(KEPT.read_bytes()))
    return found


LONG = {"demand-year": pytest.mark.long(part="statistics")}  # five days of hours, with forecasts


@pytest.mark.parametrize("name", [pytest.param(name, marks=LONG.get(name, ())) for name in SCENARIOS])
def test_an_example_publishes_the_same_documents_as_ever(kept: dict[str, dict[str, str]], name: str) -> None:
    """Failure would look like: another digit, another order of keys, a document more or less."""
    made = documents(name)
    assert made.keys() == kept[name].keys()
    assert [key for key in made if made[key] != kept[name][key]] == []
