"""Views of what the merge publishes."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from analytics.estimation.estimates import Estimates
from analytics.mobility import answers, count_history
from analytics.windows import ByGap
from analytics.windows.first_reports import Counters
from protocols.scheme import Scheme
from protocols.wire import CONTENT_TYPE_HEADER
from tests.helpers.published import Memory, come, making
from tests.stream_app.merges import Owner, part, progress
from tests.stream_app.worlds import SCHEME, scheme
from views.reading import Results
from views.view import all_views


def test_a_histogram_and_a_mobility_report_of_a_period_agree_on_what_both_contain() -> None:
    few, many = scheme("minimum: 50,"), scheme()
    for terms, suppressed in ((few, "minimum"), (many, None)):
        owner = Owner(partitions=1, lookup={"s": terms}.get)
        flush = owner.take(part(0, 0, 5, 10, closed=True), progress(0, 5, 0))
        published = Memory(flush, terms.survey)
        (histogram,), (report,) = published.histograms("s"), published.mobility("s")
        assert (report.survey, report.fingerprint) == (histogram.survey, histogram.fingerprint)
        assert report.guarantees == histogram.guarantees
        window = report.window(0, 0)
        assert (window.begin, window.end) == (histogram.begin, histogram.end)
        assert window.suppressed == histogram.suppressed == suppressed
        for attribute in window.attributes:
            counted = histogram.attribute(attribute.name)
            assert (attribute.n, attribute.suppressed) == (counted.n, counted.suppressed) == (10, None)


def test_every_result_begins_with_its_schema_version_and_its_header_says_what_it_is() -> None:
    flush = Owner(partitions=1).take(part(0, 0, 5, 10, closed=True), progress(0, 5, 0))
    outputs = {output.topic: output for output in Memory(flush, SCHEME.survey).made}
    made = [topic for topic in all_views() if topic.name != "forecasts"]
    assert set(outputs) == {topic.name for topic in made}
    for topic in made:
        headers = {CONTENT_TYPE_HEADER: topic.content_type.encode(), "content-encoding": b"gzip"}
        assert dict(outputs[topic.name].headers) == headers
        value = gzip.decompress(outputs[topic.name].value)
        assert next(iter(json.loads(value).items())) == ("schema_version", topic.schema_version)


def test_a_final_sums_the_windows_that_end_with_it_and_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However many periods were closed before it: also after the horizon, and after a year."""
    long = scheme().survey.model_copy(update={"horizon": 30})
    summed = Counter[int]()
    now = 0

    def first_reports(periods: Sequence[ByGap], start: int, length: int) -> Counters:
        summed[now] += 1
        return real(periods, start, length)

    real = count_history.first_reports
    monkeypatch.setattr(count_history, "first_reports", first_reports)
    owner, runner, kept = Owner(partitions=1, lookup={"s": Scheme(long)}.get), *making(long)
    for now in range(80):
        runner.apply(come(owner.take(part(now, 0, now, 10, closed=True), progress(0, now, now)), long))
        *_, published = Results(kept).mobility("s")
        windows = [window for window in published.windows if not window.suppressed]
        assert summed[now] == 2 * (len(windows) - 1), "the supports of two attributes; its histogram has the period's"
        assert len(windows) <= 3, "the period, its week, and all days since the beginning"


def test_what_a_histogram_and_a_mobility_report_of_a_period_have_in_common_is_estimated_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    estimated = Counter[tuple[int, ...]]()

    def estimate(counts: Counters, *arguments: Any, **options: Any) -> Estimates:
        estimated[tuple(counts.tolist())] += 1
        return real(counts, *arguments, **options)

    real = answers.estimate
    monkeypatch.setattr(answers, "estimate", estimate)
    owner, runner, kept = Owner(partitions=1), *making(SCHEME.survey)
    for period in range(4):
        estimated.clear()
        runner.apply(
            come(
                owner.take(part(period, 0, period, 10 + period, closed=True), progress(0, period, period)),
                SCHEME.survey,
            )
        )
        *_, published = Results(kept).mobility("s")
        assert len(published.windows) <= 2
        assert sum(estimated.values()) == 2 * len(published.windows), "two attributes in each window"
