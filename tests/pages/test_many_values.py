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
from tests.helpers.surveys import scheme_with
from tests.helpers.town import live
from tests.pages.viewing import rows, viewing, wait_until

VALUES = 1_000


def test_a_page_of_many_values_has_the_most_frequent_first_and_says_of_how_many(
    browser: Browser, tmp_path: Path
) -> None:
    """Failure would look like: the smallest values of a range, called the most frequent; or names of other values."""
    survey = parse_survey(
        "{id: many, start: 2026-01-05T00:00:00Z, period: 1d, eps: 4, "
        f"attributes: [{{name: page, range: {{first: -70, last: {7 * VALUES - 73}, step: 7}}, mechanism: olh}}]}}"
    )
    values = {attribute.name: attribute.values for attribute in survey.attributes}
    report = publish(live(Scheme(survey), scenario("telemetry", devices=500, periods=1, attributes=values)))
    shares = report.windows[0].attributes[0].values
    assert shares is not None
    most = values["page"][int(shares.share.value.argmax())]
    file = tmp_path / "many.html"
    events = [survey_event(survey, notes=report.notes), *mobility_events(report)]
    assert events[0]["record"]["attributes"][0].keys() >= {"range"} and most not in str(events)
    file.write_text(static_page("Many", events), encoding="utf-8")
    with viewing(browser, file) as tab:
        shown = rows(tab, "page-window")
        assert f"The page has the {MOST_VALUES} most frequent of 1,000 values." in tab.inner_text("body")
        tab.locator("#page-over-time input[name='filter.page']").fill(most)
        wait_until(tab, "document.querySelectorAll('#page-over-time .chart svg').length === 1")
        (left,) = rows(tab, "page-over-time")
    devices = [row["devices"] for row in shown]
    assert len(devices) == MOST_VALUES and devices == sorted(devices, reverse=True)
    assert {row["value"] for row in shown} < set(values["page"])
    assert left["value"] == shown[0]["value"] == most


def test_numbers_that_a_browser_cannot_tell_apart_are_sent_as_names() -> None:
    ends = {"first": 2**60, "last": 2**60 + 1}
    (attribute,) = survey_event(scheme_with({"name": "a", "range": ends}, eps=1).survey)["record"]["attributes"]
    assert attribute["values"] == [str(end) for end in ends.values()] and "range" not in attribute
