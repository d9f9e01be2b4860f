"""Links lead somewhere, and every page can be found from the README."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import INLINE, ROOT, Page, pages

ROOMS = "protocols servers memo_store analytics producers stream_app audit hearsay deploy docs bench tests"
PLACE = re.compile(rf"({'|'.join(ROOMS.split())})/[\w./-]*")


@pytest.mark.parametrize("page", pages(), ids=str)
def test_links_lead_somewhere(page: Page) -> None:
    for link in page.links:
        name, _, anchor = link.partition("#")
        target = (page.path.parent / name).resolve() if name else page.path
        assert target.exists(), f"{page}: {link}"
        assert target.is_relative_to(ROOT), f"{page}: {link} leads out of the project"
        assert not anchor or anchor in Page(target).anchors, f"{page}: no heading #{anchor} in {target.name}"


@pytest.mark.parametrize("page", pages(), ids=str)
def test_files_and_folders_that_a_page_names_exist(page: Page) -> None:
    for place in filter(PLACE.fullmatch, INLINE.findall(page.prose)):
        assert (ROOT / place).exists(), f"{page}: {place}"


def test_every_page_can_be_found_from_the_readme() -> None:
    found, todo = set(), [ROOT / "README.md"]
    while todo:
        path = todo.pop()
        if path in found:
            continue
        found.add(path)
        if path.is_dir():
            todo += path.glob("*.md")
        elif path.suffix == ".md":
            page = Page(path)
            todo += [(path.parent / link.partition("#")[0]).resolve() for link in page.links if link[0] != "#"]
    assert [str(page) for page in pages() if page.path not in found] == []
