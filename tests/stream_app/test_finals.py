"""What a final says beside its counts: nothing that no reader needs, and nothing that is not so."""

import pyarrow as pa
import pytest

from protocols.scheme import Scheme
from protocols.wire import decode_frame
from stream_app.counting import PeriodCounts
from stream_app.finals import Final
from stream_app.merging.survey import Frozen
from stream_app.sizes import counter_bytes
from tests.helpers.one_device import final_after
from tests.helpers.surveys import of_size, scheme_with
from tests.stream_app.worlds import CALENDAR, Reports, Row, by_calendar, scheme, wire


def counts_of(scheme: Scheme, reports: Reports) -> PeriodCounts:
    counts = PeriodCounts(scheme)
    _, value = wire(reports, scheme)
    frame = decode_frame(value, {scheme.survey.id: scheme}.get)
    counts.count(frame)
    return counts


@pytest.mark.parametrize(
    ("extra", "version", "gaps", "windows"),
    [
        ("", "1", [1], None),
        ("minimum: 5,", "2", [0], ["period"]),
        ("minimum: 50,", "2", [], ["period"]),
        ("presence_epsilon: 1,", "2", [0], ["period"]),
    ],
)
def test_a_final_has_counts_by_gap_or_windows(
    extra: str, version: str, gaps: list[int], windows: list[str] | None
) -> None:
    """By gap only where everything is published; otherwise all gaps together, if there are enough reports."""
    own = scheme(extra)
    counts = counts_of(own, Reports(0, tuple(Row(token) for token in range(1, 9)))).snapshot()
    final = final_after(own, 0, counts, None)
    found = Final.decode(final.value)
    assert metadata_of(final.value)["version"] == version
    assert {gap for table in found.counts.values() for gap in table.gaps.tolist()} == set(gaps)
    assert (found.windows and [window.kind for window in found.windows]) == windows
    assert Final.decode(found.encode()).encode() == final.value


def metadata_of(value: bytes) -> dict[str, str]:
    with pa.ipc.open_stream(value) as stream:
        return {key.decode(): text.decode() for key, text in stream.schema.metadata.items()}


def test_sums_of_units_have_no_tables_that_are_not_published() -> None:
    """They were in the state of workers, where nothing needs them."""
    own = Scheme(CALENDAR.survey.model_copy(update={"minimum": 1}))
    before: Frozen | None = None
    for number, reports in enumerate(by_calendar([Reports(0, (Row(1), Row(2))), Reports(1, (Row(2),))])):
        assert isinstance(reports, Reports)
        before = final_after(own, number, counts_of(own, reports).snapshot(), before)
    assert before is not None and before.sums is not None
    sums = {series: found for (series, _), found in before.sums.items()}
    assert sums["ever"].n == {"colour": 2, "page": 2}
    assert not any(found.N for found in sums.values()), "first answers are published from no number on"


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
