"""Long tests: each is in a part that is run, and a change runs those of the folders it touches."""

import re
from pathlib import Path

import pytest

from tests.long import MUTATIONS, PARTS, concerns
from tests.test_structure import ROOT


def test_every_part_has_tests_and_every_long_test_is_in_a_part() -> None:
    texts = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)]
    marked = {part for text in texts for part in re.findall(r"mark\.long\((.*?)\)", text)}
    assert marked == {f'part="{part}"' for part in PARTS if part != MUTATIONS}


def test_the_places_of_parts_exist() -> None:
    for place in {place for places in PARTS.values() for place in places}:
        assert (ROOT / place).exists() or (ROOT / "tests" / place).exists(), place


@pytest.mark.parametrize(
    ("changed", "runs"),
    [
        ("pages/about.py", True),
        ("README.md", True),
        ("tests/pages/towns.py", True),
        ("tests/helpers/town.py", True),
        ("producers/simulation.py", False),
        ("tests/producers/test_fleet.py", False),
        ("pages_of_others.py", False),
    ],
)
def test_a_part_is_run_for_its_folders_their_tests_and_what_helps_them(changed: str, runs: bool) -> None:
    assert concerns(("pages", "README.md"), [changed]) is runs
