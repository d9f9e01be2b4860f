"""The page's scripts: their pure parts in Node.js, and as one text for pages that are opened from a file."""

import re
from pathlib import Path

import pytest

from pages.static import ENTRY, VENDORED, assets, modules, read, script, style
from tests.helpers.node import node

SCRIPTS = Path(__file__).parent / "scripts"
DECLARED = re.compile(r"^(?:export )?(?:async )?(?:function|const|let|class) (\w+)", re.MULTILINE)
LARGEST_PAGE = 700_000


@pytest.mark.parametrize("file", sorted(SCRIPTS.glob("*.test.mjs")), ids=lambda file: file.name)
def test_the_pure_scripts_do_what_they_say(file: Path) -> None:
    ran = node("--test", file)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("entry", [ENTRY, "live/survey.js", "live/overview.js"])
def test_the_scripts_as_one_text_are_correct(entry: str) -> None:
    ran = node("--check", "-", stdin=script(entry))
    assert ran.returncode == 0, ran.stderr
    declared = [name for module in modules(entry) for name in DECLARED.findall(read(module))]
    assert sorted(declared) == sorted(set(declared)), "no two modules declare the same name"


def test_every_script_is_used_and_none_is_long() -> None:
    root = Path(str(assets()))
    scripts = {str(path.relative_to(root)): path for path in (root / "js").rglob("*.js")}
    assert set(modules(ENTRY)) == set(scripts)
    for name, path in scripts.items():
        assert path.read_text().count("\n") <= 300, name


def test_a_page_without_data_is_small_and_names_its_libraries() -> None:
    parts = [*map(read, VENDORED), script(), style(), read("page.html")]
    assert sum(len(part.encode()) for part in parts) < LARGEST_PAGE
    for name in ("d3", "plot"):
        assert "Permission to use" in read(f"vendor/LICENSE-{name}")
