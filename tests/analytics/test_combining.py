"""Reports made period by period, put together, say what one report on everything says."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.mobility import (
    History,
    MobilityReport,
    Truth,
    combine,
    mobility_report,
    with_changes,
    with_lates,
    with_truth,
)
from analytics.mobility.output.page.data import page_data
from analytics.mobility.publication import triangle_windows
from analytics.windows import Window
from analytics.windows.first_reports import by_gap
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey

PERIODS, HORIZON, DEVICES = 12, 4, 120


@pytest.fixture(scope="module")
def history() -> History:
    """A few devices that come and go, so that some windows have few visitors more than others."""
    survey = f"{{id: s, start: 2026-01-05T00:00:00Z, period: 1d, eps: 3, horizon: {HORIZON}, minimum: 20}}"
    scheme = Scheme(parse_survey(survey[:-1] + ", attributes: [{name: a, values: [x, y, z], mechanism: grr}]}"))
    random = np.random.default_rng(4)
    supports = np.zeros((PERIODS, HORIZON, 3), dtype=np.int64)
    last = np.full(DEVICES, -HORIZON)
    for t in range(PERIODS):
        here = np.flatnonzero(random.random(DEVICES) < random.uniform(0.1, 0.6))
        gaps = np.minimum(t - last[here], HORIZON)
        np.add.at(supports, (t, gaps - 1, random.integers(3, size=len(here))), 1)
        last[here] = t
    n = by_gap(supports.sum(axis=2))
    return History(scheme, 0, {"a": n}, {"a": by_gap(supports)}, {"a": n})


def _since(history: History, first: int, last: int) -> History:
    """What is still known at the end of a period: no more than windows can reach."""
    kept = slice(first, last + 1)
    n, supports = history.reports["a"][kept], history.supports["a"][kept]
    return History(history.scheme, first, {"a": n}, {"a": supports}, {"a": n})


@pytest.fixture(scope="module")
def combined(history: History) -> MobilityReport:
    return combine([mobility_report(_since(history, max(0, t - HORIZON + 1), t), ending=t) for t in range(PERIODS)])


def test_period_by_period_the_same_windows_are_told_of_and_the_same_is_said(
    history: History, combined: MobilityReport
) -> None:
    whole = mobility_report(history)
    assert {w.suppressed for w in whole.windows} == {None, "minimum", "difference"}, "all cases must occur"
    assert {(w.first, w.last) for w in combined.windows} == {(w.first, w.last) for w in whole.windows}
    for window in whole.windows:
        alone = combined.window(window.first, window.last)
        assert (alone.kind, alone.suppressed, alone.visitors) == (window.kind, window.suppressed, window.visitors)
        assert (alone.new, alone.gaps) == (window.new, window.gaps)
        assert [[v.share for v in a.values] for a in alone.attributes] == [
            [v.share for v in a.values] for a in window.attributes
        ]
    assert sorted(combined.triangle, key=str) == sorted(whole.triangle, key=str)


@pytest.mark.parametrize(("period", "horizon"), [("1d", 4), ("6h", 3), ("6h", 4), ("6h", 8), ("7h", 8), ("36h", 4)])
def test_triangles_of_successive_reports_have_the_same_steps(period: str, horizon: int) -> None:
    terms = f"{{id: s, start: 2026-01-05T18:00:00Z, period: {period}, eps: 1, horizon: {horizon}"
    survey = parse_survey(terms + ", attributes: [{name: a, values: [x, y]}]}")
    one_by_one = [triangle_windows(survey, range(max(0, t - horizon + 1), t + 1)) for t in range(PERIODS)]
    assert {window for told in one_by_one for window in told} == set(triangle_windows(survey, range(PERIODS)))


def test_what_came_too_late_is_each_windows_possible_shortfall(combined: MobilityReport) -> None:
    report = with_lates(combined, {0: 5, 1: 2, 7: 1})
    told = [w for w in report.windows if not w.suppressed]
    assert [w.shortfall for w in told] == [
        sum({0: 5, 1: 2, 7: 1}.get(t, 0) for t in range(w.first, w.last + 1)) for w in told
    ]


def test_the_truth_stands_beside_what_is_told_and_nowhere_else(combined: MobilityReport) -> None:
    truth = {Window(w.first, w.last): Truth(99, {"a": np.array([50, 30, 19])}) for w in combined.windows}
    report = with_truth(combined, truth)
    for window in report.windows:
        assert window.truth == (None if window.suppressed else 99)
        for attribute in window.attributes:
            assert [value.truth for value in attribute.values] in ([50, 30, 19], [])


def test_put_together_the_same_changes_are_found_as_in_one_report(history: History, combined: MobilityReport) -> None:
    whole, later = mobility_report(history, baseline=range(5)), with_changes(combined, baseline=range(5))
    assert sum(w.change is not None and w.baseline is not None for w in whole.windows) > 3
    for window in whole.windows:
        put_together = later.window(window.first, window.last)
        assert (put_together.change, put_together.baseline) == (window.change, window.baseline)
        assert put_together.attributes == window.attributes


def test_where_old_reports_are_gone_the_page_shows_the_triangle_of_what_is_left(history: History) -> None:
    left = range(8, PERIODS)
    report = combine([mobility_report(_since(history, t - HORIZON + 1, t), ending=t) for t in left])
    assert min(cell.first for cell in report.triangle) < left[0], "what is left reaches back"
    triangle = page_data(report)["triangle"]
    assert len(triangle["steps"]) == len(left)
    kept = [cell for cell in report.triangle if cell.first in left]
    assert [[first + left[0], last + left[0]] for first, last, _ in triangle["cells"]] == [
        [cell.first, cell.last] for cell in kept
    ]
