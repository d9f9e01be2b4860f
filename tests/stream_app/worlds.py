"""Small logs as lists of events, and a recount of them with dictionaries and sets that shares no code with the app."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta

import numpy as np

from protocols.arrays import Whole
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.survey_text import parse_survey
from protocols.wire import CLOCK, FRAME, Clock, Frame, encode_clock, encode_frame
from stream_app.counting import Statistics
from stream_app.counting.judging import Record
from stream_app.finals import Final

KEY = b"the operator's own key"
HORIZON, COLOURS, PAGES = 3, 3, 10
AHEAD = 2


def scheme(extra: str = "") -> Scheme:
    """One attribute that is answered with a symbol, one that is answered with bits."""
    return Scheme(
        parse_survey(
            f"{{id: s, start: 2026-01-01T00:00Z, period: 1d, horizon: {HORIZON}, eps_inf: 4, eps_1: 2, solution: spl, "
            f"clock: source, {extra} attributes: [{{name: colour, values: [a, b, c], mechanism: l-grr}}, "
            f"{{name: page, range: {{last: {PAGES - 1}}}, mechanism: l-osue}}]}}"
        )
    )


SCHEME = scheme()
SURVEYS = {"s": SCHEME}
BEGIN = date(2026, 2, 28)  # a Saturday: the next day begins a month, the one after it a week
CALENDAR = Scheme(
    Survey.model_validate(
        SCHEME.survey.model_dump()
        | {"id": "c", "start": f"{BEGIN}T00:00:00Z", "horizon": 1, "visitors": {"units": ["week", "month", "ever"]}}
    )
)


@dataclass(frozen=True)
class Row:
    token: int
    gap: int = 1
    colour: int = 0
    pages: int = 0  # bit i: page i is supported

    @property
    def fault(self) -> str | None:
        if not 1 <= self.gap <= HORIZON:
            return "bad-gap"
        return None if self.colour < COLOURS and self.pages < 1 << PAGES else "bad-value"


@dataclass(frozen=True)
class Reports:
    period: int
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Tick:
    through: int


@dataclass(frozen=True)
class Garbage:
    """A record that is refused as a whole."""

    value: bytes
    reason: str = "undecodable"
    rows: int = 1


Event = Reports | Tick | Garbage


def by_calendar(events: Sequence[Event]) -> list[Event]:
    """The same reports of `CALENDAR`, with flags instead of gaps. A token is a device, in all periods."""
    came = {(event.period, row.token) for event in events if isinstance(event, Reports) for row in event.rows}

    def names(period: int) -> dict[int, object]:
        day = BEGIN + timedelta(period)
        return {2: day.isocalendar()[:2], 4: (day.year, day.month), 16: "ever"}

    def flags(period: int, token: int) -> int:
        before = [names(earlier) for earlier in range(period) if (earlier, token) in came]
        return sum(bit for bit, name in names(period).items() if all(name != one[bit] for one in before))

    return [
        Reports(event.period, tuple(replace(row, gap=flags(event.period, row.token)) for row in event.rows))
        if isinstance(event, Reports)
        else event
        for event in events
    ]


def wire(event: Event, scheme: Scheme = SCHEME) -> tuple[str, bytes]:
    """An event as a content type and a value on the wire."""
    if isinstance(event, Garbage):
        return FRAME, event.value
    if isinstance(event, Tick):
        return CLOCK, encode_clock(Clock(scheme.survey.id, event.through), KEY)
    rows = sorted(event.rows, key=lambda row: row.token)
    answers = {
        "colour": np.array([row.colour for row in rows], dtype=np.uint8),
        "page": np.array([[row.pages & 0xFF, row.pages >> 8] for row in rows], dtype=np.uint8),
    }
    tokens = np.array([row.token for row in rows], dtype=np.uint64)
    gaps = np.array([row.gap for row in rows]).astype(scheme.survey.visits.wire.newbyteorder("="))
    frame = Frame(scheme.survey.id, scheme.fingerprint, event.period, tokens, gaps, answers)
    return FRAME, encode_frame(frame, scheme)


def log_of(events: Iterable[Event]) -> list[Record]:
    return [Record(offset, *wire(event)) for offset, event in enumerate(events)]


def deal(events: Iterable[Event], partitions: int) -> list[list[Event]]:
    """The same events for a number of partitions: rows by their token, clock records to all of them."""
    dealt: list[list[Event]] = [[] for _ in range(partitions)]
    for event in events:
        for partition in range(partitions):
            if isinstance(event, Tick):
                dealt[partition].append(event)
            elif isinstance(event, Reports):
                rows = tuple(row for row in event.rows if row.token % partitions == partition)
                if rows:
                    dealt[partition].append(Reports(event.period, rows))
            elif partition == 0:
                dealt[partition].append(event)
    return dealt


@dataclass
class Recount:
    """The expected result, counted one by one: supports and reports of each period, and rows refused."""

    periods: dict[int, Counter[tuple[object, ...]]] = field(default_factory=dict)
    rejects: Counter[str] = field(default_factory=Counter)
    refused: Counter[int] = field(default_factory=Counter)  # rows by period, without repeats and late ones
    late: dict[int, Counter[int]] = field(default_factory=dict)  # by the next period to close, rows by their own
    lates: Counter[int] = field(default_factory=Counter)  # late rows by period, where windows can still include it
    letters: list[set[str]] = field(default_factory=list)  # by partition: the keys of its dead letters
    through: int = 10**9  # closed in every partition

    @classmethod
    def of(cls, partitions: Sequence[Sequence[Event]]) -> "Recount":
        return cls.of_logs([dict(enumerate(events)) for events in partitions])

    @classmethod
    def of_logs(cls, partitions: Sequence[Mapping[int, Event]]) -> "Recount":
        """Of events by their offsets, in order."""
        recount = cls()
        for partition, events in enumerate(partitions):
            recount._count(events, partition, len(partitions))
        return recount

    def _count(self, events: Mapping[int, Event], partition: int, partitions: int) -> None:
        through, seen, letters = -1, set(), set()
        lates: Counter[int] = Counter()
        for offset, event in events.items():
            refused: Counter[str] = Counter()
            if isinstance(event, Tick):
                through = max(through, event.through)
            elif isinstance(event, Garbage):
                refused[event.reason] = event.rows
            elif event.period <= through:
                refused["late"] = len(event.rows)
                lates[event.period] += len(event.rows)
                if event.period > through - HORIZON:
                    self.late.setdefault(through + 1, Counter())[event.period] += len(event.rows)
            elif event.period > through + AHEAD:
                refused["too-far-ahead"] = len(event.rows)
            else:
                for row in event.rows:
                    fault = "wrong-partition" if row.token % partitions != partition else row.fault
                    if fault is None and (event.period, row.token) in seen:
                        fault = "repeat"
                    if fault is None:
                        seen.add((event.period, row.token))
                        self._add(event.period, row)
                    else:
                        refused[fault] += 1
                        self.refused[event.period] += fault != "repeat"
            self.rejects.update(refused)
            letters |= {f"{partition}/{offset}/{reason}" for reason in refused if reason != "repeat"}
        self.lates.update({period: rows for period, rows in lates.items() if period > through - HORIZON})
        self.letters.append(letters)
        self.through = min(self.through, through)

    def _add(self, period: int, row: Row) -> None:
        counted = self.periods.setdefault(period, Counter())
        counted["n", row.gap] += 1
        counted["colour", row.gap, row.colour] += 1
        counted.update(("page", row.gap, page) for page in range(PAGES) if row.pages >> page & 1)
        counted["pages", row.pages.bit_count()] += 1

    @property
    def finals(self) -> dict[int, Counter[tuple[object, ...]]]:
        """The counts of every period that is closed in all partitions, from the first one with a report."""
        first = min((period for period in self.periods if period <= self.through), default=self.through + 1)
        return {period: self.periods.get(period, Counter()) for period in range(first, self.through + 1)}


def counts_of(final: Final) -> Counter[tuple[object, ...]]:
    """The counts of a final, in the form of the recount."""
    counted: Counter[tuple[object, ...]] = Counter()
    for name, found in final.counts.items():
        for gap, n, supports in zip(found.gaps.tolist(), found.n.tolist(), found.N.tolist(), strict=True):
            counted["n", gap] = n
            counted.update({(name, gap, value): count for value, count in enumerate(supports) if count})
        counted.update({("pages", width): n for width, n in enumerate(found.widths.tolist()) if n})
    return counted


def dense(counts: Statistics, horizon: int) -> tuple[Whole, Whole]:
    """`n[gap - 1]` and `N[gap - 1, value]` for every gap up to the horizon."""
    n, N = np.zeros(horizon, dtype=np.int64), np.zeros((horizon, counts.N.shape[1]), dtype=np.int64)
    n[counts.gaps.astype(np.int64) - 1] = counts.n
    N[counts.gaps.astype(np.int64) - 1] = counts.N
    return n, N
