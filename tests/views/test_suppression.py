"""Numbers of few people are not published, nor numbers from which they could be computed."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from analytics.mobility import MobilityReport, combine, with_changes
from analytics.mobility.report import merged_gaps
from protocols.scheme import Scheme
from stream_app.counting import Statistics
from stream_app.counting.counters import Counts
from tests.helpers.crowd import scheme_of
from tests.helpers.published import build_histogram, build_mobility

MINIMUM = 10
HORIZON = 3


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


def counted(**by_gap: dict[int, int]) -> Counts:
    """Reports by gap for each attribute; half of them support each of two values."""
    made = {}
    for name, reports in by_gap.items():
        n = np.array(list(reports.values()))
        gaps = np.array(list(reports), dtype=np.uint16)
        made[name] = Statistics(gaps, n, np.stack([n // 2, n - n // 2], axis=1))
    return made


def published(scheme: Scheme, *periods: Counts) -> MobilityReport:
    """The reports of consecutive periods, put together."""
    closed = dict(enumerate(periods))
    return combine([build_mobility(scheme, period, closed) for period in closed])


def visits(new: list[int], returning: list[int]) -> MobilityReport:
    """In each period some who are new and some who were there the period before."""
    scheme = scheme_of("{name: a, values: [x, y], mechanism: grr}", f"eps: 1, horizon: {HORIZON}, minimum: {MINIMUM}")
    periods = (counted(a={1: back, HORIZON: fresh}) for fresh, back in zip(new, returning, strict=True))
    return published(scheme, *periods)


def test_a_period_below_the_minimum_says_nothing() -> None:
    window = with_changes(visits([100, 5], [0, 3])).window(1, 1)
    assert window.suppressed == "minimum"
    assert (window.visitors, window.new, window.change, window.attributes) == (None, None, None, ())
    assert with_changes(visits([5, 100], [0, 0])).window(1, 1).change is None, "it would tell what was kept"


def test_a_window_that_would_give_few_away_says_nothing_and_is_not_in_the_triangle() -> None:
    report = visits([100, 5], [0, 90])
    assert report.window(0, 1).suppressed == "difference"
    assert {(cell.first, cell.last): cell.visitors is None for cell in report.triangle}[0, 1]
    assert report.window(1, 1).visitors is not None


def test_few_new_visitors_are_not_told_of_and_many_are() -> None:
    window = visits([100, 5], [0, 90]).window(1, 1)
    assert window.visitors is not None and window.new is None and window.returning is None and window.gaps == ()
    report = visits([100, 15], [0, 90])
    window = report.window(1, 1)
    assert window.new is not None and window.new.value == 15
    assert report.window(0, 1).visitors is not None


def test_where_each_device_answers_one_attribute_an_attribute_with_few_answers_is_silent() -> None:
    attributes = ", ".join(f"{{name: {name}, values: [x, y]}}" for name in "abc")
    scheme = scheme_of(attributes, f"eps: 1, minimum: {MINIMUM}")
    counts = counted(a={1: 6}, b={1: 100}, c={1: 7})
    found = {attribute.name: attribute for attribute in build_histogram("final", scheme, 0, counts).attributes}
    assert all(
        (found[name].suppressed, found[name].n, found[name].estimate) == ("minimum", None, None) for name in "ac"
    )
    assert (found["b"].suppressed, found["b"].n) == (None, 100)
    assert published(scheme, counts).window(0, 0).suppressed == "minimum", "100 would be read as all visitors"


def test_without_reports_and_without_a_minimum_a_window_is_empty_and_says_so() -> None:
    scheme = scheme_of("{name: a, values: [x, y], mechanism: grr}", "eps: 1, horizon: 2")
    window = published(scheme, counted(a={1: 0, 2: 0})).window(0, 0)
    assert window.visitors and window.visitors.value == 0
    assert window.attribute("a").n == 0 and window.attribute("a").values is None
