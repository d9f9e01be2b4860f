"""The static page in a browser: its numbers are those of the records, and everybody can read and use it."""

import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from unicodedata import normalize
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect
from pypdf import PdfReader
from typer.testing import CliRunner

from analytics.mobility import with_changes
from hearsay.cli import app
from pages.static import static_page
from tests.helpers.eventually import eventually
from tests.pages.towns import HOURS, OPEN, town_events, town_report, town_scheme
from tests.pages.viewing import downloaded, draw_everything, open_table, problems, rows, viewing, wait_until

A4 = 688  # pixels of a sheet between its margins


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a town."""
    file = tmp_path_factory.mktemp("pages") / "town.html"
    file.write_text(static_page("A town & its <people>", town_events()), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def festival(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a small demo."""
    data = tmp_path_factory.mktemp("demo")
    made = CliRunner().invoke(app, ["demo", "--devices", "500", "--data", str(data)], catch_exceptions=False)
    assert made.exit_code == 0, made.output
    return data / "reports" / "festival-week.html"


@pytest.fixture(scope="module")
def seen(browser: Browser, town: Path) -> Iterator[Page]:
    """The page of a town, for tests that change nothing on it but which of its tables are open."""
    with viewing(browser, town) as page:
        yield page


def test_the_first_figure_is_of_the_newest_of_the_longest_windows(seen: Page) -> None:
    known = [window for window in town_report().windows if window.visitors]
    widest = max(known, key=lambda window: (window.last - window.first, window.first))
    title, number, below = seen.locator("#header .figure").first.inner_text().split("\n")
    assert widest.visitors and widest.visitors.value is not None
    assert (title, number) == ("different visitors in 24 hours", f"{widest.visitors.value:,.0f}")
    assert below == "Tue 6 Jan"


def test_devices_are_those_of_the_records(seen: Page) -> None:
    report = town_report()
    shown = {row["last"]: row for row in rows(seen, "over-time")}
    cells = seen.locator("#over-time td").all_inner_texts()
    for window in (window for window in report.windows if window.kind == "period"):
        row = shown[window.first]
        assert row["visitors"] == (window.visitors and window.visitors.value)
        assert row["new"] == (window.new and window.new.value)
        assert row["returning"] == (window.returning and window.returning.value)
        assert row["truth"] == window.truth
    assert (shown[OPEN]["state"], shown[OPEN]["visitors"]) == ("provisional", 321)
    first = report.window(1, 1).visitors
    assert first and first.value and f"{round(first.value):,}" in cells


def test_answers_over_time_are_those_of_the_records(seen: Page) -> None:
    report, values = town_report(), town_scheme().survey.attribute("area").values
    shown = {(row["value"], row["period"]): row for row in rows(seen, "of-area", "time")}
    compared = 0
    for period in range(1, HOURS):
        window = report.window(period, period)
        part = window.attribute("area").values
        if part is None or window.visitors is None:
            continue
        people = part.people(window.visitors)
        for place, value in enumerate(values):
            row = shown[value, period]
            assert [row["people"], row["low"], row["high"]] == pytest.approx(
                [people.value[place], people.low[place], people.high[place]]
            )
            assert row["truth"] == (None if part.truth is None else part.truth[place])
            compared += 1
    assert compared > 400
    assert shown[values[0], OPEN]["state"] == "provisional"


def test_changes_are_those_that_the_library_computes(browser: Browser, town: Path) -> None:
    report, compared = with_changes(town_report(), baseline=range(1, 30)), 0
    with viewing(browser, town, "#baseline=1-29") as page:

        def shown() -> dict[str, Any]:
            return {row["value"]: row for row in rows(page, "of-area", "baseline")}

        everybody = {row["period"]: row["percent"] for row in rows(page, "over-time", "baseline")}
        for period in range(1, HOURS):
            window = report.window(period, period)
            assert everybody[period] == pytest.approx(window.baseline and window.baseline.percent.value)
        for period in (35, 44, HOURS - 1):
            page.goto(f"{town.as_uri()}#baseline=1-29&period={period}")  # the same page, which draws it soon
            eventually(lambda period=period: shown()["all visitors"]["percent"] == pytest.approx(everybody[period]))
            found, part = shown(), report.window(period, period).attribute("area").values
            assert part is not None and part.baseline is not None
            for place, value in enumerate(town_scheme().survey.attribute("area").values):
                expected = [float(getattr(part.baseline.percent, name)[place]) for name in ("value", "low", "high")]
                row = found[value]
                assert (row["percent"] is None) == bool(np.isnan(expected[0]))
                if row["percent"] is not None:
                    assert [row["percent"], row["low"], row["high"]] == pytest.approx(expected)
                    compared += 1
    assert compared > 10


