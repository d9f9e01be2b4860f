"""Recovery: rebuilding the counting state from its records after a crash.

After a crash in the middle of a flush, or late writes of a worker that was paused, records are of different age. They
can be combined, because each has the offset it contains: what is too old is counted again from the log, what is
newer skips the offsets it contains, and what belongs to a closed period is deleted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from protocols.errors import StateError
from protocols.scheme import Scheme
from protocols.wire import MAX_ROWS, Lookup
from stream_app.counting.state import NOTHING, OpenPeriod, Period, Position, accepted_key, position_key
from stream_app.log.codec import unpack
from stream_app.log.flushes import Write
from stream_app.log.marks import Acceptance

Records = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Recovered:
    """A recovered state: read on after `start`, delete the `stale` records; `missing` describes what is lost."""

    position: Position
    periods: dict[Period, OpenPeriod]
    start: int = NOTHING
    stale: tuple[Write, ...] = ()
    missing: str = ""


def recover(
    partition: int, records: Records, lookup: Lookup, log_start: int = 0, surveys: Iterable[str] = ()
) -> Recovered:
    """The state of one partition from its records, of any age and in any order.

    The log begins at its offset `log_start`. If it lacks records, reports of the `surveys` may be among them.
    """
    found = dict(records)
    position = Position.decode(found.pop(position_key(partition))) if position_key(partition) in found else Position()
    accepted = found.pop(accepted_key(partition), None)
    if accepted is not None:
        apply_acceptance(position, Acceptance.decode(accepted), surveys)
    log_start = max(log_start + position.mark.shift, position.mark.floor)
    counters, tokens, stale = {}, [], []
    for key, value in sorted(found.items()):
        _, _, kind, survey, period, *rest = key.decode().split("/")
        if int(period) <= position.clock(survey).through:
            stale.append(Write(key, None))
        elif kind == "counter":
            counters[survey, int(period)] = OpenPeriod.decode(value, known_scheme(lookup, survey))
        else:
            tokens.append(((survey, int(period)), int(rest[0]), value))
    # Listed by the position or known from tokens only: an empty counter, so that its records are deleted with it.
    for open_period in {*position.open, *(period for period, _, _ in tokens)} - set(counters):
        counters[open_period] = OpenPeriod.empty(known_scheme(lookup, open_period[0]))
    for counter in counters.values():
        counter.tokens.expect(counter.expected_tokens)
    for open_period, offset, value in tokens:
        counters[open_period].token_offsets.append(offset)
        if offset <= counters[open_period].offset:
            counters[open_period].tokens.insert(unpack(value)[1][0])
    for open_period, counter in counters.items():
        if len(counter.tokens) != counter.expected_tokens:  # some deleted by a late writer that had closed the period
            counters[open_period] = OpenPeriod.empty(counter.scheme, counter.token_offsets)
    start = resume_after(position.offset, position.open, {key: counter.offset for key, counter in counters.items()})
    missing = ""
    if start + 1 < log_start:
        held = {key: counter.offset for key, counter in counters.items()}
        note_missing(position, held, log_start, surveys)
        affected = [f"{s} {p}" for s in surveys_losing(position) for p in position.lost_of(s, ahead_of(lookup, s))]
        missing = (
            f"partition {partition}: offsets {start + 1} to {log_start - 1} are no longer in the log and not all of "
            f"them are in the state; reports among them are not counted, of these periods: {', '.join(affected)}"
        )
        start = log_start - 1
    return Recovered(position, counters, start, tuple(stale), missing)


def apply_acceptance(position: Position, acceptance: Acceptance, surveys: Iterable[str]) -> None:
    """Go on with the log that an operator has accepted, unless this position does so already."""
    if acceptance.mark.acceptances > position.mark.acceptances:
        position.mark = acceptance.mark
        position.lose(surveys, acceptance.lost)


def note_missing(position: Position, held: Mapping[Period, int], log_start: int, surveys: Iterable[str]) -> None:
    """Note how many reports are lost at most, if the log begins only at `log_start` and periods hold these offsets."""
    for key, due in position.open.items():
        records = min(due, log_start - 1) - held[key]
        if records > 0:
            position.lost.setdefault(key[0], Counter())[key[1]] += records * MAX_ROWS
        if due < log_start:
            position.open[key] = held[key]  # the log cannot bring it further: do not report it again
    records = log_start - 1 - position.offset
    if records > 0:
        position.lose(surveys, records * MAX_ROWS)


def surveys_losing(position: Position) -> list[str]:
    """The surveys of which reports may be lost."""
    return sorted({*position.lost, *position.losing})


def ahead_of(lookup: Lookup, survey: str) -> int:
    return known_scheme(lookup, survey).survey.ahead


def resume_after(offset: int, listed: Mapping[Any, int], held: Mapping[Any, int]) -> int:
    """The offset after which to read on: the position's, or the lowest of the records older than it lists.

    >>> resume_after(100, {"a": 90, "b": 80}, {"a": 90, "b": 40})
    40
    >>> resume_after(100, {"a": 90}, {})
    -1
    """
    older = [held.get(key, NOTHING) for key, due in listed.items() if held.get(key, NOTHING) < due]
    return min([offset, *older])


def known_scheme(lookup: Lookup, survey: str) -> Scheme:
    """The compiled survey of a state record; an error if it is not published."""
    scheme = lookup(survey)
    if scheme is None:
        raise StateError(f"the state counts survey {survey!r}, which is not published", "publish it again, unchanged")
    return scheme
