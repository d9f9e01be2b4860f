"""Links lead somewhere, every page is found, and what pages say and their Python computes is true."""

import doctest
import re
from collections.abc import Iterator

import pytest

from hearsay.survey_files import example
from protocols.mechanisms import SupportChannel
from protocols.scheme import Scheme
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


@pytest.mark.parametrize("page", ["README.md", "docs/concepts.md"])
def test_pages_say_how_many_of_the_demos_answers_are_true(page: str) -> None:
    """In closed form: an answer names the true value with the floor and the gain of its channel."""
    channel = Scheme(example("mobility-week")).question("gender").channel
    assert isinstance(channel, SupportChannel)
    true = float(channel.gain + channel.floor[0])
    text = " ".join((ROOT / page).read_text().split())
    assert f"{true:.1%}".replace("%", " %") in text


FALSE = (
    "sees a true answer", "sees only noise", "it links nothing", "learns nothing about delivered reports",
    "has them in memory", "cannot lose, sell", "sends nothing before",
)  # fmt: skip
"""What pages have said, and attacks have shown to be false."""


def test_no_page_says_what_was_shown_to_be_false() -> None:
    found = [*ROOT.glob("*.md"), *ROOT.glob("clients/*/README.md")]
    found += [page for each in ("docs", "hearsay/serving/assets", "examples") for page in (ROOT / each).rglob("*")]
    texts = {
        page: " ".join(page.read_text().split()) for page in found if page.suffix in (".md", ".html", ".js", ".svg")
    }
    assert len(texts) > 50
    assert [(page.name, words) for page, text in texts.items() for words in FALSE if words in text] == []
