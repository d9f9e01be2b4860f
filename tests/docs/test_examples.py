"""The Python that pages show computes what they say."""

from __future__ import annotations

import doctest

import pytest

from tests.docs.pages import Page, pages

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
LONG = {"docs/forecasting.md": pytest.mark.long(part="pages")}
SHOWING = [
    pytest.param(page, marks=LONG.get(str(page), ()))
    for page in pages()
    if any(block.language == "python" for block in page.blocks)
]


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