def test_windows_flows_and_dwell_times_are_those_of_the_records(browser: Browser, town: Path) -> None:
    window = town_report().window(24, 47)
    assert window.visitors
    with viewing(browser, town, "#window=24-47") as page:
        values, ranking = rows(page, "of-area", "now"), rows(page, "of-area", "busiest")
        flows, dwell = rows(page, "of-transition", "now"), rows(page, "of-dwell", "dwell")
        trips = rows(page, "of-transition", "trips")
        said = page.locator("#of-dwell .hint").inner_text()
    area, transition = window.attribute("area"), window.attribute("transition")
    assert area.values and transition.values and area.ranking
    people = dict(
        zip(town_scheme().survey.attribute("area").values, area.values.people(window.visitors).value, strict=True)
    )
    assert {row["value"]: row["people"] for row in values} == pytest.approx(people)
    assert [row["people"] for row in values] == sorted((row["people"] for row in values), reverse=True)
    assert [row["value"] for row in ranking] == [place.value for place in area.ranking.places]
    moved = transition.values.people(window.visitors).value
    assert [row["people"] for row in flows] == pytest.approx(moved.tolist())
    assert transition.trips and [row["area"] for row in trips] == list(town_report().asked("transition").places)
    ended = transition.trips.ended.value * window.visitors.value
    assert [row["ended"] for row in trips] == pytest.approx(ended.tolist())
    spent = window.attribute("dwell").dwell
    assert spent is not None and spent.quartiles is not None and len(dwell) == HOURS - 1
    assert f"a quarter stays at most {spent.quartiles[0]}, half {spent.quartiles[1]}" in said


def test_an_address_brings_a_view_back(browser: Browser, town: Path) -> None:
    with viewing(browser, town, "#at=of-area&length=24&map=share&period=30&see.of-area=map") as page:
        expect(page.locator("#of-area output")).to_have_text(re.compile("^Tue 6 Jan 06:00"))
        expect(page.locator("#of-area select")).to_have_value("share")
        assert page.evaluate("document.activeElement.id") == "of-area"
        page.locator("#over-time").scroll_into_view_if_needed()
        page.wait_for_selector("#over-time select")
        expect(page.locator("#over-time select")).to_have_value("24")
        page.locator("#over-time select").select_option("1")
        wait_until(page, "location.hash.includes('length=1')")
        open_table(page, "over-time")
        assert "at=over-time" in str(page.locator("#over-time .buttons a").get_attribute("href"))


def test_a_map_shows_each_area_through_time(browser: Browser, town: Path) -> None:
    with viewing(browser, town, "#at=of-area") as page:
        expect(page.locator("#of-area svg .cell")).to_have_count(8)
        before = rows(page, "of-area")
        page.locator("#of-area input[type=range]").press("Home")
        wait_until(page, "document.querySelector('#of-area output').textContent.startsWith('Mon 5')")
        eventually(lambda: rows(page, "of-area")[0]["period"] < 5)  # drawn in the next frame
        hint = page.locator("#of-area .hint").first.inner_text()
        page.locator("#of-area .map .cell").first.dispatch_event("click")
        touched = page.locator("#of-area .said").inner_text()
    assert before[0]["period"] == OPEN
    assert "1 of 9 values have no shape" in hint and "visitors in total" in hint
    assert re.search(r"^\W?r0c0\W?: .+ \(.+ to .+\)$", touched)


def test_flows_that_are_more_than_noise_are_arrows_on_the_map(browser: Browser, town: Path) -> None:
    with viewing(browser, town, "#window=24-47&see.of-transition=map") as page:
        flows = rows(page, "of-transition", "map")
        arrows = page.locator("#of-transition .map .flow")
        told = arrows.locator("title").all_text_contents()
        arrows.last.dispatch_event("click")
        touched = page.locator("#of-transition .said").inner_text()
    moved = [flow for flow in flows if flow["from"] != flow["to"] and "SE" not in (flow["from"], flow["to"])]
    clear = sorted((flow for flow in moved if flow["low"] > 0), key=lambda flow: float(flow["people"]))
    assert 0 < len(clear) < len(moved)
    assert [re.findall(r"\w+", text)[:3] for text in told] == [[flow["from"], "to", flow["to"]] for flow in clear]
    assert touched == told[-1]


