"""The merge, rule by rule."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from stream_app.merging.finals import Final, final_key
from stream_app.results import RESULT_TOPICS, Release

from analytics.estimation.estimates import Estimates
from analytics.mobility import answers, count_history
from analytics.windows import ByGap
from analytics.windows.first_reports import Counters
from protocols.errors import LogError
from protocols.scheme import Scheme
from protocols.wire import CONTENT_TYPE_HEADER
from stream_app.counting.partials import Part, Progress, encode_partial
from stream_app.log.flushes import Output
from stream_app.log.losses import Loss
from stream_app.log.skipped import Skipped, Why
from stream_app.merging.merger import LIVE_AT_ONCE
from tests.helpers.published import Memory
from tests.stream_app.crashes import keep
from tests.stream_app.merges import Owner, counts, finals, live, part, progress, results
from tests.stream_app.worlds import SURVEYS, scheme


def test_a_period_is_final_when_every_partition_has_closed_it() -> None:
    owner = Owner()
    assert finals(owner.take(part(0, 0, 5, 10, closed=True), progress(0, 5, 0))) == {}
    assert finals(owner.take(progress(1, 2, 0))) == {0: 10}, "a partition that counted nothing closes too"


def test_a_lower_or_equal_offset_never_replaces() -> None:
    owner = Owner(partitions=1)
    flush = owner.take(part(0, 0, 5, 10), part(0, 0, 5, 99), part(0, 0, 4, 98))
    assert live(flush).open[0].n == 10
    assert live(owner.take(part(0, 0, 6, 11))).open[0].n == 11


def test_the_first_closed_part_is_never_replaced() -> None:
    owner = Owner(partitions=1)
    flush = owner.take(
        part(0, 0, 5, 10, closed=True), part(0, 0, 9, 99, closed=True), part(0, 0, 12, 98), progress(0, 5, 0)
    )
    assert finals(flush) == {0: 10}


def test_a_final_is_never_published_again_with_other_counts() -> None:
    owner = Owner(partitions=1)
    owner.take(part(0, 0, 5, 10, closed=True), progress(0, 5, 0))
    assert finals(owner.take(part(0, 0, 50, 99, closed=True), progress(0, 50, 0))) == {}


def test_periods_before_the_first_report_have_no_final_and_empty_ones_after_it_have_one() -> None:
    owner = Owner(partitions=1)
    assert finals(owner.take(progress(0, 1, 40_000))) == {}
    flush = owner.take(part(40_002, 0, 7, 3, closed=True), progress(0, 7, 40_004))
    assert finals(flush) == {40_002: 3, 40_003: 0, 40_004: 0}


def test_a_histogram_and_a_mobility_report_of_a_period_agree_on_what_both_contain() -> None:
    few, many = scheme("minimum: 50,"), scheme()
    for terms, suppressed in ((few, "minimum"), (many, None)):
        owner = Owner(partitions=1, lookup={"s": terms}.get)
        published = Memory(owner.take(part(0, 0, 5, 10, closed=True), progress(0, 5, 0)))
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
    outputs = {output.topic: output for output in flush if isinstance(output, Output)}
    made = [topic for topic in RESULT_TOPICS if topic.name != "forecasts"]
    assert set(outputs) == {topic.name for topic in made}
    for topic in made:
        headers = {CONTENT_TYPE_HEADER: topic.content_type.encode(), "content-encoding": b"gzip"}
        assert dict(outputs[topic.name].headers) == headers
        value = gzip.decompress(outputs[topic.name].value)
        assert next(iter(json.loads(value).items())) == ("schema_version", topic.schema_version)


def test_a_flush_has_the_last_offset_read_and_the_next_one_writes_only_changes() -> None:
    owner = Owner(partitions=1)
    assert owner.take(part(0, 0, 5, 10), part(0, 0, 6, 11, closed=True), progress(0, 6, 0)).offset == 2
    assert not owner.merger.flush()


def test_more_finals_than_a_horizon_are_all_frozen_before_they_are_published() -> None:
    owner = Owner(partitions=1)
    flush = owner.take(part(0, 0, 5, 10, closed=True), progress(0, 5, 6))
    frozen = [item.key for item in flush.stages[1] if not isinstance(item, Output)]
    assert frozen == [final_key(0, ("s", period)) for period in range(7)]


def test_rejects_are_in_the_live_result_and_not_in_finals() -> None:
    flush = Owner(partitions=2).take(
        progress(0, 4, -1, late=3), progress(1, 4, -1, late=1, repeat=2), part(0, 0, 4, 5), progress(0, 3, -1, late=99)
    )
    assert live(flush).rejects == {"late": 4, "repeat": 2}
    finals = [item.value for item in flush if isinstance(item, Output) and item.topic != "live"]
    assert b"reject" not in b"".join(map(gzip.decompress, finals))


NOISED = {"s": scheme("presence_epsilon: 1,")}


def test_with_noise_on_presence_a_live_result_says_what_is_closed_and_nothing_else() -> None:
    owner = Owner(partitions=1, lookup=NOISED.get)
    owner.take(
        part(0, 0, 5, 10, closed=True),
        part(1, 0, 5, 3),
        Progress("s", 0, 5, 0, {"repeat": 7}, {0: 4}, (Loss(0, 0, 2),)),
    )
    nothing: dict[str, object] = {"open": (), "rejects": {}, "lates": {}, "lost": (), "pieces": ()}
    assert owner.merger.live("s").model_dump() == {"schema_version": 7, "survey": "s", "closed_through": 0} | nothing


def test_with_noise_on_presence_nothing_is_published_when_somebody_reports() -> None:
    """Neither a report nor a refused row makes a live result: that it came would show that somebody was there."""
    owner, store = Owner(partitions=1, lookup=NOISED.get), dict[bytes, bytes]()
    for partial in (part(0, 0, 5, 10), progress(0, 6, -1, repeat=1), part(0, 0, 7, 11)):
        flush = owner.take(partial)
        assert not [item for item in flush if isinstance(item, Output)]
        keep(store, flush)
    owner = Owner(partitions=1, lookup=NOISED.get, records=store.items())
    assert not [item for item in owner.take() if isinstance(item, Output)], "nor does a restart"
    assert live(owner.take(progress(0, 8, 0))).closed_through == 0


def test_with_noise_on_presence_the_first_final_does_not_depend_on_who_reported() -> None:
    def published(*partials: Part | Progress) -> list[bytes]:
        flush = Owner(partitions=1, lookup=NOISED.get).take(*partials)
        return [item.key for item in flush if isinstance(item, Output)]

    somebody = published(part(0, 0, 3, 1, closed=True), part(1, 0, 3, 9, closed=True), progress(0, 3, 1))
    assert somebody == published(part(1, 0, 3, 9, closed=True), progress(0, 3, 1))
    assert somebody == published(progress(0, 3, 1)) == [b"s/0", b"s/0", b"s/1", b"s/1", b"s"]
    ahead = NOISED["s"].survey.ahead
    expected = [key for t in range(ahead) for key in [f"s/{t}".encode()] * 2]
    assert published(progress(0, 3, 100)) == [*expected, b"s"], "later ones cannot have a report"


def test_the_release_of_a_period_is_kept_instead_of_its_counts() -> None:
    owner = Owner(partitions=1, lookup=NOISED.get)
    flush = owner.take(part(0, 0, 5, 10, closed=True), progress(0, 5, 0))
    (record,) = [item for item in flush.stages[1] if not isinstance(item, Output)]
    assert record.value is not None
    final = Final.decode(record.value, {})
    assert final is not None and isinstance(final.counts, Release)
    kept, (shown,) = final.counts, Memory(flush).histograms("s")
    for attribute in shown.attributes:
        assert attribute.statistics is not None
        assert list(attribute.statistics.n) == kept.n[attribute.name].tolist()
        assert np.array_equal(attribute.statistics.supports_of_all_gaps, kept.N[attribute.name])
    store: dict[bytes, bytes] = {}
    keep(store, flush)
    after = part(1, 0, 6, 9, closed=True), progress(0, 6, 1)
    restarted = Owner(partitions=1, lookup=NOISED.get, records=store.items())
    assert results(restarted.take(*after)) == results(owner.take(*after)), "also after a restart"


def test_a_flush_writes_the_records_of_the_surveys_that_changed_and_no_others() -> None:
    """And their parts, each once: the rest of the merge costs nothing, however many surveys it has."""
    names = [f"s{number}" for number in range(50)]
    owner = Owner(partitions=2, lookup=dict.fromkeys(names, SURVEYS["s"]).get)
    owner.take(*(Part(name, 0, p, 1, False, counts(5)) for name in names for p in range(2)))
    owner.merger.flush(True, True)
    flush = owner.take(Part("s7", 0, 1, 2, False, counts(6)))
    written = [item.key for item in flush if not isinstance(item, Output)]
    assert written == [b"merge/0/part/s7/0/1", b"merge/0/survey/s7", b"merge/0/position"]
    assert [item.key for item in flush if isinstance(item, Output)] == [b"s7"]


def test_a_final_sums_the_windows_that_end_with_it_and_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However many periods were closed before it: also after the horizon, and after a year."""
    long = scheme("minimum: 2,").survey.model_copy(update={"horizon": 30})
    summed = Counter[int]()
    now = 0

    def first_reports(periods: Sequence[ByGap], start: int, length: int) -> Counters:
        summed[now] += 1
        return real(periods, start, length)

    real = count_history.first_reports
    monkeypatch.setattr(count_history, "first_reports", first_reports)
    owner = Owner(partitions=1, lookup={"s": Scheme(long)}.get)
    for now in range(80):
        (published,) = Memory(owner.take(part(now, 0, now, 10, closed=True), progress(0, now, now))).mobility("s")
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
    owner = Owner(partitions=1)
    for period in range(4):
        estimated.clear()
        flush = owner.take(part(period, 0, period, 10 + period, closed=True), progress(0, period, period))
        (published,) = Memory(flush).mobility("s")
        assert len(published.windows) <= 2
        assert sum(estimated.values()) == 2 * len(published.windows), "two attributes in each window"


