"""A survey of very many values on a page: the most frequent ones, and how many there are."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser

from pages.about import survey_event
from pages.events import MOST_VALUES, mobility_events
from pages.static import static_page
from producers.scenarios import scenario
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from tests.helpers.published import publish
from tests.helpers.town import live
from tests.pages.viewing import rows, viewing

VALUES = 1_000


def test_a_page_of_many_values_has_the_most_frequent_first_and_says_of_how_many(
    browser: Browser, tmp_path: Path
) -> None:
    """Failure would look like: the smallest values of a range, called the most frequent."""
    survey = parse_survey(
        "{id: many, start: 2026-01-05T00:00:00Z, period: 1d, eps: 4, "
        f"attributes: [{{name: page, range: {{last: {VALUES - 1}}}, mechanism: olh}}]}}"
    )
    values = {attribute.name: attribute.values for attribute in survey.attributes}
    report = publish(live(Scheme(survey), scenario("telemetry", devices=500, periods=1, attributes=values)))
    file = tmp_path / "many.html"
    events = [survey_event(survey, notes=report.notes), *mobility_events(report)]
    file.write_text(static_page("Many", events), encoding="utf-8")
    with viewing(browser, file) as tab:
        shown = rows(tab, "page-window")
        assert f"The page has the {MOST_VALUES} most frequent of 1,000 values." in tab.inner_text("body")
    devices = [row["devices"] for row in shown]
    assert len(devices) == MOST_VALUES and devices == sorted(devices, reverse=True)