def test_drawings_are_downloaded_as_they_are_seen(seen: Page) -> None:
    for card, see in (("over-time", "time"), ("of-area", "map"), ("of-area", "now")):
        drawing = ElementTree.fromstring(downloaded(seen, card, see, "SVG"))
        assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
        assert "var(" not in ElementTree.tostring(drawing, encoding="unicode")
    assert downloaded(seen, "over-time", "time", "PNG").startswith(b"\x89PNG")
    table = downloaded(seen, "over-time", "time", "CSV").decode()
    assert table.splitlines()[0] == "first,last,begin,state,visitors,low,high,new,returning,truth"


def test_it_can_be_used_with_the_keyboard_alone(browser: Browser, town: Path) -> None:
    with viewing(browser, town) as page:
        page.locator("#over-time").scroll_into_view_if_needed()
        page.wait_for_selector("#over-time select")  # charts are drawn when they are seen
        reached = []
        for _ in range(60):
            page.keyboard.press("Tab")
            focus = page.evaluate("[document.activeElement.tagName, document.activeElement.textContent.slice(0, 30)]")
            reached.append(tuple(focus))
            if focus == ["BUTTON", "Table"]:
                break
        assert reached[0] == ("A", "Skip to the results")
        assert ("A", "Area") in reached and ("BUTTON", "Calendar") in reached
        page.keyboard.press("Enter")
        page.wait_for_selector("#over-time .buttons")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", "the focus can be seen"
        page.locator("nav a", has_text="Dwell").focus()
        page.keyboard.press("Enter")
        wait_until(page, "document.activeElement.id === 'answers-dwell'")


@pytest.mark.long(part="browser")
@pytest.mark.parametrize("width", [390, 820, 1280])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_is_cut_off_and_axe_finds_nothing_serious(browser: Browser, town: Path, width: int, dark: bool) -> None:
    with viewing(browser, town, width=width, dark=dark) as page:
        draw_everything(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(14, 22, 28)" if dark else "rgb(245, 246, 244)")
        if (width, dark) in ((390, False), (1280, True)):
            assert problems(page) == []


def plain(text: str) -> str:
    """Without spaces and ligatures."""
    return re.sub(r"\s", "", normalize("NFKC", text))


@pytest.mark.long(part="browser")
def test_everything_is_on_white_paper_and_no_button(browser: Browser, town: Path) -> None:
    """Failure would look like: columns and rows that a screen would scroll to, and that paper does not have."""
    with viewing(browser, town) as page:
        open_table(page, "of-area", "now")
        paper = plain("".join(sheet.extract_text() for sheet in PdfReader(BytesIO(page.pdf())).pages))
        page.set_viewport_size({"width": A4, "height": 900})
        page.emulate_media(media="print", color_scheme="dark")
        draw_everything(page)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.evaluate("getComputedStyle(document.querySelector('.timeline text')).fill") == "rgb(81, 96, 109)"
        assert page.locator("nav").is_hidden()
        charts = page.locator(".frame:not([hidden]) .chart:empty")
        empty = charts.evaluate_all("(found) => found.map((one) => one.dataset.chart)")
        assert empty == ["suppressed"], "every chart was drawn, and nothing is suppressed"
        cells = page.locator("th, td").all_inner_texts()
        scrolled = "(all) => all.filter((one) => one.scrollHeight > one.clientHeight + 1 || one.scrollWidth > A4)"
        assert page.locator(".scroll").evaluate_all(scrolled.replace("A4", str(A4))) == []
        assert page.locator("button").filter(visible=True).count() == page.locator("select:visible").count() == 0
    assert len(cells) > 100
    assert [cell for cell in cells if plain(cell) not in paper] == []


@pytest.mark.parametrize(
    ("width", "height", "most"), [pytest.param(1280, 900, 8, marks=pytest.mark.long(part="browser")), (390, 844, 12)]
)
def test_the_page_of_the_demo_ends(browser: Browser, festival: Path, width: int, height: int, most: int) -> None:
    with viewing(browser, festival, width=width, height=height) as page:
        for screen in range(2 * most):
            page.evaluate(f"scrollTo(0, {screen * height // 2})")  # charts are drawn when they are seen
            page.wait_for_timeout(50)
        drawn = page.locator("main > section > .frame > .chart:not(:empty)").count()
        assert drawn == 8, "the visitors, and seven questions"
        assert page.evaluate("document.documentElement.scrollHeight") <= most * height
