"""What a final says beside its counts: nothing that no reader needs, and nothing that is not so."""

import pytest

from protocols.randomness import Keyring
from protocols.scheme import Scheme
from protocols.wire import decode_frame
from stream_app.counting import PeriodCounts
from stream_app.finals import Final, NotCounted, published_sums, release, sums_through
from stream_app.sizes import counter_bytes
from tests.helpers.surveys import of_size, scheme_with
from tests.stream_app.worlds import CALENDAR, SCHEME, Reports, Row, by_calendar, scheme, wire


def counts_of(scheme: Scheme, reports: Reports) -> PeriodCounts:
    counts = PeriodCounts(scheme)
    _, value = wire(reports, scheme)
    frame = decode_frame(value, {scheme.survey.id: scheme}.get)
    counts.count(frame)
    return counts


def test_sums_of_units_have_no_numbers_that_only_the_rule_of_the_minimum_needs() -> None:
    """They say how many reports came in each period, and the most of one: with a minimum, nobody may know it."""
    sums = {}
    for number, reports in enumerate(by_calendar([Reports(0, (Row(1), Row(2))), Reports(1, (Row(2),))])):
        counts = counts_of(CALENDAR, reports).snapshot()
        sums = sums_through(CALENDAR, number, counts, counts, NotCounted(), sums)
    assert {unit: found.visits for unit, found in sums.items()}["ever"] == {"colour": 3, "page": 3}
    assert {unit: found.most for unit, found in sums.items()}["ever"] == {"colour": 2, "page": 2}
    for found in published_sums(sums, CALENDAR, 1).values():
        assert (found.visits, found.most) == ({}, {})


@pytest.mark.parametrize(("extra", "ranges"), [("", False), ("minimum: 5,", True), ("presence_epsilon: 1,", False)])
def test_a_final_says_whether_its_rows_are_ranges_of_gaps(extra: str, ranges: bool) -> None:
    own = scheme(extra) if extra else SCHEME
    counts = counts_of(own, Reports(0, tuple(Row(token) for token in range(1, 9)))).snapshot()
    released = release(counts, own, 0, None, Keyring(bytes(16))) if own.presence else counts
    assert Final.decode(Final.of(own, 0, released, NotCounted()).encode()).ranges is ranges


def test_reports_that_only_show_a_presence_have_a_gap_and_a_number_in_each_record() -> None:
    """Two bytes for the gap and eight for the number, beside those of answers."""
    some_answer, all_answer = (scheme_with(of_size(10), eps=1, horizon=7, one_in=one_in) for one_in in (3, 1))
    assert counter_bytes(some_answer.survey) - counter_bytes(all_answer.survey) == 7 * (2 + 8)


def test_answers_that_are_gathered_may_wait_in_a_mebibyte_beside_all_else() -> None:
    """Supports of 1,000 values take 4 bytes each, so answers may wait in what is left of it."""
    survey = scheme_with({"name": "a", "range": {"last": 999}, "mechanism": "olh"}, eps=1).survey
    head = 2048 + 128 + len("a")
    gap = 32 + (2 + 8) + 8
    assert counter_bytes(survey) == head + gap + 4 * 1000 + 1024 * 1024
