"""The live pages in a browser: what is on them, at every width, for everybody."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from hearsay.reports.serving import Published
from pages.dashboard import Source
from pages.dashboard import source as source_module
from tests.helpers.browser import tab
from tests.helpers.collecting import collecting, small_survey
from tests.helpers.dashboards import Running, dashboard
from tests.helpers.eventually import eventually
from tests.pages.viewing import problems, rows

WIDTHS = [(1280, False), (768, True), (390, False)]
LONG = "<b>long</b> " * 300


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Two surveys, one with hostile names; each with four closed periods, one of them suppressed, and an open one."""
    directory = tmp_path_factory.mktemp("live")
    hostile = small_survey("hostile", values=("<i>", "\u202e", "</script>")).model_copy(update={"title": LONG})
    with collecting(directory / "collector", small_survey(), hostile) as collections:
        for one in collections:
            one.finish([30, 20, 10], [3, 2, 1], [33, 22, 11], [20, 20, 20])
            one.report(0, [22, 0, 0])
            one.report(4, [40, 0, 0])
    published = Published([], directory, None)
    with dashboard(Source(published.follow, (), published.describe), download=published.download) as found:
        yield found


def test_a_page_asks_for_the_token_once_and_goes_on_in_place_also_if_results_are_away_for_a_while(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "CHECK_SECONDS", 0.1)
    place, away, token = tmp_path / "collector", tmp_path / "away", "a token that nobody guesses"
    published = Published([], tmp_path, None)
    with collecting(place, small_survey()) as (colours,):
        colours.finish([30, 20, 10], [3, 2, 1])
        colours.report(2, [40, 0, 0])
        with dashboard(Source(published.follow), token=token) as running, tab(browser) as (page, asked):

            def wait_for(*expected: tuple[int | None, str]) -> None:
                """The table behind the chart of devices over time has these."""
                eventually(lambda: [(row["devices"], row["state"]) for row in rows(page, "over-time")] == [*expected])

            page.goto(running.address)
            page.get_by_label("Token").fill(token)
            page.get_by_role("button").click()
            expect(page.locator("tr[data-survey=colours]")).to_be_visible()
            assert page.evaluate("document.cookie") == "", "scripts do not see it"
            page.goto(f"{running.address}?survey=colours")
            hatched = page.locator("#over-time .bar.provisional")
            expect(hatched).to_have_count(1)
            wait_for((60, "final"), (None, "suppressed"), (40, "provisional"))
            colours.report(2, [0, 25, 0])
            wait_for((60, "final"), (None, "suppressed"), (60, "provisional"))  # of 65: rounded down
            colours.close(2)
            wait_for((60, "final"), (None, "suppressed"), (65, "final"))
            expect(hatched).to_have_count(0)
            trouble = page.locator(".live").get_by_text("Results cannot be read now")
            expect(trouble).to_have_count(0)
            place.rename(away)
            expect(trouble).to_be_visible()
            wait_for((60, "final"), (None, "suppressed"), (65, "final"))
            away.rename(place)
            expect(trouble).to_have_count(0)
            assert len([url for url in asked if "/events?" in url]) == 1, "one stream for a page"
            assert [url for url in asked if not url.startswith((running.address, "data:", "blob:"))] == []


@pytest.mark.long(part="browser")
@pytest.mark.parametrize(("width", "dark"), WIDTHS)
def test_the_overview_fits_and_axe_finds_nothing_serious(
    browser: Browser, running: Running, width: int, dark: bool
) -> None:
    with tab(browser, width, dark) as (page, _):
        page.goto(running.address)
        line = page.locator("tr[data-survey=colours]")
        expect(line.locator("[data-cell=last]")).to_contain_text("60 reports")
        expect(line.locator("[data-cell=open]")).to_contain_text("40 reports so far")
        expect(line.locator("[data-cell=refused]")).to_contain_text("late: 20")
        expect(line.locator(".bars i")).to_have_count(5)
        expect(line.locator(".bars i.none")).to_have_count(1)
        tops = [text.split("\n")[:2] for text in page.locator(".figure").all_inner_texts()]
        assert tops == [
            ["reports now", "80"],
            ["refused", "40"],
            ["open", "2"],
            ["lag", "–"],
            ["last final", "Thu 8 Jan"],
        ]
        expect(line.locator("[data-cell=last]")).to_contain_text("-9.1 % against the day before")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert problems(page) == []


def test_a_table_is_downloaded_from_the_page(browser: Browser, running: Running) -> None:
    with tab(browser) as (page, _):
        page.goto(f"{running.address}?survey=colours")
        expect(page.locator("body")).to_have_attribute("data-drawn", "yes")
        page.get_by_text("Tables", exact=True).click()
        with page.expect_download() as found:
            page.locator("li", has_text="values of colour").get_by_text("csv").click()
        assert found.value.suggested_filename == "colours-values-colour.csv"
        assert Path(found.value.path()).read_text().startswith('"first","last"')


def press(page: Page, link: str) -> None:
    """Go to a link with the keyboard, and follow it."""
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("link => document.activeElement.matches(link)", link):
            page.keyboard.press("Enter")
            return
    pytest.fail(f"the keyboard does not reach {link}")


@pytest.mark.long(part="browser")
def test_the_pages_work_with_the_keyboard_alone(browser: Browser, running: Running) -> None:
    with tab(browser) as (page, _):
        page.goto(running.address)
        expect(page.locator("tr[data-survey]")).to_have_count(2)
        press(page, "tr[data-survey=colours] a")
        expect(page.locator("h1")).to_have_text("colours")
        expect(page.locator("body")).to_have_attribute("data-drawn", "yes")
        press(page, ".live a")
        expect(page.locator("h1")).to_have_text("Surveys")


@pytest.mark.long(part="browser")
def test_a_hidden_page_gives_its_connection_back_and_catches_up(browser: Browser, running: Running) -> None:
    with tab(browser) as (page, asked):
        page.clock.install()
        page.goto(running.address)
        expect(page.locator("tr[data-survey]")).to_have_count(2)
        state = page.locator(".live [data-state]")
        page.evaluate(
            "Object.defineProperty(document, 'hidden', { value: true, configurable: true });"
            "document.dispatchEvent(new Event('visibilitychange'))"
        )
        page.clock.run_for(40_000)
        expect(state).to_have_attribute("data-state", "paused")
        page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
        expect(state).to_have_attribute("data-state", "live")
        assert len([url for url in asked if url.endswith("/events")]) == 2
