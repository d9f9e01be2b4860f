"""The page's scripts: their pure parts in Node.js, and as one text for pages that are opened from a file."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pages.static import ENTRY, VENDORED, assets, modules, read, script, style

SCRIPTS = Path(__file__).parent / "scripts"
PATIENCE_SECONDS = 120
DECLARED = re.compile(r"^(?:export )?(?:async )?(?:function|const|let|class) (\w+)", re.MULTILINE)
LARGEST_PAGE = 700_000


def node(*arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    program = shutil.which("node")
    if program is None:
        pytest.skip("there is no Node.js here (Debian: nodejs): the page's scripts are not tested")
    command = [program, *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)


@pytest.mark.parametrize("file", sorted(SCRIPTS.glob("*.test.mjs")), ids=lambda file: file.name)
def test_the_pure_scripts_do_what_they_say(file: Path) -> None:
    ran = node("--test", file)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_scripts_as_one_text_are_correct() -> None:
    ran = node("--check", "-", stdin=script())
    assert ran.returncode == 0, ran.stderr


def test_no_two_scripts_declare_the_same_name() -> None:
    declared = [name for module in modules(ENTRY) for name in DECLARED.findall(read(module))]
    assert sorted(declared) == sorted(set(declared))


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
