"""Numbers of few people are not published, nor numbers from which they could be computed."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from analytics.mobility import CountHistory, mobility_report, with_changes
from analytics.mobility.suppression import merged_gaps, suppressions
from analytics.windows import Window
from analytics.windows.first_reports import by_gap
from tests.helpers.crowd import scheme_of
from tests.helpers.published import publish

MINIMUM = 10


@given(st.lists(st.integers(0, 30), min_size=1, max_size=6), st.randoms())
def test_no_published_window_is_small_or_differs_from_a_published_one_inside_it_by_few(
    first_visits: list[int], random: object
) -> None:
    """Visitors who come once each, so that a window's visitors are the sum of its periods'."""
    windows = [Window(s, e) for s in range(len(first_visits)) for e in range(s, len(first_visits))]
    visitors = {w: sum(first_visits[w.first : w.last + 1]) for w in windows}
    suppressed = suppressions(visitors, MINIMUM)
    published = [w for w in windows if w not in suppressed]
    assert all(visitors[w] >= MINIMUM for w in published)
    for outer in published:
        for inner in published:
            if inner.inside(outer):
                difference = visitors[outer] - visitors[inner]
                assert difference == 0 or difference >= MINIMUM


def test_a_window_in_which_nobody_else_came_is_told_of() -> None:
    assert suppressions({Window(0, 0): 50, Window(0, 1): 50}, MINIMUM) == {}


@given(st.lists(st.integers(0, 30), max_size=12), st.integers(0, 15))
@example([40, 0, 3], 10)
def test_merged_gaps_lose_nobody_and_single_out_nobody(counts: list[int], minimum: int) -> None:
    ranges = merged_gaps(counts, minimum)
    published = [sum(counts[low - 1 : high]) for low, high in ranges]
    assert all(count == 0 or count >= minimum for count in published)
    if sum(counts) >= minimum:
        assert [gap for low, high in ranges for gap in range(low, high + 1)] == list(range(1, len(counts) + 1))
        assert sum(published) == sum(counts)
    else:
        assert sum(published) == 0


def _history(new: list[int], returning: list[int]) -> CountHistory:
    """Two-valued answers; in each period some who are new and some who were there the period before."""
    scheme = scheme_of("{name: a, values: [x, y], mechanism: grr}", f"eps: 1, horizon: 3, minimum: {MINIMUM}")
    n = np.array([[back, 0, fresh] for fresh, back in zip(new, returning, strict=True)])
    supports = np.stack([n // 2, n - n // 2], axis=2)
    return CountHistory(scheme, 0, {"a": by_gap(n)}, {"a": by_gap(supports)})


def test_a_period_below_the_minimum_says_nothing() -> None:
    window = with_changes(publish(_history([100, 5], [0, 3]))).window(1, 1)
    assert window.suppressed == "minimum"
    assert (window.visitors, window.new, window.change, window.attributes) == (None, None, None, ())


def test_a_window_that_would_give_few_away_says_nothing_and_is_not_in_the_triangle() -> None:
    report = publish(_history([100, 5], [0, 90]))
    window = report.window(0, 1)
    assert window.suppressed == "difference"
    assert {(cell.first, cell.last): cell.visitors is None for cell in report.triangle}[0, 1]
    assert report.window(1, 1).visitors is not None


def test_few_new_visitors_are_not_told_of() -> None:
    window = mobility_report(_history([100, 5], [0, 90])).window(1, 1)
    assert window.visitors is not None and window.new is None and window.returning is None and window.gaps == ()


def test_where_each_device_answers_one_attribute_an_attribute_with_few_answers_is_silent() -> None:
    scheme = scheme_of("{name: a, values: [x, y]}, {name: b, values: [x, y]}", f"eps: 1, minimum: {MINIMUM}")
    n = {"a": by_gap(np.array([[3]])), "b": by_gap(np.array([[100]]))}
    supports = {"a": by_gap(np.array([[[1, 2]]])), "b": by_gap(np.array([[[40, 60]]]))}
    window = mobility_report(CountHistory(scheme, 0, n, supports)).window(0, 0)
    few, many = window.attribute("a"), window.attribute("b")
    assert (few.suppressed, few.n, few.values) == ("minimum", None, None)
    assert (many.suppressed, many.n) == (None, 100)
    assert many.values and len(many.values.share.value) == 2


def test_a_change_does_not_tell_what_a_silent_window_keeps() -> None:
    assert with_changes(publish(_history([5, 100], [0, 0]))).window(1, 1).change is None


def test_without_reports_and_without_a_minimum_a_window_is_empty_and_says_so() -> None:
    scheme = scheme_of("{name: a, values: [x, y], mechanism: grr}", "eps: 1, horizon: 2")
    nobody, nothing = by_gap(np.zeros((1, 2), dtype=int)), by_gap(np.zeros((1, 2, 2), dtype=int))
    empty = CountHistory(scheme, 0, {"a": nobody}, {"a": nothing})
    window = mobility_report(empty).window(0, 0)
    assert window.visitors and window.visitors.value == 0
    assert window.attribute("a").n == 0 and window.attribute("a").values is None
