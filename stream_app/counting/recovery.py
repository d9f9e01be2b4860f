"""Recovery: rebuilding the counting state from its records after a crash.

What is too old is counted again from the log, what is newer skips the offsets it contains, and what belongs to a closed
period is deleted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from protocols.arrays import Tokens
from protocols.errors import AnotherRelease, StateError
from protocols.scheme import Scheme
from protocols.wire import MAX_ROWS, Lookup, most_rows
from stream_app.counting.state import Listed, OpenPeriod, Period, Position
from stream_app.log.codec import unpack
from stream_app.log.flushes import Write
from stream_app.log.marks import Loss
from stream_app.log.quarantines import NEVER_QUARANTINED, Errors
from stream_app.log.recovery import Records, StateRecords, resume_after


def recover(
    partition: int,
    records: Records,
    lookup: Lookup,
    log_start: int,
    surveys: Iterable[str],
    failing: Errors,
) -> tuple[StateRecords[Position], dict[Period, OpenPeriod], int, str]:
    """The state of one partition from its records, of any age and in any order: read on after which offset, and what
    is missing.

    The log begins at its offset `log_start`. If it lacks records, reports of the `surveys` may be among them. Surveys
    that are `failing` are quarantined.
    """
    state = StateRecords("count", partition, records, Position, failing)
    position, log_start = state.position, state.log_start(log_start)
    if state.is_accepted_now:
        position.lose(position.surveys(surveys), state.lost)
    for survey, _ in position.open:
        state.of_surveys.setdefault(survey, {})
    recovered = state.recover_each(lambda survey, group: _recover_survey(survey, group, position, lookup))
    counters = {key: counter for periods in recovered.values() for key, counter in periods.items()}
    held = {key: counter.offset for key, counter in counters.items()}
    listed = {key: one.due for key, one in position.open.items() if not position.is_quarantined(key[0])}
    behind = [position.offset_of(survey) for survey in position.quarantines if not position.is_quarantined(survey)]
    start = min([resume_after(position.offset, listed, held), *behind])
    missing = ""
    if start + 1 < log_start:
        note_missing(position, counters, log_start, surveys, lookup)
        losses = position.losses(lookup)
        spans = {(s, period) for s, lost in losses.items() for loss in lost for period in loss.periods}
        affected = [f"{s} {p}" for s, p in sorted(spans)]
        missing = (
            f"partition {partition}: offsets {start + 1} to {log_start - 1} are no longer in the log and not all of "
            f"them are in the state; reports among them are not counted, of these periods: {', '.join(affected)}"
        )
        start = log_start - 1
    return state, counters, start, missing


def _recover_survey(
    survey: str, records: Mapping[bytes, bytes], position: Position, lookup: Lookup
) -> tuple[dict[Period, OpenPeriod], list[Write]]:
    """The open periods of a survey, and the records of it that are not needed.

    Of a survey that an operator lets go on, a record that cannot be read is given up: its period is counted again.
    """
    counters: dict[Period, OpenPeriod] = {}
    tokens: list[tuple[Period, int, Tokens]] = []
    stale = []
    given_up = position.quarantines.get(survey, NEVER_QUARANTINED).offset is not None
    for key, value in records.items():
        _, _, kind, _, number, *rest = key.decode().split("/")
        period = survey, int(number)
        if period[1] <= position.clock(survey).through:
            stale.append(Write(key, None))
            continue
        scheme = known_scheme(lookup, survey)
        try:
            if kind == "counter":
                counters[period] = OpenPeriod.decode(value, scheme)
            else:
                tokens.append((period, int(rest[0]), unpack(value)[1][0]))
        except (StateError, IndexError) as error:
            if not given_up or isinstance(error, AnotherRelease):
                raise
            stale.append(Write(key, None))
    # Listed by the position or known from tokens only: an empty counter, so that its records are deleted with it.
    open_periods = {period for period in position.open if period[0] == survey}
    for period in {*open_periods, *(period for period, _, _ in tokens)} - set(counters):
        counters[period] = OpenPeriod.empty(known_scheme(lookup, survey))
    for counter in counters.values():
        counter.tokens.reserve(counter.expected_tokens)
    for period, offset, seen in tokens:
        counters[period].token_offsets.append(offset)
        if offset <= counters[period].offset:
            counters[period].tokens.insert(seen)
    for period, counter in counters.items():
        if len(counter.tokens) != counter.expected_tokens:  # some deleted by a late writer that had closed the period
            counters[period] = OpenPeriod.empty(counter.scheme, counter.token_offsets)
        if period in position.open:
            counters[period].opened = position.open[period].opened
    return counters, stale


def note_missing(
    position: Position, held: Mapping[Period, OpenPeriod], log_start: int, surveys: Iterable[str], lookup: Lookup
) -> None:
    """Note how many reports are lost at most, if the log begins only at `log_start` and this is held of open periods.

    What was counted before is known to the position. Of a record that nobody has read, only its survey's largest frame
    is known. Of a survey that is quarantined it is noted when it goes on.
    """
    for key, (due, opened, rows) in position.open.items():
        if key not in held:
            continue
        survey, period = key
        offset, held_rows = held[key].offset, held[key].rows
        if min(due, log_start - 1) > offset:
            position.lost.setdefault(survey, []).append(Loss(period, period, rows - held_rows))
        if due < log_start:  # the log cannot bring it further: do not report it again
            position.open[key] = Listed(offset, opened, held_rows)
    for survey in position.surveys(surveys):
        records = log_start - 1 - position.offset_of(survey)
        if records > 0 and not position.is_quarantined(survey):
            scheme = lookup(survey)
            position.lose([survey], records * (MAX_ROWS if scheme is None else most_rows(scheme)))
            if survey in position.quarantines:
                position.quarantines[survey] = replace(position.quarantines[survey], offset=log_start - 1)


def known_scheme(lookup: Lookup, survey: str) -> Scheme:
    """The compiled survey of a state record; an error if it is not published."""
    scheme = lookup(survey)
    if scheme is None:
        raise StateError(f"the state counts survey {survey!r}, which is not published", "publish it again, unchanged")
    return scheme
