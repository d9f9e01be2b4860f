"""Small random surveys with a minimum: their reports, everything that is published of them, and what it tells.

A stage sends some reports, publishes, and may then close periods and publish again.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count, pairwise
from typing import Any, NamedTuple

import numpy as np

from analytics.windows import UnitSums
from protocols.arrays import Column
from protocols.randomness import Keyring
from protocols.scheme import PRESENCE_ONLY, Scheme
from protocols.survey import BITS, CalendarVisits, Survey
from protocols.wire import CLOCK, FRAME, Clock, Frame, encode_clock, encode_frame
from stream_app.counting.counters import Counts
from stream_app.counting.judging import Record
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.finals import Final, Release, Status
from stream_app.log.flushes import FINALS, OPEN, PARTIALS, Output
from stream_app.merging.merger import Merger
from tests.helpers.frames import random_answers
from tests.helpers.published import come, making
from tests.views.knowledge import MANY, Cell, Cells, Fact, Knowledge, Numbers

KEY = b"the operator's own key"


class Report(NamedTuple):
    """A report, and what it answers. One of a closed period is late; one with a gap beyond the horizon is refused."""

    cell: Cell
    answers: Mapping[str, Column]  # one row


@dataclass(frozen=True)
class Collection:
    """A survey, its reports, and through which period it is closed after some of the stages."""

    scheme: Scheme
    reports: Sequence[Report]
    closing: Mapping[int, int]
    stages: int

    @property
    def periods(self) -> list[int]:
        """Those of which reports may be counted."""
        beyond = max(self.closing.values()) + self.scheme.survey.ahead
        return [period for period in range(beyond) if self.stages_of(period)]

    def stages_of(self, period: int) -> range:
        """The stages in which reports of a period are counted."""
        moves = [(-1, -1), *self.closing.items()]
        first = next((stage + 1 for stage, closed in moves if closed + self.scheme.survey.ahead >= period), self.stages)
        last = next((stage for stage, closed in moves if closed >= period), self.stages - 1)
        return range(first, last + 1)

    @cached_property
    def numbers(self) -> Numbers:
        """How many reports are counted in each cell."""
        cells = (report.cell for report in self.reports)
        good = (cell for cell in cells if cell.gap in gaps_of(self.scheme, cell.period))
        return Counter(cell for cell in good if cell.stage in self.stages_of(cell.period))

    def knowledge(self, periods: Sequence[int]) -> Knowledge:
        """All cells of some periods, and nothing known about them."""
        places = [(p, gap, stage) for p in periods for gap in gaps_of(self.scheme, p) for stage in self.stages_of(p)]
        cells = [Cell(p, kind, gap, stage) for kind in self.scheme.kinds for p, gap, stage in places]
        return Knowledge(cells, self.scheme.survey.minimum)


def gaps_of(scheme: Scheme, period: int) -> list[int]:
    """The gaps, or flags, that reports of a period can have."""
    visits = scheme.survey.visits
    return visits.cells[visits.good(visits.cells, period)].tolist()


def random_collection(seed: int, units: bool = False) -> Collection:
    """A small survey of any kind, and its reports. Kinds, gaps and periods have many, few or no reports."""
    random = np.random.default_rng(seed)
    scheme = _random_scheme(random, units)
    cells, minimum, kinds = scheme.survey.visits.cells, scheme.survey.minimum, list(scheme.kinds)
    reports: list[Report] = []
    closing: dict[int, int] = {}
    stage, closed, periods = 0, -1, random.integers(4, 7) if units else random.integers(1, 5)
    by_kind, by_gap = (random.dirichlet(np.ones(size)) for size in (len(kinds), len(cells)))
    while closed < periods - 1:
        for _ in range(random.integers(1, 4)):
            for period in range(max(closed, 0), closed + 3):
                share = 1.0 if period == closed + 1 else 0.2
                each = [0.3, 3, 6, 12] if units else [0, 0.3, 1, 3, 6]  # units need many who come again
                for _ in range(random.poisson(share * minimum * random.choice(each))):
                    kind = kinds[random.choice(len(kinds), p=by_kind)]
                    gap = random.choice(cells, p=by_gap) if random.random() < 0.95 else cells[-1] + 1
                    if units and gap in cells and gap not in gaps_of(scheme, period):
                        gap = cells[-1]
                    # Answers of units are published by flags: if all are alike, they tell numbers of reports alone.
                    answered = answers(scheme, kind, np.random.default_rng(0) if units else random)
                    reports.append(Report(Cell(period, kind, int(gap), stage), answered))
            stage += 1
        closed += int(random.integers(1, 3))
        closing[stage - 1] = closed
    return Collection(scheme, reports, closing, stage)


def _random_scheme(random: np.random.Generator, units: bool) -> Scheme:
    solution = str(random.choice(["smp", "smp", "spl", "rs+fd"]))
    size = int(random.integers(2 if solution == "rs+fd" else 1, 4))
    more: dict[str, Any] = {"eps": 2} if random.random() < 0.5 else {"eps_inf": 4, "eps_1": 2}
    if "eps" in more and random.random() < 0.5:
        more["one_in"] = int(random.integers(2, 4))
    if solution == "smp" and size > 1 and random.random() < 0.5:
        more["crosses"] = [{"of": ["a", "b"], "share": 0.3}]
    terms = {
        "id": "small",
        "start": "2026-01-05T00:00:00Z",
        "period": str(random.choice(["1d", "12h"])),
        "clock": "source",
        "solution": solution,
        "horizon": int(random.integers(1, 6)),
        "minimum": int(random.integers(2, 7)),
        "forecast": {"ahead": 2, "seasons": [2]},
        "attributes": [{"name": name, "values": list("xyz"[: random.integers(2, 4)])} for name in "abc"[:size]],
    }
    if units:  # a month that ends after two periods, a week that ends after four
        counted = [str(random.choice(["day", "day", "week", "month"])), "ever"]
        more |= {"start": "2026-01-31T00:00:00Z", "period": "12h", "horizon": 1, "visitors": {"units": counted}}
    return Scheme(Survey.model_validate(terms | more))


def answers(scheme: Scheme, kind: str, random: np.random.Generator) -> Mapping[str, Column]:
    """What a report of a kind answers."""
    form = () if kind == PRESENCE_ONLY else (kind,) if scheme.discloses else [q.name for q in scheme.questions]
    return {name: random_answers(scheme.question(name).mechanism.encoding.answer, 1, random) for name in form}


class Publication(NamedTuple):
    """What is published at once: finals and what is open, and the results made of them."""

    messages: list[Output]
    results: list[Output]


@dataclass
class Collected:
    """A collection that was counted, merged and published by the code that workers run."""

    collection: Collection
    publications: list[Publication] = field(default_factory=list)
    shown: list[Status] = field(default_factory=list)  # what is open, after each stage

    @staticmethod
    def of(collection: Collection) -> "Collected":
        collected, scheme = Collected(collection), collection.scheme
        lookup = {scheme.survey.id: scheme}.get
        counter, merger = PartitionCounter(0, 1, lookup, KEY), Merger(0, 1, lookup, Keyring(bytes(16)))
        runner, kept = making(scheme.survey)

        def publish() -> None:
            for item in counter.flush(everything=True):
                if isinstance(item, Output) and item.topic == PARTIALS:
                    merger.apply(merger.next_offset, item.value)
            messages = [item for item in merger.flush(everything=True) if isinstance(item, Output)]
            before = len(kept.kept)
            runner.apply(come(messages, scheme.survey))
            collected.publications.append(Publication(messages, kept.kept[before:]))

        for frames, clock in wire(collection):
            for frame in frames:
                counter.apply(Record(counter.next_offset, FRAME, frame))
            publish()
            collected.shown.append(collected.status)
            if clock is not None:
                counter.apply(Record(counter.next_offset, CLOCK, clock))
                publish()
        assert not counter.failed and not merger.failed
        return collected

    @property
    def messages(self) -> list[Output]:
        return [message for publication in self.publications for message in publication.messages]

    @property
    def status(self) -> Status:
        """The newest status."""
        found = [message.value for message in self.messages if message.topic == OPEN]
        return Status.model_validate_json(found[-1]) if found else Status(survey=self.collection.scheme.survey.id)

    @cached_property
    def released(self) -> Mapping[int, Counts]:
        """What the final of each period has."""
        counts = {final.period: final.counts for final in self.finals}
        return {period: found for period, found in counts.items() if not isinstance(found, Release)}

    @cached_property
    def units(self) -> Mapping[int, UnitSums]:
        return {final.period: final.units for final in self.finals}

    @cached_property
    def finals(self) -> list[Final]:
        return [Final.decode(message.value) for message in self.messages if message.topic == FINALS]


def wire(collection: Collection) -> Iterator[tuple[list[bytes], bytes | None]]:
    """For each stage: its frames, and the clock record that closes periods, if there is one."""
    scheme, tokens = collection.scheme, count(1)
    for stage in range(collection.stages):
        frames: dict[tuple[int, tuple[str, ...]], list[Report]] = defaultdict(list)
        for report in collection.reports:
            if report.cell.stage == stage:
                frames[report.cell.period, tuple(report.answers)].append(report)
        made = [_frame(scheme, period, reports, tokens) for (period, _), reports in sorted(frames.items())]
        closed = collection.closing.get(stage)
        yield made, None if closed is None else encode_clock(Clock(scheme.survey.id, closed), KEY)


def _frame(scheme: Scheme, period: int, reports: Sequence[Report], tokens: Iterator[int]) -> bytes:
    wire = scheme.survey.visits.wire.newbyteorder("=")
    gaps = np.array([report.cell.gap for report in reports], dtype=wire)
    drawn = np.array([next(tokens) for _ in reports], dtype=np.uint64)
    answered = {name: np.concatenate([report.answers[name] for report in reports]) for name in reports[0].answers}
    return encode_frame(Frame(scheme.survey.id, scheme.fingerprint, period, drawn, gaps, answered), scheme)


def told(collected: Collected, periods: Sequence[int]) -> Knowledge:
    """What somebody knows of some periods who knows the rule and everything that is published."""
    collection = collected.collection
    scheme, known = collection.scheme, collection.knowledge(periods)
    for period in periods:
        own = Knowledge(known.select(periods={period}), known.minimum)
        for stage in collection.stages_of(period):
            tell_open(own, scheme, stage, collected.shown[stage].open.get(period, 0))
        if any(closed >= period for closed in collection.closing.values()):
            counts = collected.released.get(period, {})
            by_range = {k: dict(zip(c.gaps.tolist(), c.n.tolist(), strict=True)) for k, c in counts.items()}
            tell_released(own, scheme, by_range)
        known.join(own)
    for period in collected.released if scheme.survey.units else ():
        _tell_units(known, collected, period)
    return known


def _tell_units(known: Knowledge, collected: Collected, period: int) -> None:
    """The visitors of calendar units that end with a period, or that they are not published; and the new ones."""
    scheme, visits = collected.collection.scheme, collected.collection.scheme.survey.visits
    assert isinstance(visits, CalendarVisits)
    for unit in (unit for unit in visits.units if visits.last(unit, period) == period):
        found, minimum = collected.units[period].get(unit), scheme.survey.minimum
        days = range(visits.first(unit, period), period + 1)
        few, few_parts = list[list[Fact]](), list[list[Fact]]()
        for kind in scheme.kinds:
            counts = [collected.released.get(day, {}).get(kind) for day in days]
            shown = [0 if one is None else one.total for one in counts]
            new, others = (
                [
                    c
                    for c in known.select(periods=days, kinds={kind})
                    if c.gap & BITS[unit] and bool(c.gap & BITS["ever"]) == is_new
                ]
                for is_new in (True, False)
            )
            few += [
                [Fact([*new, *others], 0, max(shown) + minimum - 1)],
                [Fact([*new, *others], sum(shown) - minimum + 1)],
            ]
            few_parts += [[Fact(new, 0, minimum - 1)], [Fact(others, 0, minimum - 1)]]
            if found is not None:
                known.tell(Fact([*new, *others], found.n[kind], found.n[kind]))
            if found is not None and found.new:
                known.tell(Fact(new, found.new[kind], found.new[kind]))
        if found is None:
            known.tell_any(few)
        elif not found.new:
            known.tell_any(few_parts)


def tell_open(known: Knowledge, scheme: Scheme, stage: int, reports: int) -> None:
    """The number of reports of an open period: it is rounded, and there is none before every kind has the minimum."""
    minimum, stages = scheme.survey.minimum, range(stage + 1)
    so_far = [known.select(kinds={kind}, stages=stages) for kind in scheme.kinds]
    if reports:
        known.tell(*(Fact(cells, minimum) for cells in so_far))
        known.tell(Fact(known.select(stages=stages), reports, reports + minimum - 1))
    else:
        known.tell_any([[Fact(cells, 0, minimum - 1)] for cells in so_far])


def tell_released(known: Knowledge, scheme: Scheme, released: Mapping[str, Mapping[int, int]]) -> None:
    """The numbers by question and range (its first gap) of a final, and that the rule released these and no others."""
    horizon, minimum = scheme.survey.horizon, scheme.survey.minimum
    kinds = [kind for kind in scheme.kinds if kind in released]
    _tell_left_out(known, scheme, {kind: sum(released[kind].values()) for kind in kinds})
    if scheme.survey.units:  # all flags are one range
        known.tell(*(Fact(known.select(kinds={kind}), released[kind][0], released[kind][0]) for kind in kinds))
    if not kinds or scheme.survey.units:
        return

    def cells(kind: str, first: int, end: int) -> Cells:
        return known.select(kinds={kind}, gaps=range(first, end))

    *ranges, (begin, after) = pairwise([*released[kinds[0]], horizon + 1])
    for first, end in [*ranges, (begin, after)]:
        known.tell(*(Fact(cells(kind, first, end), released[kind][first], released[kind][first]) for kind in kinds))
    for first, end in ranges:  # none ended sooner
        known.tell_any([[Fact(cells(kind, first, end - 1), 0, minimum - 1)] for kind in kinds])
    ends = []
    for end in range(begin + 1, after + 1):  # where the last one ended, and what is left is too few for another one
        enough = [Fact(cells(kind, begin, end), minimum) for kind in kinds]
        for one in kinds:
            sooner = Fact(cells(one, begin, end - 1), 0, minimum - 1)
            ends += [[*enough, sooner, Fact(cells(other, end, after), 0, minimum - 1)] for other in kinds]
    known.tell_any(ends)


def _tell_left_out(known: Knowledge, scheme: Scheme, released: Mapping[str, int]) -> None:
    """That these kinds of reports were released, and no others."""
    minimum, order = scheme.survey.minimum, scheme.kinds.index
    out = [kind for kind in scheme.kinds if kind not in released]
    together, few = known.select(kinds=out), [Fact(known.select(kinds={kind}), 0, minimum - 1) for kind in out]
    ways = [[Fact(together, 0, 0)], [*few, Fact(together, minimum)]] if released else [few]
    for kind in out:  # the smallest of those with enough reports, because the others had too few
        most = [n - (order(other) < order(kind)) for other, n in released.items()]
        others = known.select(kinds={*out} - {kind})
        ways.append([Fact(known.select(kinds={kind}), minimum, min(most, default=MANY)), Fact(others, 1, minimum - 1)])
    if out:
        known.tell_any(ways)


def with_numbers(collected: Collected, numbers: Numbers) -> Collection:
    """Another collection that has these numbers of reports. Where numbers are released, it has the same answers."""
    collection, random = collected.collection, np.random.default_rng(0)
    counted: dict[tuple[int, str, int], list[Report]] = defaultdict(list)
    reports = []
    for report in collection.reports:
        (counted[_range(collected, report.cell)] if report.cell in collection.numbers else reports).append(report)
    for cell, n in sorted(numbers.items()):
        same = counted[_range(collected, cell)]
        for _ in range(n):
            answered = same.pop().answers if same else answers(collection.scheme, cell.kind, random)
            reports.append(Report(cell, answered))
    return replace(collection, reports=reports)


def _range(collected: Collected, cell: Cell) -> tuple[int, str, int]:
    """The period and the kind of a cell, and the first gap of its range."""
    counts = collected.released.get(cell.period, {})
    firsts = counts[cell.kind].gaps.tolist() if cell.kind in counts else [0]
    return cell.period, cell.kind, max(first for first in firsts if first <= cell.gap)
