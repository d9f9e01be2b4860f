"""The page of what a classifier learns, in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from lab.documents import learning_event
from lab.evaluation.scores import Mean
from lab.learning.comparing import Learnt
from pages.static import static_page
from tests.pages.viewing import draw_everything, problems, rows, viewing

pytestmark = pytest.mark.long(part="browser")


def test_the_page_shows_every_way_to_learn_by_budget(browser: Browser, tmp_path: Path) -> None:
    figures = {"accuracy": Mean(0.8, 0.01), "auc": Mean(0.85, float("nan")), "parity_gap": Mean(float("nan"), 0.0)}
    learnt = [Learnt("majority class", None, None, figures), Learnt("crosses", 1.0, 0.5, figures)]
    facts = {
        "source": "people.csv", "label": "<i>income</i>", "sensitive": "town", "attributes": {"town": 3}, "alpha": 0.5,
        "people": 700, "tried_on": 300, "runs": 2,
    }  # fmt: skip
    page = tmp_path / "learning.html"
    page.write_text(static_page("Learning", [learning_event(facts, learnt)]), encoding="utf-8")
    with viewing(browser, page) as shown:
        draw_everything(shown)
        assert "<i>income</i>" in shown.locator("h1").inner_text()
        assert shown.locator("#learnt-by-budget svg").count() >= 1
        assert [row["source"] for row in rows(shown, "learnt-by-budget")] == ["majority class", "crosses"]
        shown.get_by_label("Figure").select_option("parity_gap")
        draw_everything(shown)
        assert problems(shown) == []
