"""Pages of surveys without areas, of very many values, of what a classifier learns, and of verdicts on integrity."""

import csv
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.csv
import pytest
from playwright.sync_api import Browser, expect
from typer.testing import CliRunner

from hearsay.cli import app
from hearsay.reports.files import mobility_of, open_results
from hearsay.reports.page import write_page
from hearsay.reports.serving import Published
from hearsay.serving.try_page import try_pages
from hearsay.survey_files import example_text, read_survey
from hearsay_device import Device
from lab.attacks.report import AuditReport, Figure, Finding
from lab.documents import audit_event, learning_event
from pages.about import survey_event
from pages.dashboard import Source
from pages.events import MOST_VALUES
from pages.shapes import parse_shapes
from pages.static import static_page
from producers.scenarios import scenario
from protocols.errors import SurveyError
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.survey_text import parse_survey
from tests.gateway.world import embedded, serving
from tests.helpers.browser import events_in, tab
from tests.helpers.collecting import collecting
from tests.helpers.dashboards import dashboard
from tests.helpers.forging import collect
from tests.helpers.published import publish
from tests.helpers.surveys import of_size, scheme_with
from tests.helpers.town import live
from tests.lab.calling import call
from tests.pages.towns import town_scheme, town_shapes
from tests.pages.viewing import draw_everything, problems, rows, viewing, wait_until

VALUES = 1_000
DEVICES, PERIODS, FORGED = 600, 5, 200


def test_a_page_about_devices_does_not_speak_of_visitors_or_mobility(browser: Browser, tmp_path: Path) -> None:
    values = ("search", "export", "share")
    scheme = Scheme(
        parse_survey(
            f"""{{id: features, start: 2026-01-05T00:00:00Z, period: 1d, horizon: 7, eps_inf: 4, eps_1: 2, attributes: [
            {{name: feature, values: [{", ".join(values)}], groups: {{out: [export, share]}}}}]}}"""
        )
    )
    report = publish(live(scheme, scenario("telemetry", devices=400, periods=10, attributes={"feature": values})))
    file = tmp_path / "telemetry.html"
    write_page(file, scheme.survey, report)
    with viewing(browser, file) as page:
        draw_everything(page)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        text = page.locator("body").inner_text().lower()
    assert "devices" in text and "epsilon" in text
    assert "mobility" not in text and "visitor" not in text


@pytest.mark.parametrize("minimum", [pytest.param(20, marks=pytest.mark.long(part="browser")), 0])
def test_installs_are_run_under_default_limits_and_their_units_are_on_the_page_and_in_the_csv(
    browser: Browser, tmp_path: Path, minimum: int
) -> None:
    units = ["month", "ever"]
    file, data = tmp_path / "installs.yaml", tmp_path / "data"
    file.write_text(example_text("installs").replace("\nminimum: 20", f"\nminimum: {minimum}"))
    scheme = Scheme(read_survey(file))
    with Device(tmp_path / "device") as device:
        device.join(scheme.terms, pin=scheme.fingerprint)
    for words in (f"run {file} --scenario telemetry --devices 700 --periods 40", f"report --csv {tmp_path}"):
        done = call(f"{words} --data {data}")
        assert done.exit_code == 0, done.output
    written = pyarrow.csv.read_csv(tmp_path / "visitors.csv").to_pylist()
    for unit in units:
        with viewing(browser, data / "reports" / "app-installs-sim.html", f"#length={unit}") as page:
            offered = page.locator("#over-time select option").all()
            assert [option.get_attribute("value") for option in offered] == ["1", *units]
            shown = rows(page, "over-time")
        kept = [row for row in written if (row["first"] == 0 if unit == "ever" else row["kind"].startswith(unit))]
        kept.sort(key=lambda row: int(row["last"]))
        names = ("first", "last") if unit == "ever" else ("first", "last", "new", "returning")
        assert [[row[name] for name in names] for row in shown] == [[row[name] for name in names] for row in kept]
        assert [row["devices"] for row in shown] == [row["visitors"] for row in kept]
        assert len(kept) == (40 if unit == "ever" else 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "cannot be read as areas"),
        ('{"features": [1]}', "cannot be read as areas"),
        (
            '{"features": [{"properties": {"name": "r0c0"}, "geometry": {"type": "Point", "coordinates": [1, 2]}}]}',
            "Point",
        ),
        (town_shapes().replace("r0c", "no").replace("r1c", "no").replace("r2c", "no"), "none of its 11 features"),
        (town_shapes().replace("[6.0, 47.0]", '["six", 47.0]'), "not a number"),
    ],
)
def test_shapes_that_cannot_be_drawn_are_refused_with_a_sentence(text: str, said: str) -> None:
    with pytest.raises(SurveyError, match=said):
        parse_shapes(text, town_scheme().survey, "town.geojson")


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
    write_page(file, survey, report)
    assert most not in str(events_in(file.read_text())), "a range is sent, not its values"
    with viewing(browser, file) as tab:
        shown = rows(tab, "of-page")
        assert f"The page has the {MOST_VALUES} most frequent of 1,000 values." in tab.inner_text("body")
        assert tab.locator("#of-page .more").inner_text() == f"Show all {MOST_VALUES}"
    devices = [row["devices"] for row in shown]
    assert len(devices) == MOST_VALUES and devices == sorted(devices, reverse=True)
    assert {row["value"] for row in shown} < set(values["page"])
    assert shown[0]["value"] == most


