"""A survey with a cross on a page and in tables: the numbers of the records, by both attributes and their groups."""

import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

from analytics.mobility import MobilityReport, tables, with_truth
from analytics.windows import Window
from hearsay.reports.page import write_page
from hearsay.running.simulating import count_windows
from producers.scenarios import Scenario, scenario
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from tests.helpers.published import publish
from tests.helpers.town import live
from tests.pages.viewing import problems, rows, viewing, wait_until

pytestmark = pytest.mark.long(part="browser")

SCHEME = Scheme(
    parse_survey("""{id: town, start: 2026-01-05T00:00:00Z, period: 1d, eps_inf: 5, eps_1: 3, attributes: [
        {name: age, values: [young, middle, old], groups: {grown: [middle, old]}},
        {name: area, role: area, values: [north, south, west, east], groups: {hills: [west, east]}}],
        crosses: [{of: [age, area], share: 0.6}]}""")
)
LAST = Window(1, 1)


def people() -> Scenario:
    values = {attribute.name: attribute.values for attribute in SCHEME.survey.attributes}
    return scenario("telemetry", devices=3000, periods=2, attributes=values)


@pytest.fixture(scope="module")
def report() -> MobilityReport:
    known = count_windows(people(), [Window(0, 0), LAST], [("age", "area")])
    return with_truth(publish(live(SCHEME, people())), known)


@pytest.fixture(scope="module")
def page(report: MobilityReport, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("pages") / "pairs.html"
    write_page(file, SCHEME.survey, report)
    return file


def test_the_truth_of_pairs_is_that_of_the_people(report: MobilityReport) -> None:
    there = people().presences(1).values
    both = np.bincount(there["age"].astype(int) * 4 + there["area"], minlength=12)
    shares = report.window(1, 1).attribute("age*area").values
    assert shares is not None and shares.truth is not None and shares.truth.tolist() == both.tolist()


def test_the_heat_map_has_the_numbers_of_the_records(browser: Browser, page: Path, report: MobilityReport) -> None:
    window = report.window(1, 1)
    part = window.attribute("age*area")
    assert part.values is not None and part.groups is not None and window.visitors is not None
    found = part.values.people(window.visitors)
    with viewing(browser, page, "#window=1-1") as tab:
        shown = rows(tab, "of-age-by-area")
        assert tab.locator("#of-age-by-area .heat .cell").count() == 12
        assert "young, north: " in (tab.locator("#of-age-by-area .heat title").first.text_content() or "")
        assert tab.locator("#of-age-by-area h3").inner_text() == "Age by area"
    assert [(row["age"], row["area"]) for row in shown[:5]] == [
        ("young", "north"), ("young", "south"), ("young", "west"), ("young", "east"), ("middle", "north"),
    ]  # fmt: skip
    for place, row in enumerate(shown):
        ends = [getattr(found, end)[place] for end in ("value", "low", "high")]
        assert [row["people"], row["low"], row["high"]] == pytest.approx(ends)
        assert part.values.adjusted is not None and part.values.consistent is not None and part.values.truth is not None
        for figure in ("adjusted", "adjusted_low", "adjusted_high", "consistent", "consistent_low", "consistent_high"):
            assert row[figure] == getattr(part.values, figure)[place]
        assert row["truth"] == part.values.truth[place]
    for fit in ("adjusted", "consistent"):
        value, low, high = (100 * getattr(part.values, f"{fit}{end}")[0] for end in ("", "_low", "_high"))
        with viewing(browser, page, f"#window=1-1&fit={fit}&show=share") as tab:
            rows(tab, "of-age-by-area")
            title = tab.locator("#of-age-by-area .heat title").first.text_content() or ""
        numbers = [float(found) for found in re.findall(r"-?[0-9.]+(?=\s*%)", title.replace("−", "-"))]
        assert numbers == pytest.approx([value, low, high], abs=0.06), title
    with viewing(browser, page, "#window=1-1&pairs.age*area=both&show=share") as tab:
        (both,) = rows(tab, "of-age-by-area")
    place = report.asked("age*area").groups.index("grown*hills")
    assert (both["age"], both["area"], both["share"]) == ("grown", "hills", part.groups.share.value[place])


def test_everybody_can_read_and_use_the_page_of_pairs(browser: Browser, page: Path) -> None:
    with viewing(browser, page, width=390) as tab:
        wait_until(tab, "document.querySelector('#of-age-by-area') !== null")
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        assert problems(tab) == []


def test_tables_have_a_column_for_each_attribute_and_rows_for_groups(report: MobilityReport) -> None:
    listed = [row for row in tables(report)["crosses"].to_pylist() if row["first"] == 1]
    values, groups = [row for row in listed if not row["group"]], [row for row in listed if row["group"]]
    assert [(row["row"], row["column"]) for row in values][3:5] == [("young", "east"), ("middle", "north")]
    assert {(row["row_attribute"], row["column_attribute"]) for row in listed} == {("age", "area")}
    part = report.window(1, 1).attribute("age*area")
    assert part.values is not None and part.groups is not None
    assert [row["share"] for row in values] == part.values.share.value.tolist()
    assert [f"{row['row']}*{row['column']}" for row in groups] == list(report.asked("age*area").groups)
    assert [row["share"] for row in groups] == part.groups.share.value.tolist()
    whole = dict(zip([(row["row"], row["column"]) for row in values], part.values.share.value, strict=True))
    rolled = next(row["share"] for row in groups if (row["row"], row["column"]) == ("grown", "hills"))
    assert rolled == pytest.approx(sum(whole[a, b] for a in ("middle", "old") for b in ("west", "east")), abs=1e-3)
