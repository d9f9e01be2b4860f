"""The verdict of a period on the gaps of its reports: more cannot have come before than there were."""

from protocols.scheme import Scheme
from protocols.wire import decode_frame
from stream_app.counting import PeriodCounts
from stream_app.finals import Final, NotCounted
from tests.stream_app.worlds import SCHEME, Reports, Row, scheme, wire
from views.past import Past
from views.results.verdict import verdict_of

MINIMUM = scheme("minimum: 5,")


def final(own: Scheme, period: int, reports: int, gap: int, missing: NotCounted | None = None) -> Final:
    """A final of so many reports whose devices say that they last reported so many periods ago."""
    counted = PeriodCounts(own)
    rows = tuple(Row(token, gap, colour=token % 3) for token in range(1, reports + 1))
    frame = decode_frame(wire(Reports(period, rows), own)[1], {"s": own}.get)
    counted.count(frame)
    return Final.of(own, period, counted.snapshot(), missing or NotCounted())


def flow(own: Scheme, *finals: Final) -> tuple[int, int, int, bool] | None:
    """The period with the least room, how many say they were there, how many there were, and whether it is broken."""
    verdict = verdict_of(Past(own, finals))
    assert verdict is not None
    found = verdict.flow
    return found and (found.period, found.claimed, found.reported, found.broken)


def test_more_reports_of_devices_that_were_there_than_there_were_reports_are_a_contradiction() -> None:
    first = final(SCHEME, 0, reports=10, gap=3)
    assert flow(SCHEME, first) is None, "there is nothing to compare with"
    assert flow(SCHEME, first, final(SCHEME, 1, reports=10, gap=1)) == (0, 10, 10, False)
    assert flow(SCHEME, first, final(SCHEME, 1, reports=12, gap=1)) == (0, 12, 10, True)
    assert flow(SCHEME, first, final(SCHEME, 1, reports=12, gap=3)) == (0, 0, 10, False), "they were never there"


def test_rows_that_were_late_or_refused_may_be_those_that_are_missing() -> None:
    """Each was a report of a device that was there, although it was not counted."""
    refused = final(SCHEME, 0, reports=10, gap=3, missing=NotCounted(refused=1))
    late = NotCounted(late={0: 2})
    assert flow(SCHEME, refused, final(SCHEME, 1, reports=13, gap=1, missing=late)) == (0, 13, 13, False)
    assert flow(SCHEME, refused, final(SCHEME, 1, reports=14, gap=1, missing=late)) == (0, 14, 13, True)


def test_where_small_numbers_are_not_published_counts_by_gap_are_not_either_and_nothing_flows() -> None:
    before, after = final(MINIMUM, 0, reports=8, gap=3), final(MINIMUM, 1, reports=20, gap=1)
    assert flow(MINIMUM, before, after) is None
