"""Pages of surveys without areas and of single documents; names that try to be more than names; colours."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser

from lab.audit.report import AuditReport, Figure, Finding
from lab.documents import audit_event
from pages.about import survey_event
from pages.events import MOST_VALUES, mobility_events, result_events
from pages.shapes import parse_shapes
from pages.static import static_page, style
from producers.scenarios import scenario
from protocols.errors import SurveyError
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from tests.helpers.published import publish
from tests.helpers.town import live
from tests.pages.towns import town_scheme, town_shapes
from tests.pages.viewing import draw_everything, problems, rows, viewing, wait_until

HOSTILE = (
    "<script>alert(1)</script>", "</script><img src=x onerror=alert(2)>", "\u202eright to left\u202d", "x" * 200,
    "=cmd|' /C calc'!A0", "&lt;b&gt;",
)  # fmt: skip


def hostile_page() -> str:
    values = ", ".join(f'"{value}"' for value in HOSTILE)
    scheme = Scheme(
        parse_survey(
            f"""{{id: hostile, title: "</title><script>alert(3)</script>", description: "{"<b>" * 3000}",
            start: 2026-01-05T00:00:00Z, period: 1d, horizon: 7, eps_inf: 4, eps_1: 2, attributes: [
            {{name: feature, values: [{values}], groups: {{"<i>group</i>": ["&lt;b&gt;", "{"x" * 200}"]}}}}]}}"""
        )
    )
    used = scenario("telemetry", devices=400, periods=10, attributes={"feature": HOSTILE})
    report = publish(live(scheme, used))
    return static_page(scheme.survey.title, [survey_event(scheme.survey, notes=report.notes), *mobility_events(report)])


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("pages") / "hostile.html"
    file.write_text(hostile_page(), encoding="utf-8")
    return file


def test_hostile_names_are_text_everywhere(browser: Browser, hostile: Path) -> None:
    with viewing(browser, hostile, "#filter.feature=<img src=x onerror=alert(4)>&survey=<b>") as page:
        draw_everything(page)
        assert page.locator("h1").inner_text() == "</title><script>alert(3)</script>"
        assert page.title() == "</title><script>alert(3)</script>"
        page.evaluate("location.hash = '#at=feature-over-time'")
        wait_until(page, "document.querySelectorAll('#feature-over-time .cell').length > 0")
        named = {row["value"] for row in rows(page, "feature-over-time")}
        assert named == set(HOSTILE)
        page.wait_for_selector("#feature-over-time td")
        assert set(page.locator("#feature-over-time td.name").all_inner_texts()) >= set(HOSTILE[:2])
        assert page.locator("main img, main b > b, main script").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    with viewing(browser, hostile, width=390) as page:
        draw_everything(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_page_about_devices_does_not_speak_of_visitors_or_mobility(browser: Browser, hostile: Path) -> None:
    with viewing(browser, hostile) as page:
        draw_everything(page)
        for summary in page.locator("summary").all():
            if summary.is_visible():
                summary.click()
        text = page.locator("body").inner_text().lower()
    assert "devices over time" in text and "epsilon" in text
    assert "mobility" not in text and "visitor" not in text


def figure(**given: Any) -> Figure:
    return Figure(**{"target": "<b>", "knows": "<i>&", "reports": 1, "luck": 0.5, **given})


def test_an_audit_is_a_page_of_the_same_kind(browser: Browser, tmp_path: Path) -> None:
    report = AuditReport(
        survey="buttons", fingerprint="f", solution="smp", mechanisms={"a": "l-grr"}, crowd=1000, attacker="best",
        alpha=0.01, seed=0, breaches=("guess is above <limit>",), findings=(Finding(code="found", text="<u>this</u>"),),
        figures=(
            figure(attack="guess", unit="chance", measured=0.61, low=0.58, high=0.64, best=0.62, trials=1000),
            figure(attack="link", unit="bits", luck=0.0, best=2.5),
            figure(attack="epsilon", unit="nats", best=2.0, reports=None),
        ),
    )  # fmt: skip
    file = tmp_path / "audit.html"
    file.write_text(static_page("Audit", [audit_event(report)]), encoding="utf-8")
    with viewing(browser, file, width=820) as page:
        assert problems(page) == []
        text = page.locator("main").inner_text()
        (shown,) = rows(page, "attack-guess")
    assert "Above its limit. guess is above <limit>" in text and "<u>this</u>" in text
    assert "2.500 bits" in text and "2.000" in text
    assert (shown["attack"], shown["best"], shown["target"]) == (0.61, 0.62, "<b>")


def test_a_large_attribute_is_cut_to_its_most_frequent_values() -> None:
    names = [f"v{place}" for place in range(MOST_VALUES + 50)]
    scheme = Scheme(
        parse_survey(
            f"""{{id: many, start: 2026-01-05T00:00:00Z, period: 1d, eps_inf: 6, eps_1: 5,
            attributes: [{{name: a, values: [{", ".join(names)}]}}]}}"""
        )
    )
    used = scenario("telemetry", devices=500, periods=2, attributes={"a": tuple(names)})
    report = publish(live(scheme, used))
    first, _ = mobility_events(report)
    (part,) = first["record"]["windows"][0]["attributes"]
    whole = report.windows[0].attribute("a").values
    assert whole is not None
    assert (
        len(part["places"]) == len(part["values"]["share"]["value"]) == len(part["values"]["consistent"]) == MOST_VALUES
    )
    assert part["values"]["share"]["value"] == whole.share.value[part["places"]].tolist()
    assert min(part["values"]["share"]["value"]) >= sorted(whole.share.value)[50]


def test_what_is_suppressed_is_not_in_any_event() -> None:
    history = live(town_scheme(), scenario("commuters", devices=60, periods=4, rows=3, columns=3, activity=0.2))
    released, nothing = np.arange(1, history.scheme.survey.horizon + 1), np.zeros(0, dtype=np.int64)
    report = publish(replace(history, ranges=[released, nothing, released, released]))
    hidden = [window for window in report.windows if window.suppressed]
    assert hidden
    for told in result_events(town_scheme().survey, report):
        for window in told["record"]["windows"]:
            if "suppressed" in window:
                assert set(window) == {
                    "first",
                    "last",
                    "begin",
                    "end",
                    "kind",
                    "suppressed",
                    "presence_lost",
                    "gaps",
                    "attributes",
                }
                assert window["gaps"] == [] == window["attributes"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "cannot be read as areas"),
        (
            '{"features": [{"properties": {"name": "r0c0"}, "geometry": {"type": "Point", "coordinates": [1, 2]}}]}',
            "Point",
        ),
        (town_shapes().replace("r0c", "no").replace("r1c", "no").replace("r2c", "no"), "none of its 8 features"),
        (town_shapes().replace("[6.0, 47.0]", '["six", 47.0]'), "not a number"),
    ],
)
def test_shapes_that_cannot_be_drawn_are_refused_with_a_sentence(text: str, said: str) -> None:
    with pytest.raises(SurveyError, match=said):
        parse_shapes(text, town_scheme().survey, "town.geojson")


def test_the_file_of_areas_is_no_part_of_the_terms() -> None:
    survey = town_scheme().survey
    assert survey.areas == "town.geojson"
    assert Scheme(survey.model_copy(update={"areas": None})).fingerprint == town_scheme().fingerprint


@pytest.mark.long(part="browser")
def test_text_can_be_read_on_every_shade_in_both_themes() -> None:
    light, dark = style().split("prefers-color-scheme: dark")[:2]
    for theme in (light, dark.partition("\n}")[0]):
        colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", theme))
        pairs = [(f"h{at}", f"i{at}") for at in range(9)]
        pairs += [(f"t{at}", "turn-end" if at in (0, 8) else "turn-ink") for at in range(9)]
        pairs += [(ground, ink) for ground in ("paper", "ground") for ink in ("ink", "soft", "accent", "warm")]
        pairs += [("bar", "bar-ink"), ("alarm", "ink"), ("accent", "paper")]
        for ground, ink in pairs:
            assert contrast(colours[ground], colours[ink]) >= 4.5, (
                ground,
                ink,
                contrast(colours[ground], colours[ink]),
            )
        for at in range(8):
            assert contrast(colours["paper"], colours[f"s{at}"]) >= 3, f"s{at}"


def contrast(one: str, other: str) -> float:
    """As WCAG 2 defines it."""
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at:to], 16) / 255 for at, to in pairwise((1, 3, 5, 7))]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
