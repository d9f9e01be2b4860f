"""Which dead letters would be refused again is known before they are sent."""

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

from protocols.wire import CONTENT_TYPE_HEADER, Reason, Reject
from stream_app.counting.judging import Record, refused_record
from stream_app.kafka import RESUBMITTED, DeadLetter, Published, Refusals, noted
from stream_app.kafka.dead_letters import letters_in
from tests.stream_app.worlds import SCHEME, Event, Garbage, Reports, Row, Tick, scheme, wire

PUBLISHED = {"s": Published(SCHEME.survey, SCHEME.fingerprint)}


def letter(event: Event, partition: int = 0) -> DeadLetter:
    return DeadLetter("0/0/unknown-survey", Reason.UNKNOWN_SURVEY, "s", 1, partition, datetime.now(UTC), *wire(event))


def report(period: int) -> Reports:
    return Reports(period, (Row(3),))


def test_reports_of_open_periods_pass_and_others_are_late_or_too_early() -> None:
    refusals = Refusals(PUBLISHED, {"s": 4})
    found = [refusals.of(letter(report(period))) for period in (4, 5, 6, 7)]
    assert found == [Reason.LATE, None, None, Reason.TOO_FAR_AHEAD]


def test_clock_records_that_are_sent_again_close_and_open_periods_of_their_partition() -> None:
    """Failure would look like: all but the first two periods of a capture kept back as too far ahead."""
    refusals = Refusals(PUBLISHED, {})
    for period in range(9):
        assert refusals.of(letter(report(period))) is None
        assert refusals.of(letter(Tick(period))) is None
    assert refusals.of(letter(report(8))) is Reason.LATE
    assert refusals.of(letter(report(0), partition=1)) is None
    assert refusals.of(letter(report(8), partition=1)) is Reason.TOO_FAR_AHEAD


def test_records_of_no_survey_and_of_other_terms_are_refused_again() -> None:
    assert Refusals({}, {}).of(letter(report(0))) is Reason.UNKNOWN_SURVEY
    assert Refusals({"s": Published(SCHEME.survey, "0" * 32)}, {}).of(letter(report(0))) is Reason.WRONG_FINGERPRINT
    assert Refusals(PUBLISHED, {}).of(letter(Garbage(b"?"))) is Reason.UNDECODABLE


def test_a_letter_that_was_cut_is_not_sent_again() -> None:
    """Failure would look like: half a frame on the reports topic, refused a second time for another reason."""
    whole = letter(report(0))
    assert Refusals(PUBLISHED, {}).of(replace(whole, size=len(whole.value))) is None
    assert Refusals(PUBLISHED, {}).of(replace(whole, size=len(whole.value) + 1)) is Reason.TOO_LARGE


def test_a_record_names_its_survey_and_period_also_if_that_is_not_known() -> None:
    about = letter(report(7)).named
    assert about is not None
    assert (about.survey, about.fingerprint, about.period) == ("s", SCHEME.fingerprint, 7)
    other = replace(letter(report(7)), value=wire(report(7), scheme("minimum: 5,"))[1]).named
    assert other is not None and other.fingerprint != SCHEME.fingerprint
    for value in (b"", b"{", b"[]", b"\xff" * 40):
        assert replace(letter(report(7)), value=value).named is None


def test_a_letter_whose_sender_made_it_look_like_a_note_is_a_letter() -> None:
    """Failure would look like: letters that nobody sends again, or a list of dead letters that cannot be read."""
    reject = Reject(Reason.UNDECODABLE, "no such content type")
    values = [noted(["0/0/unknown-survey"]), b"not JSON", b"7", b""]
    written = [refused_record(Record(offset, RESUBMITTED, value), reject, 0) for offset, value in enumerate(values)]
    letters = [SimpleNamespace(key=one.key, value=one.value, headers=one.headers, timestamp=0) for one in written]
    headers = [(CONTENT_TYPE_HEADER, RESUBMITTED.encode())]
    note = SimpleNamespace(key=None, value=noted(["0/1/undecodable"]), headers=headers, timestamp=0)
    resubmitted: set[str] = set()
    assert [one.value for one in letters_in([*letters, note], resubmitted)] == values
    assert resubmitted == {"0/1/undecodable"}
