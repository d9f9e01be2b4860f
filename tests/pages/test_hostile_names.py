"""Names that try to be more than names, on every page that there is: they are text, and nothing else."""

import csv
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from typer.testing import CliRunner

from hearsay.cli import app
from hearsay.reports.page import write_page
from hearsay.reports.serving import Published
from hearsay.serving.try_page import try_pages
from lab.audit.report import AuditReport, Figure, Finding
from lab.documents import audit_event
from pages.dashboard import Source
from pages.static import static_page
from producers.scenarios import scenario
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.survey_text import parse_survey
from tests.gateway.world import embedded, serving
from tests.helpers.browser import tab
from tests.helpers.collecting import collecting
from tests.helpers.dashboards import dashboard
from tests.helpers.published import publish
from tests.helpers.town import live
from tests.pages.viewing import draw_everything, wait_until

NAMES = (
    "<script>injected = 1</script>",
    "</script><script>injected = 2</script>",
    "<img src=x onerror='injected = 3'>",
    "\"' onmouseover='injected = 4' x='",
    "]]></title></style><svg onload='injected = 5'>",
    "<a href='javascript:injected = 6'>a</a>",
    "javascript:injected = 7",
    "&lt;b&gt; ${injected = 8} {{ events }}",
    "\u202eright to left\u2066",
    "x" * 200,
)
TITLE = "</title><script>injected = 9</script>\u202e"
MADE = """[...document.querySelectorAll("*")].filter((element) =>
  element.matches("main img, main script, iframe, object, embed, base, svg[onload], [href^='javascript:' i]") ||
  [...element.attributes].some(({ name, value }) => name.startsWith("on") && value.includes("injected"))
).map((element) => element.outerHTML.slice(0, 200))"""
SAID = """[...document.querySelectorAll("body *")].flatMap((element) =>
  [element.getAttribute("aria-label"), ...[...element.childNodes].filter(({ nodeType }) => nodeType === 3)
    .map(({ data }) => data)]).concat(document.title)"""


def survey(start: str = "2026-01-05T00:00:00Z", clock: str = "source") -> Survey:
    values, text = json.dumps(NAMES), json.dumps(TITLE)
    return parse_survey(
        f"{{id: hostile, title: {text}, description: {text}, start: {start}, period: 1d, horizon: 3, eps_inf: 1, "
        f"eps_1: 0.5, clock: {clock}, minimum: 20, attributes: [{{name: colour, values: {values}, mechanism: l-grr, "
        f"groups: {{{json.dumps(NAMES[0])}: {json.dumps(NAMES[:3])}}}}}]}}"
    )


@contextmanager
def report_page(directory: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    used = scenario("telemetry", devices=100, periods=2, attributes={"colour": NAMES})
    report = publish(live(Scheme(survey()), used))
    file = directory / "page.html"
    write_page(file, survey(), report)
    yield file.as_uri(), (*NAMES, TITLE)


@contextmanager
def audit_page(directory: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    def figure(**given: Any) -> Figure:
        return Figure(**{"target": NAMES[0], "knows": NAMES[1], "reports": 1, "luck": 0.5, **given})

    report = AuditReport(
        survey=TITLE, fingerprint="f", solution="smp", mechanisms={NAMES[2]: NAMES[3]}, crowd=1000, attacker="best",
        alpha=0.01, seed=0, breaches=NAMES[4:6], findings=(Finding(code="found", text=NAMES[6]),),
        figures=(
            figure(attack="guess", unit="chance", measured=0.61, low=0.58, high=0.64, best=0.62, trials=1000),
            figure(attack="link", unit="bits", luck=0.0, best=2.5),
        ),
    )  # fmt: skip
    file = directory / "page.html"
    file.write_text(static_page(TITLE, [audit_event(report)]), encoding="utf-8")
    yield file.as_uri(), (*NAMES[:7], TITLE)


@contextmanager
def forecast_page(directory: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    named = NAMES[1:4]  # a forecast takes a second
    table, html = directory / "series.csv", directory / "forecast.html"
    with table.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["time", *named])
        rows.writerows([f"2026-01-{day:02}", *(day % 7 + place for place in range(len(named)))] for day in range(1, 25))
    CliRunner().invoke(
        app, ["forecast", "--series", str(table), "--ahead", "2", "--html", str(html)], catch_exceptions=False
    )
    yield html.as_uri(), named


@contextmanager
def live_pages(directory: Path, path: str, *more: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    with collecting(directory / "collector", survey()) as (colours,):
        colours.finish(*[[10] * len(NAMES)] * 2)
        colours.report(2, [10] * len(NAMES))
    published = Published([], directory, None)
    with dashboard(Source(published.follow, (), published.describe), download=published.download) as running:
        yield running.address + path, (TITLE, *more)


def live_page(directory: Path) -> Any:
    return live_pages(directory, "?survey=hostile", *NAMES)


def overview(directory: Path) -> Any:
    return live_pages(directory, "")


@contextmanager
def try_page(directory: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    asked = survey(f"{datetime.now(UTC):%Y-%m-%dT00:00:00Z}", "wall")
    schemes = {"hostile": Scheme(asked)}
    with (
        embedded(directory, survey=asked) as log,
        serving(log, list(schemes.values()), pages=try_pages(schemes, directory)) as served,
    ):
        yield f"http://127.0.0.1:{served.port}/try", (*NAMES, TITLE)


@pytest.mark.parametrize("shown", [report_page, audit_page, forecast_page, live_page, overview, try_page])
def test_hostile_names_are_text(shown: Callable[[Path], Any], browser: Browser, tmp_path: Path) -> None:
    with shown(tmp_path) as (address, names), tab(browser) as (page, asked):
        page.goto(address)
        if shown is try_page:
            expect(page.locator("select[name=colour] option")).to_have_count(len(NAMES))
        elif shown is overview:
            expect(page.locator("tr[data-survey]")).to_have_count(1)
        else:
            page.wait_for_selector("body[data-drawn=yes]")
        draw_everything(page)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open ||= one.checkVisibility(); })")
        page.evaluate("document.querySelectorAll('[data-see=table]').forEach((one) => one.click())")
        for name in names:
            wait_until(page, f"{SAID}.some((text) => text?.includes({json.dumps(name)}))")
        assert page.evaluate(MADE) == []
        assert page.evaluate("typeof injected") == "undefined"
        here = address.partition("?")[0].rpartition("/")[0]
        assert [url for url in asked if not url.startswith((here, "data:", "blob:"))] == []
