"""The page opens in a browser without a network, and its charts are there to be seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analytics.mobility import MobilityReport, render_page, with_changes, with_truth
from analytics.windows import Window
from hearsay.reports.files import narrowed
from producers.scenarios import scenario
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from tests.helpers.browser import View, look
from tests.helpers.published import part, publish
from tests.helpers.town import live, truths

HEIGHT = 5000


@pytest.fixture(scope="module")
def report() -> MobilityReport:
    town = scenario("commuters", devices=2000, periods=72, rows=3, columns=3, activity=0.2)
    areas, flows = (", ".join(f"'{value}'" for value in town.attributes[name]) for name in ("area", "transition"))
    scheme = Scheme(
        parse_survey(
            f"""{{id: town, title: "A town & its <people>", start: 2026-01-05T00:00:00Z, period: 1h, horizon: 48,
                minimum: 30, eps_inf: 6, eps_1: 5, solution: spl, attributes: [
                {{name: area, role: area, values: [{areas}], groups: {{north: [r0c0, r0c1, r0c2]}}}},
                {{name: transition, role: transition, values: [{flows}]}},
                {{name: dwell, role: dwell, range: {{first: 1, last: 8}}}}]}}"""
        )
    )
    hours = [Window(t, t) for t in range(72)]
    published = publish(part(live(scheme, town), 1, 71))  # without period 0 the last day is shown: people come back
    return with_changes(with_truth(published, truths(scheme, town, hours)), baseline=range(1, 24))


@pytest.fixture(scope="module")
def view(report: MobilityReport, tmp_path_factory: pytest.TempPathFactory) -> View:
    return look(render_page(report), tmp_path_factory.mktemp("page"), HEIGHT)


def test_the_page_draws_to_the_end_without_a_network(view: View) -> None:
    assert 'data-drawn="yes"' in view.document
    assert "A town &amp; its &lt;people&gt;</h1>" in view.document


def test_every_chart_is_there_and_not_empty(view: View) -> None:
    expected = {"visitors", "triangle", "calendar", "gaps", "truth"}
    expected |= {"attribute-0-bars", "attribute-1-bars", "attribute-1-flows", "attribute-2-bars"}
    assert expected <= set(view.charts)
    for name in expected:
        chart = view.chart(name)
        assert chart.shape[0] > 150 and chart.shape[1] > 300, f"{name} has no room"
        painted = (chart != 255).any(axis=2).mean()
        assert painted > 0.02, f"{name} is empty"
        assert len(np.unique(chart.reshape(-1, 3), axis=0)) > 10, f"{name} has no more than a frame"


def test_bars_estimates_and_the_truth_are_in_their_colours(view: View) -> None:
    def share(name: str, colour: tuple[int, int, int]) -> float:
        return float((view.chart(name) == colour).all(axis=2).mean())

    assert share("attribute-0-bars", (0x99, 0xD5, 0xCD)) > 0.01, "bars"
    assert share("visitors", (0x0F, 0x76, 0x6E)) > 0.005, "new visitors"
    assert share("visitors", (0xD9, 0x77, 0x06)) > 0.001, "the truth"


def test_a_period_shows_smoothed_shares_as_rings_beside_the_estimates(report: MobilityReport, tmp_path: Path) -> None:
    view = look(render_page(narrowed(report, 60, 60)), tmp_path, HEIGHT)
    assert "smoothed with earlier periods" in view.document
    assert (view.chart("attribute-0-bars") == (0x0F, 0x76, 0x6E)).all(axis=2).mean() > 0.0005


def test_who_likes_it_dark_gets_it_dark(report: MobilityReport, tmp_path: Path) -> None:
    view = look(render_page(report), tmp_path, HEIGHT, dark=True)
    assert (view.picture[0, 0] == (0x0E, 0x16, 0x1C)).all()
    for name in ("visitors", "triangle", "attribute-0-bars"):
        chart = view.chart(name)
        assert np.median(chart) < 60, f"{name} is bright"
        assert chart.max() > 150, f"nothing can be read on {name}"


def test_the_page_asks_nobody_for_anything(report: MobilityReport) -> None:
    page = render_page(report)
    head = page[: page.index("<style>")]
    assert "default-src 'none'" in head
    assert 'src="' not in head and "<link" not in page[: page.index("plotly.js v")]


def test_what_a_survey_says_of_itself_cannot_break_out_of_the_page(report: MobilityReport) -> None:
    evil = report.model_copy(update={"title": "</script><script>alert(1)</script>"})
    assert "<script>alert(1)" not in render_page(evil)