def test_a_marker_among_the_partials_is_skipped_and_a_gap_is_an_error() -> None:
    owner = Owner(partitions=1)
    owner.merger.skip(Skipped(0, 0, Why.MARKER))
    assert finals(owner.take(part(0, 0, 5, 10, closed=True), progress(0, 5, 0))) == {0: 10}
    for why in (Why.ABSENT, Why.TOO_LARGE, Why.UNDECODABLE):
        with pytest.raises(LogError, match="records are missing"):
            owner.merger.skip(Skipped(3, 4, why))


def test_of_many_live_results_a_flush_has_some_and_each_has_its_turn() -> None:
    names = [f"s{number}" for number in range(2 * LIVE_AT_ONCE + 1)]
    many = {name: Scheme(SURVEYS["s"].survey.model_copy(update={"id": name})) for name in names}
    owner = Owner(partitions=1, lookup=many.get)

    def shown(*surveys: str, period: int = 0, everything: bool = False) -> list[str]:
        for name in surveys:
            partial = Part(name, period, 0, owner.merger.next_offset, False, counts(1))
            owner.merger.apply(owner.merger.next_offset, encode_partial(partial))
        return [item.key.decode() for item in owner.merger.flush(True, everything) if isinstance(item, Output)]

    assert shown(*names) == sorted(names[:LIVE_AT_ONCE]) and owner.merger.has_first
    assert shown() == sorted(names[LIVE_AT_ONCE : 2 * LIVE_AT_ONCE])
    assert shown(*names[:LIVE_AT_ONCE]) == sorted([names[-1], *names[: LIVE_AT_ONCE - 1]]), (
        "the last one waited longest"
    )
    assert not owner.merger.has_first
    new = shown(*names[:-1], names[-1], period=1)
    assert len(new) == LIVE_AT_ONCE and owner.merger.has_first
    assert len(shown(everything=True)) == len(names) - LIVE_AT_ONCE
    assert shown() == []
