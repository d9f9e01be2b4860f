"""Links lead somewhere, every page is found from the README, and the Python that pages show computes what they say."""

import doctest
import re
from collections.abc import Iterator

import pytest

from tests.docs.pages import INLINE, ROOT, Page, pages

ROOMS = "protocols servers memo_store analytics producers stream_app hearsay lab deploy docs bench tests"
PLACE = re.compile(rf"({'|'.join(ROOMS.split())})/[\w./-]*")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
LONG = {"docs/forecasting.md": pytest.mark.long(part="pages")}
SHOWING = [
    pytest.param(page, marks=LONG.get(str(page), ()))
    for page in pages()
    if any(block.language == "python" for block in page.blocks)
]


def test_links_lead_somewhere() -> None:
    wrong = [f"{page}: {said}" for page in pages() for said in dead_links(page)]
    assert not wrong, "\n".join(wrong)


def dead_links(page: Page) -> Iterator[str]:
    for link in page.links:
        name, _, anchor = link.partition("#")
        target = (page.path.parent / name).resolve() if name else page.path
        if not target.exists():
            yield link
        elif not target.is_relative_to(ROOT):
            yield f"{link} leads out of the project"
        elif anchor and anchor not in Page(target).anchors:
            yield f"no heading #{anchor} in {target.name}"


def test_files_and_folders_that_a_page_names_exist() -> None:
    named = [(page, place) for page in pages() for place in filter(PLACE.fullmatch, INLINE.findall(page.prose))]
    wrong = [f"{page}: {place}" for page, place in named if not (ROOT / place).exists()]
    assert not wrong, "\n".join(wrong)


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


@pytest.mark.parametrize("page", SHOWING, ids=str)
def test_examples_compute_what_the_page_says(page: Page) -> None:
    names: dict[str, object] = {}
    said: list[str] = []
    for block in page.blocks:
        if block.language == "python":
            parsed = doctest.DocTestParser().get_doctest(block.text, names, str(page), str(page.path), block.line - 1)
            assert parsed.examples, f"{page}, line {block.line}: no example; begin with >>>"
            doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(parsed, out=said.append, clear_globs=False)
            names |= parsed.globs
    assert not said, "".join(said)
