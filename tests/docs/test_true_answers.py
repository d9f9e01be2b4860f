"""How many answers of the demo are true, as pages say it."""

from pathlib import Path

import pytest

from hearsay.survey_files import example
from protocols.mechanisms import SupportChannel
from protocols.scheme import Scheme

ROOT = Path(__file__).parents[2]
SAYING = "docs", "hearsay/serving/assets", "examples"


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
    pages = [*ROOT.glob("*.md"), *ROOT.glob("clients/*/README.md")]
    pages += [page for each in SAYING for page in (ROOT / each).rglob("*")]
    texts = {
        page: " ".join(page.read_text().split()) for page in pages if page.suffix in (".md", ".html", ".js", ".svg")
    }
    assert len(texts) > 50
    assert [(page.name, words) for page, text in texts.items() for words in FALSE if words in text] == []
