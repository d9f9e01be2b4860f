"""Comments that cite a section of docs/PROTOCOLS.md cite one that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECTIONS = set(re.findall(r"^## (\d+)\.", (ROOT / "docs" / "PROTOCOLS.md").read_text("utf-8"), re.M))
SOURCES = [path for room in ("protocols", "servers") for path in sorted((ROOT / room).rglob("*.py"))]
CITED = re.compile(r"PROTOCOLS (\d+)(?:(?: to | and |, )(\d+))?")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_cited_section_exists(path: Path) -> None:
    for found in CITED.finditer(path.read_text("utf-8")):
        assert {number for number in found.groups() if number} <= SECTIONS, found[0]


def test_sections_are_cited() -> None:
    cited = {number for path in SOURCES for number, _ in CITED.findall(path.read_text("utf-8"))}
    assert cited and len(SECTIONS) == 10