def test_the_page_says_what_readers_of_results_learn() -> None:
    asked = {"central": {"delta": 1e-8}, "devices": 3250, "eps_inf": 4.0, "eps_1": 2.0}
    record = survey_event(scheme_with(of_size(3, mechanism="l-grr"), **asked).survey)["record"]
    rows = {row["seen"]: row for row in record["costs"]["guarantees"] if row["seen"].startswith("all results of a ")}
    assert len(rows) == 4
    week = rows["all results of a week, if 3,250 honest devices answer each question in a period"]
    assert week["epsilon"] == 0.756 and round(week["right_guess"], 2) == 0.68
    assert week["between"] == "two values that never change, but for a chance of 1e-08"


def test_numbers_that_a_browser_cannot_tell_apart_are_sent_as_names() -> None:
    ends = {"first": 2**60, "last": 2**60 + 1}
    (attribute,) = survey_event(scheme_with({"name": "a", "range": ends}, eps=1).survey)["record"]["attributes"]
    assert attribute["values"] == [str(end) for end in ends.values()] and "range" not in attribute


@pytest.mark.long(part="browser")
def test_the_page_shows_every_way_to_learn_by_budget(browser: Browser, tmp_path: Path) -> None:
    means = {"accuracy": (0.8, 0.01), "auc": (0.85, None), "parity_gap": (None, 0.0)}
    figures = {name: {"value": value, "error": error} for name, (value, error) in means.items()}
    ways = {"majority class": (None, None), "crosses": (1.0, 0.5)}
    learnt = [{"source": source, "eps": eps, "reveals": loss, **figures} for source, (eps, loss) in ways.items()]
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


@pytest.mark.long(part="browser")
def test_forged_devices_that_arrive_as_new_leave_the_band_of_what_is_usual(browser: Browser, tmp_path: Path) -> None:
    """Everybody reports in every period, so nobody is new after the first one, until reports are forged."""
    terms = {"eps_inf": 4.0, "eps_1": 2.0, "clock": "source", "horizon": 3}
    scheme = scheme_with(of_size(12, "many", mechanism="l-osue"), id="forged", **terms)
    collect(tmp_path, scheme, DEVICES, PERIODS, forged=FORGED)
    with open_results("forged", tmp_path, None) as (results, _):
        file = tmp_path / "page.html"
        write_page(file, scheme.survey, mobility_of(results, "forged"))
    with viewing(browser, file) as page:
        arrivals, verdicts = rows(page, "integrity", "arrivals"), rows(page, "integrity", "verdicts")
        page.locator("#integrity .switch [data-see=arrivals]").click()
        page.wait_for_selector("#integrity svg .odd")
        said = page.locator("#integrity summary").inner_text()
    assert "Of 5 days: 1 day contradicted. Unusually many or few new devices: 1 day." in said
    assert [row["verdict"] for row in verdicts] == ["consistent"] * (PERIODS - 1) + ["contradicted"]
    assert [(row["period"], row["new"], row["outside"]) for row in arrivals] == [
        *((period, 0, False) for period in range(1, PERIODS - 1)),
        (PERIODS - 1, FORGED, True),
    ]


# Names that try to be more than names, on every page that there is: they are text, and nothing else.
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


ALSO = [pytest.param(each, marks=pytest.mark.long(part="browser")) for each in (audit_page, forecast_page, overview)]
"""Pages that other tests look at, too, or whose charts are those of reports."""


@pytest.mark.parametrize("shown", [report_page, live_page, try_page, *ALSO])
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
