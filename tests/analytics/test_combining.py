"""Reports made period by period, put together, say what one report on everything says."""

import numpy as np
import pytest

from analytics.estimation import shortened
from analytics.mobility import (
    CountHistory,
    MobilityReport,
    WindowTruth,
    with_changes,
    with_shortfall,
    with_truth,
)
from analytics.mobility.answers import Answers
from analytics.mobility.model import quantities, quantity
from analytics.mobility.publication import Publication, triangle_windows
from analytics.windows import Window
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from stream_app.counting import Statistics
from stream_app.finals import Final, NotCounted
from tests.helpers.published import publish
from views.past import history_of

PERIODS, HORIZON, DEVICES = 12, 4, 120


@pytest.fixture(scope="module")
def history() -> CountHistory:
    """A few devices that come and go, so that some windows have few visitors more than others."""
    survey = f"{{id: s, start: 2026-01-05T00:00:00Z, period: 1d, eps: 3, horizon: {HORIZON}}}"
    scheme = Scheme(parse_survey(survey[:-1] + ", attributes: [{name: a, values: [x, y, z], mechanism: grr}]}"))
    random = np.random.default_rng(4)
    supports = np.zeros((PERIODS, HORIZON, 3), dtype=np.int64)
    last = np.full(DEVICES, -HORIZON)
    for t in range(PERIODS):
        here = np.flatnonzero(random.random(DEVICES) < random.uniform(0.1, 0.6))
        gaps = np.minimum(t - last[here], HORIZON)
        np.add.at(supports, (t, gaps - 1, random.integers(3, size=len(here))), 1)
        last[here] = t
    gaps = np.arange(1, HORIZON + 1, dtype=np.uint16)
    counts = [{"a": Statistics(gaps, period.sum(axis=1), period)} for period in supports]
    return history_of(scheme, [Final.of(scheme, t, counted, NotCounted()) for t, counted in enumerate(counts)])


@pytest.fixture(scope="module")
def combined(history: CountHistory) -> MobilityReport:
    return publish(history)


def test_reports_made_from_a_horizon_of_counts_have_the_windows_and_numbers_of_all_counts(
    history: CountHistory, combined: MobilityReport
) -> None:
    whole = Publication(history)
    assert {Window(w.first, w.last): w.kind for w in combined.windows} == whole.kinds
    for published in combined.windows:
        window = Window(published.first, published.last)
        assert published.suppressed is None
        shares, values = shortened(Answers.of(history, "a", window).shares), published.attribute("a").values
        assert published.visitors == quantity(history.visitors(window))
        assert values and values.share.model_dump_json() == quantities(shares).model_dump_json()
    assert {Window(cell.first, cell.last): cell.visitors for cell in combined.triangle} == {
        window: quantity(history.visitors(window)) for window in whole.triangle
    }


@pytest.mark.parametrize(("period", "horizon"), [("1d", 4), ("6h", 3), ("6h", 4), ("6h", 8), ("7h", 8), ("36h", 4)])
def test_triangles_of_successive_reports_have_the_same_steps(period: str, horizon: int) -> None:
    terms = f"{{id: s, start: 2026-01-05T18:00:00Z, period: {period}, eps: 1, horizon: {horizon}"
    survey = parse_survey(terms + ", attributes: [{name: a, values: [x, y]}]}")
    one_by_one = [triangle_windows(survey, range(max(0, t - horizon + 1), t + 1)) for t in range(PERIODS)]
    assert {window for windows in one_by_one for window in windows} == set(triangle_windows(survey, range(PERIODS)))


def test_what_came_too_late_or_was_lost_is_each_windows_possible_shortfall(combined: MobilityReport) -> None:
    """What is lost may be of any of some periods: a window that includes several of them lacks it once."""
    report = with_shortfall(combined, {0: 5, 1: 2, 7: 1}, [(1, 3, 10)])
    published = [w for w in report.windows if not w.suppressed]
    assert [w.shortfall for w in published] == [
        sum({0: 5, 1: 2, 7: 1}.get(t, 0) for t in range(w.first, w.last + 1)) + 10 * (w.first <= 3 and w.last >= 1)
        for w in published
    ]
    assert all(w.shortfall is None for w in combined.windows), "a final does not know what comes after it"


def test_the_truth_stands_beside_what_is_published_and_nowhere_else(combined: MobilityReport) -> None:
    truth = {Window(w.first, w.last): WindowTruth(99, {"a": np.array([50, 30, 19])}) for w in combined.windows}
    report = with_truth(combined, truth)
    for window in report.windows:
        assert window.truth == (None if window.suppressed else 99)
        for attribute in window.attributes:
            assert attribute.values is None or attribute.values.truth.tolist() == [50, 30, 19]


def test_changes_reach_further_back_than_the_horizon(history: CountHistory, combined: MobilityReport) -> None:
    assert all(w.change is None and w.baseline is None for w in combined.windows), "changes are left to readers"
    report, compared = with_changes(combined), 0
    for t in range(7, PERIODS):
        day, week_before = report.window(t, t), report.window(t - 7, t - 7)
        if day.suppressed or week_before.suppressed:
            assert day.change is None
            continue
        assert day.change and (day.change.first, day.change.against) == (t - 7, "a week before")
        now, then = (history.visitors(Window(s, s)).value for s in (t, t - 7))
        assert day.change.percent.value == pytest.approx((now / then - 1) * 100)
        values, earlier = (window.attribute("a").values for window in (day, week_before))
        assert values and earlier and values.change and (values.change.first, values.change.last) == (t - 7, t - 7)
        shares, percent = values.share.value / earlier.share.value, values.change.percent.value
        known = ~np.isnan(percent)
        assert percent[known] == pytest.approx((shares * now / then - 1)[known] * 100)
        compared += 1
    assert compared >= 3


def test_the_baseline_is_the_median_of_what_is_published_of_it(combined: MobilityReport) -> None:
    report, normal = with_changes(combined, baseline=range(2, 5)), []
    for t in range(2, 5):
        visitors = combined.window(t, t).visitors
        normal += [] if visitors is None or visitors.value is None else [visitors.value]
    last = report.window(6, 6)
    assert last.visitors and last.visitors.value and last.baseline and len(normal) > 0
    assert last.baseline.percent.value == pytest.approx((last.visitors.value / np.median(normal) - 1) * 100)
    assert last.baseline.against == f"the median of {len(normal)} comparable windows"
    assert (last.baseline.first, last.baseline.last) == (2, 4)


def test_a_period_of_the_baseline_is_not_compared_with_itself(combined: MobilityReport) -> None:
    published = [t for t in range(PERIODS) if not combined.window(t, t).suppressed]
    alone = with_changes(combined, baseline=range(published[0], published[0] + 1))
    assert alone.window(published[0], published[0]).baseline is None, "there is nothing else to compare it with"
    assert alone.window(published[1], published[1]).baseline is not None
