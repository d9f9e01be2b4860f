"""The counting state as records, each with the offset of the log that it contains.

    count/P/position                        last offset, which log, last moves of the clocks, rejects, losses,
                                            {open period: its offset, and the one that opened it},
                                            {survey that is or was quarantined: its offset}
    count/P/accepted                        what an operator has accepted: see `stream_app.log.marks.Acceptance`
    count/P/resumed/SURVEY                  that a survey goes on: see `stream_app.log.recovery.resumption`
    count/P/counter/SURVEY/PERIOD           its offset, its counts and the rows it refused
    count/P/tokens/SURVEY/PERIOD/OFFSET     the tokens since the record before, after which the counter stood at OFFSET

Token records are never deleted while their period is open: an older counter, written late by a worker that was paused,
may still need them.

After a crash the state is recovered from them: what is too old is counted again from the log, what is newer skips the
offsets it contains, and what belongs to a closed period is deleted.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from protocols.arrays import Tokens
from protocols.errors import AnotherRelease, FingerprintChanged, StateError
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.wire import MAX_ROWS, Lookup, most_rows
from stream_app.counting.counters import PeriodCounts, arrays_of, from_arrays, version_of
from stream_app.counting.tables.tokens import TokenSet, token_set
from stream_app.log.codec import Head, pack, unpack
from stream_app.log.flushes import Write
from stream_app.log.marks import Loss, added, since
from stream_app.log.recovery import NEVER_QUARANTINED, NOTHING, Errors, LogPosition, Records, StateRecords, resume_after

NOT_YET = 2**63 - 1  # the offset of something that was not read yet
Period = tuple[str, int]  # survey, period
Rejects = dict[str, Counter[str]]  # by survey ("" where it could not be read), by reason, in rows


def partition_of_key(key: bytes) -> int:
    """The partition a state record belongs to.

    >>> partition_of_key(b"count/3/tokens/buttons/12/40")
    3
    """
    return int(key.split(b"/", 2)[1])


NEVER = -1  # nothing is closed yet


class SurveyClock(NamedTuple):
    """The last move of one survey's clock in one partition: the offset of the clock record, and closed through what.

    Lateness depends on the log alone. When a part of the log is read again, a record must be judged as when it was
    first read. The last move of the clock is enough for that: what came after it is judged by it; what came before it
    can only belong to a period that is still open, and an open period knows the offset that opened it.
    """

    offset: int = -1
    through: int = NEVER


class Listed(NamedTuple):
    """An open period as a position lists it: through which offset its counter must be, the offset that opened it, and
    how many rows it has counted by then.

    Frames of the period before `opened` were refused, because it was too far ahead; all others until now were accepted.
    """

    due: int
    opened: int
    rows: int


@dataclass
class Position(LogPosition):
    """How far a partition has been counted, and all state that belongs to no open period."""

    clocks: dict[str, SurveyClock] = field(default_factory=dict)
    rejects: Rejects = field(default_factory=dict)
    lates: dict[str, Counter[int]] = field(default_factory=dict)  # by survey, by period, in rows
    lost: dict[str, list[Loss]] = field(default_factory=dict)  # by survey
    losing: dict[str, int] = field(default_factory=dict)  # by survey: lost since its clock last moved
    open: dict[Period, Listed] = field(default_factory=dict)

    def surveys(self, others: Iterable[str] = ()) -> set[str]:
        """The surveys of which something is known, and these others."""
        return {*others, *self.clocks, *(survey for survey, _ in self.open)}

    def lose(self, surveys: Iterable[str], reports: int) -> None:
        """Up to so many reports of each survey are lost, of whatever periods were open.

        A clock record may be lost, too, so which periods those were is known only when the next one is read.
        """
        for survey in surveys:
            self.losing[survey] = self.losing.get(survey, 0) + reports

    def lost_of(self, survey: str, ahead: int) -> tuple[Loss, ...]:
        """How many reports are lost at most."""
        through, losing = self.clock(survey).through, self.losing.get(survey, 0)
        still_open = [Loss(through + 1, through + ahead, losing)] if losing else []
        return added([*self.lost.get(survey, ()), *still_open])

    def losses(self, lookup: Lookup) -> dict[str, tuple[Loss, ...]]:
        """The same by survey, of those that are published."""
        schemes = {survey: lookup(survey) for survey in sorted({*self.lost, *self.losing})}
        return {id: self.lost_of(id, scheme.ahead) for id, scheme in schemes.items() if scheme is not None}

    def close(self, terms: Survey, offset: int, through: int) -> bool:
        """Close a survey through a period, by the record at an offset; False if it was closed that far already.

        What was lost until then is noted, and only periods are kept that windows can still include.
        """
        survey, before = terms.id, self.clock(terms.id).through
        moved, now = through > before, max(before, through)
        shown = now - terms.visits.reach + 1
        if moved:
            self.clocks[survey] = SurveyClock(offset, through)
            if losing := self.losing.pop(survey, 0):
                self.lost.setdefault(survey, []).append(Loss(max(before + 1, shown), now + terms.ahead, losing))
        if survey in self.lates:
            self.lates[survey] = Counter({late: rows for late, rows in self.lates[survey].items() if late >= shown})
        if survey in self.lost:
            self.lost[survey] = since(self.lost[survey], terms.lost_since(now))
        return moved

    def clock(self, survey: str) -> SurveyClock:
        return self.clocks.setdefault(survey, SurveyClock())

    def _written(self) -> Head:
        return {
            "lates": {survey: sorted(rows.items()) for survey, rows in self.lates.items()},
            "open": [[*key, *listed] for key, listed in sorted(self.open.items())],
        }

    @staticmethod
    def _read(head: Head) -> dict[str, Any]:
        return {
            "clocks": {survey: SurveyClock(*move) for survey, move in head["clocks"].items()},
            "rejects": {survey: Counter(reasons) for survey, reasons in head["rejects"].items()},
            "lates": {survey: Counter(dict(rows)) for survey, rows in head["lates"].items()},
            "lost": {survey: [Loss(*loss) for loss in losses] for survey, losses in head["lost"].items()},
            "open": {(survey, period): Listed(*listed) for survey, period, *listed in head["open"]},
        }


@dataclass
class OpenPeriod:
    """One period of one survey that is not closed."""

    scheme: Scheme
    counts: PeriodCounts
    offset: int = NOTHING  # the last offset that changed it
    opened: int = NOT_YET  # the first offset that changed it, as far as is known
    rejects: Counter[str] = field(default_factory=Counter)
    late: Counter[int] = field(default_factory=Counter)  # by period: late rows that came while this was next to close
    tokens: TokenSet = field(default_factory=token_set)
    expected_tokens: int = 0  # how many its token records must have, at recovery
    new_tokens: list[Tokens] = field(default_factory=list)  # not yet in a token record
    token_offsets: list[int] = field(default_factory=list)  # offsets of its token records
    unsent: bool = False  # the merge may lack its newest counts
    brought: int = 0  # bytes that were counted since it was last written
    brought_unsent: int = 0  # ... since its counts were last sent to the merge
    changed_at: int = 0  # how much of the log had been read when it last changed
    saved_at: int | None = None  # ... as its record has it; None if it has no record
    sent_rows: int = 0  # how many rows its counts had when they were last sent
    rows: int = 0  # counted

    @staticmethod
    def empty(scheme: Scheme, token_offsets: Iterable[int] = ()) -> "OpenPeriod":
        return OpenPeriod(scheme, PeriodCounts(scheme), token_offsets=list(token_offsets))

    def take_tokens(self) -> bytes:
        """The tokens since the last record as a record."""
        record = pack({"offset": self.offset}, [np.concatenate(self.new_tokens)])
        self.token_offsets.append(self.offset)
        self.new_tokens = []
        return record

    def encode(self) -> bytes:
        counts = self.counts.snapshot()
        head: Head = {
            "offset": self.offset,
            "tokens": len(self.tokens),
            "rows": self.rows,
            "rejects": self.rejects,
            "late": sorted(self.late.items()),
            "fingerprint": self.scheme.fingerprint,
            "attributes": list(counts),
        }
        return pack(head, arrays_of(counts), version_of(counts))

    @staticmethod
    def decode(data: bytes, scheme: Scheme) -> "OpenPeriod":
        head, arrays = unpack(data)
        if head["fingerprint"] != scheme.fingerprint:
            raise FingerprintChanged(
                f"the state of survey {scheme.survey.id!r} was counted under other terms",
                "publish changed terms under a new id",
            )
        counts = PeriodCounts(scheme, from_arrays(head["attributes"], arrays))
        rejects: Counter[str] = Counter(head["rejects"])
        late, tokens = Counter[int](dict(head["late"])), head["tokens"]
        recovered = OpenPeriod(
            scheme, counts, head["offset"], rejects=rejects, late=late, expected_tokens=tokens, unsent=True
        )
        recovered.saved_at, recovered.rows = 0, head["rows"]
        return recovered


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
