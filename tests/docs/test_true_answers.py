"""How many answers of the demo are true, as pages say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hearsay.survey_files import example
from protocols.mechanisms import SupportChannel
from protocols.scheme import Scheme

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["README.md", "docs/concepts.md"])
def test_pages_say_how_many_of_the_demos_answers_are_true(page: str) -> None:
    """In closed form: an answer names the true value with the floor and the gain of its channel."""
    channel = Scheme(example("mobility-week")).question("gender").channel
    assert isinstance(channel, SupportChannel)
    true = float(channel.gain + channel.floor[0])
    text = " ".join((ROOT / page).read_text().split())
    assert f"{true:.1%}".replace("%", " %") in text and "never sees a true answer" not in text
