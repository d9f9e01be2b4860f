"""The scripts of live pages."""

from __future__ import annotations

import pytest

from pages.dashboard.shell import assets
from pages.static import modules, read, script
from tests.pages.test_scripts import DECLARED, node

ENTRIES = ("live/survey.js", "live/overview.js")


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_scripts_as_one_text_are_correct(entry: str) -> None:
    ran = node("--check", "-", stdin=script(entry))
    assert ran.returncode == 0, ran.stderr
    declared = [name for module in modules(entry) for name in DECLARED.findall(read(module))]
    assert sorted(declared) == sorted(set(declared)), "no two modules declare the same name"


def test_every_script_of_a_page_is_served() -> None:
    assert all(found.body for found in assets().values())
    assert {name for name in assets() if name.endswith(".js")} == {
        "d3.min.js",
        "plot.umd.min.js",
        "page.js",
        "survey.js",
        "overview.js",
    }
