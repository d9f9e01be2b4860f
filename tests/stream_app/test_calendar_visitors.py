"""Calendar visitors: what is published of weeks, months and ever, against sets of devices by the calendar.

The count that it is compared with shares nothing with the product: dates come from the time-zone database, flags from
the device library, and unique devices are counted over all reports at once.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, timedelta
from itertools import pairwise, product
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from numpy.typing import NDArray

from analytics.mobility import WindowReport, combine, with_shortfall
from analytics.windows import UnitSum
from hearsay.library.answering import Fleet
from hearsay_device.terms import read_terms
from protocols.errors import SurveyError
from protocols.randomness import Keyring
from protocols.scheme import Scheme
from protocols.survey import CalendarVisits, Unit
from protocols.survey_text import parse_survey
from protocols.wire import CLOCK, FRAME, REPORT, Clock, Frame, encode_clock, encode_frame, row_faults
from stream_app.counting.counters import Counts, PeriodCounts
from stream_app.finals import Final, NotCounted, Release, published_sums, release, sums_through
from tests.helpers.frames import encode_report
from views.local import collector
from views.past import Past
from views.reading import Results
from views.results import HISTOGRAMS, MOBILITY, MobilityResult

KEY = bytes(32)
PLACES = {"Europe/Paris": "2025-12-15T00:00:00+01:00", "Pacific/Auckland": "2026-02-16T00:00:00+13:00"}
NAMES: dict[str, Callable[[date], object]] = {
    "day": str, "week": lambda day: day.isocalendar()[:2], "month": lambda day: (day.year, day.month),
    "year": lambda day: day.year, "ever": lambda day: 0,
}  # fmt: skip


def scheme_of(terms: str, place: str = "Europe/Paris") -> Scheme:
    return Scheme(
        parse_survey(
            f"{{id: s, start: '{PLACES[place]}', time_zone: {place}, clock: source, {terms}, "
            "attributes: [{name: a, values: [x, y, z], mechanism: grr}]}"
        )
    )


class Crowd:
    """Devices that come more or less often, stay away for weeks, and of which new ones are installed all the time.

    `visitors` and `new` are what is true: by unit, those of the unit that a period belongs to, through the period.
    """

    def __init__(self, scheme: Scheme, devices: int, periods: int, lost: float = 0.0) -> None:
        self.scheme, self.periods, self.lost = scheme, periods, lost
        self.random = random = np.random.default_rng(periods)
        often = random.random(devices) ** 4 / (1 + 24 * (scheme.survey.period < timedelta(days=1)))
        who = np.repeat(np.arange(devices), random.binomial(periods, often))
        when = random.integers(0, periods, len(who))
        since = random.integers(0, periods, devices) * (random.random(devices) < 0.5)
        left, away = random.integers(0, periods, (2, devices))
        there = (since[who] <= when) & ~((left[who] <= when) & (when < left[who] + away[who] // 4))
        self.when, self.who = np.divmod(np.unique(when[there] * devices + who[there]), devices)
        self.visitors, self.new = dict[str, NDArray[np.int64]](), dict[str, NDArray[np.int64]]()
        dates = [self._date(period) for period in range(periods)]
        for unit, name in NAMES.items():
            instance = np.cumsum([now != before for before, now in pairwise(map(name, [dates[0], *dates]))])
            self.visitors[unit] = self._first(instance, instance[self.when] * devices + self.who)
            self.new[unit] = self._first(instance, self.who)

    def _first(self, instance: NDArray[np.int64], keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many keys occur for the first time, since the first period of each period's instance."""
        found = self.when[np.unique(keys, return_index=True)[1]]
        total = np.cumsum(np.bincount(found, minlength=self.periods))
        return total - np.append(0, total)[np.searchsorted(instance, instance)]

    def _date(self, period: int) -> date:
        survey = self.scheme.survey
        assert survey.time_zone is not None
        if not survey.period % timedelta(days=1):
            return survey.start.date() + period * survey.period
        return (
            (survey.start.astimezone(UTC) + period * survey.period).astimezone(ZoneInfo(survey.time_zone.name)).date()
        )

    def frames(self) -> Iterator[Frame]:
        """The reports of each period; flags are those that the device library makes, as far as it is asked."""
        visits, calendar = self.scheme.survey.visits, read_terms(self.scheme.terms).calendar
        last = np.full(self.who.max() + 1, -1)
        for period, there in enumerate(np.split(self.who, np.searchsorted(self.when, np.arange(1, self.periods)))):
            flags = visits.of(last[there], period)
            for place in range(0, len(there), max(1, len(there) // 20)):
                before = int(last[there[place]])
                own = calendar.flags(period, None if before < 0 else before, self.scheme.survey.units)
                assert flags[place] == own
            last[there] = period
            tokens, answers = np.arange(1, len(there) + 1, dtype=np.uint64), {"a": np.zeros(len(there), dtype=np.uint8)}
            yield Frame("s", self.scheme.fingerprint, period, tokens, flags, answers)


def counted(frame: Frame, scheme: Scheme) -> Counts:
    counts = PeriodCounts(scheme)
    counts.count(frame)
    return counts.snapshot()


def finals(crowd: Crowd) -> Iterator[tuple[Final, int]]:
    """The finals of a crowd, and how many reports of the period are lost: they come late, with the next one."""
    scheme, sums, late = crowd.scheme, dict[Unit, UnitSum](), dict[int, int]()
    for frame in crowd.frames():
        period, arrives = frame.period, crowd.random.random(len(frame)) >= crowd.lost
        assert not row_faults(frame, scheme, 0, 1).any()
        missing = NotCounted(late=late)
        late = {period: int((~arrives).sum())} if not arrives.all() else {}
        final = Final.of(scheme, period, found := counted(frame.take(arrives), scheme), missing)
        sums = sums_through(scheme, period, found, final.counts, missing, sums)
        final = replace(final, units=published_sums(sums, scheme, period))
        yield Final.decode(final.encode()), sum(late.values())


DAYS = "1d", "[week, month, year, ever]"
HOURS = "1h", "[day, week, month, ever]", 100_000, 400 * 24
SIZES = [
    *(pytest.param(*DAYS, 300, 60, "Europe/Paris", lost, id=f"days-{lost}") for lost in (0.0, 0.01)),
    *(
        pytest.param(*case, marks=pytest.mark.long(part="statistics"))
        for case in [
            *((*DAYS, 100_000, 400, place, lost) for place in PLACES for lost in (0.0, 0.01)),
            *(("1w", "[month, year, ever]", 100_000, 58, place, lost) for place in PLACES for lost in (0.0, 0.01)),
            (*HOURS, "Europe/Paris", 0.01),
            (*HOURS, "Pacific/Auckland", 0.0),
        ]
    ),
]


@pytest.mark.parametrize(("period", "units", "devices", "periods", "place", "lost"), SIZES)
def test_every_unit_is_exact_and_with_losses_never_too_high(
    period: str, units: str, devices: int, periods: int, place: str, lost: float
) -> None:
    scheme = scheme_of(f"period: {period}, eps: 1, visitors: {{units: {units}}}", place)
    seen = 0
    crowd = Crowd(scheme, devices, periods, lost)
    for final, not_yet in finals(crowd):
        for unit, found in final.units.items():
            missing, new = (int(true[unit][final.period]) for true in (crowd.visitors, crowd.new))
            missing -= found.n["a"]
            assert 0 <= missing <= found.late + not_yet
            assert found.new["a"] <= new and (lost or found.new["a"] == new)
            assert found.N["a"].tolist() == [found.n["a"], 0, 0]
            seen += missing > 0
    assert (seen > 0) == (lost > 0)


@pytest.mark.parametrize("terms", [pytest.param("", marks=pytest.mark.long(part="statistics")), "one_in: 3,"])
def test_what_is_published_does_not_depend_on_restarts_partitions_or_frames(terms: str, tmp_path: Path) -> None:
    scheme = scheme_of(f"period: 6h, eps: 2, {terms} visitors: {{units: [day, week, month, ever]}}")
    people = np.random.default_rng(5)
    there = [np.flatnonzero(people.random(400) < 0.05 + 0.3 * (np.arange(400) % 7 == 0)) for _ in range(70)]
    published, reports = [], list[MobilityResult]()
    for partitions, restarts in ((1, True), (3, False)):
        fleet, directory = Fleet(scheme.survey, 400, bytes(range(32))), tmp_path / str(partitions)
        for part in np.array_split(np.arange(70), 4 if restarts else 1):
            with collector(directory, [scheme.survey], KEY, KEY, partitions=partitions) as app:
                for period in part.tolist():
                    for frame in fleet.frames(period, {"a": ["x"] * len(there[period])}, there[period]):
                        for partition in range(partitions):
                            own = frame.take(frame.tokens % np.uint64(partitions) == partition)
                            if len(own):
                                app.send(partition, FRAME, encode_frame(own, scheme))
                                app.send(partition, REPORT, encode_report(own.take(slice(0, 1)), scheme))
                    for partition in range(partitions):
                        app.send(partition, CLOCK, encode_clock(Clock("s", period), KEY))
                app.flush()
                reports = list(Results(app.store).read(MOBILITY, "s"))
                histograms = list(Results(app.store).read(HISTOGRAMS, "s"))
        published.append([report.model_dump_json() for report in (*reports, *histograms)])
    assert published[0] == published[1]
    visited = np.zeros((70, 400), dtype=bool)
    for period, devices in enumerate(there):
        visited[period, devices] = True
    kinds = set()
    for report in reports:
        for window in report.windows:
            came = visited[window.first : window.last + 1].any(axis=0)
            before = visited[: window.first].any(axis=0)
            kinds.add(window.kind)
            assert window.visitors is not None and window.visitors.value == came.sum()
            assert window.new is not None and window.new.value == (came & ~before).sum()
            assert window.returning is not None and window.returning.value == (came & before).sum()
            assert window.kind == "period" or (window.shortfall == 0)
            assert bool(window.attributes) == (not window.open or window.kind == "ever")
    assert kinds >= {"period", "day", "day so far", "week", "week so far", "month", "month so far", "ever"}
    whole = combine(reports)
    assert sum(window.kind == "week so far" for window in whole.windows) == 1
    weeks = [window for window in with_shortfall(whole, {3: 7}).windows if window.kind == "week"]
    assert {week.first: week.shortfall for week in weeks}[0] == 7


def test_flags_that_cannot_be_are_refused() -> None:
    scheme = scheme_of("period: 1d, eps: 1, visitors: calendar")
    visits = scheme.survey.visits
    assert isinstance(visits, CalendarVisits)
    for period in range(100):
        honest = {int(flags) for flags in visits.of(np.arange(-1, period), period)}
        numbers = np.arange(256, dtype=np.uint8)
        tokens, answers = np.arange(1, 257, dtype=np.uint64), {"a": np.zeros(256, dtype=np.uint8)}
        frame = Frame("s", scheme.fingerprint, period, tokens, numbers, answers)
        assert set(np.flatnonzero(row_faults(frame, scheme, 0, 1) == 0).tolist()) == honest
    for zone, period in product((None, scheme.survey.time_zone), (1 << 31, (1 << 32) - 2)):
        far = Frame("s", scheme.fingerprint, period, tokens, numbers, answers)
        assert row_faults(far, Scheme(scheme.survey.model_copy(update={"time_zone": zone})), 0, 1).all()


def test_more_who_say_they_came_before_than_there_were_contradict_themselves() -> None:
    scheme = scheme_of("period: 1d, eps: 1, visitors: calendar")
    sums, known = {}, []
    for period, n in enumerate([{22: 100}, {0: 90, 22: 10}, {0: 111}]):
        flags = np.repeat(np.array(list(n), dtype=np.uint8), list(n.values()))
        tokens, answers = np.arange(len(flags), dtype=np.uint64), {"a": (np.arange(len(flags)) % 3).astype(np.uint8)}
        counts = counted(Frame("s", scheme.fingerprint, period, tokens, flags, answers), scheme)
        final = Final.of(scheme, period, counts, NotCounted())
        sums = sums_through(scheme, period, counts, final.counts, NotCounted(), sums)
        known.append(replace(final, units=published_sums(sums, scheme, period)))
        integrity = HISTOGRAMS.make(Past(scheme, known)).integrity
        assert integrity is not None and (integrity.verdict == "contradicted") == (period == 2)
    assert integrity.flow is not None and (integrity.flow.claimed, integrity.flow.reported) == (111, 110)


def test_a_minimum_takes_one_unit_and_publishes_it_once_when_enough_came_again() -> None:
    with pytest.raises(SurveyError, match="name one unit"):
        scheme_of("period: 1d, eps: 1, minimum: 20, visitors: calendar")
    scheme = scheme_of("period: 1d, eps: 1, minimum: 20, visitors: {units: [week, ever]}")
    weeks = list[WindowReport]()
    for devices in (60, 100, 2000):
        past = list[Final]()
        for final, _ in finals(crowd := Crowd(scheme, devices, 60)):
            assert not isinstance(final.counts, Release)
            assert all(found.gaps.tolist() == [0] for found in final.counts.values())
            past.append(final)
            windows = [w for w in MOBILITY.make(Past(scheme, past[-32:])).windows if w.kind != "period"]
            for week in windows:
                assert week.kind == "week" and not week.open
                if not week.suppressed:
                    assert week.visitors is not None and week.visitors.value == crowd.visitors["week"][final.period]
                    assert week.new is None or 20 <= (week.new.value or 0) <= week.visitors.value - 20
            weeks += windows
    assert len(weeks) == 24 and {week.suppressed for week in weeks} == {None, "minimum"}
    assert {week.new is None for week in weeks if not week.suppressed} == {True, False}


def noised(scheme: Scheme, periods: Sequence[Counts], key: int) -> Iterator[list[Final]]:
    """Period by period, the finals so far under a noise key."""
    past, sums, keyring = list[Final](), dict[Unit, UnitSum](), Keyring(key.to_bytes(16, "little"))
    for period, counts in enumerate(periods):
        found = release(counts, scheme, period, None, keyring, sums)
        final = Final.of(scheme, period, found, NotCounted())
        sums = sums_through(scheme, period, found, found, NotCounted(late={0: 9}), sums)
        past.append(Final.decode(replace(final, units=published_sums(sums, scheme, period)).encode()))
        assert not any(published.late for published in past[-1].units.values()), "late reports have no noise"
        yield past


def test_noised_units_agree() -> None:
    scheme = scheme_of("period: 1d, eps: 1, presence_epsilon: 0.5, visitors: calendar")
    for past in noised(scheme, [counted(frame, scheme) for frame in Crowd(scheme, 300, 40).frames()], key=0):
        windows = MOBILITY.make(Past(scheme, past[-32:])).windows
        alone = next(window.visitors for window in windows if window.kind == "period")
        for window in windows:
            assert alone is not None and window.visitors is not None
            assert window.new is not None and window.returning is not None
            visitors, new, returning = (q.value for q in (window.visitors, window.new, window.returning))
            assert visitors is not None and new is not None and returning is not None and alone.value is not None
            assert visitors >= alone.value >= 0 and visitors == new + returning and min(new, returning) >= 0
            assert window.kind == "period" or (window.unbiased_visitors is not None and not window.attributes)


def test_intervals_of_noised_units_hold_the_truth() -> None:
    scheme, held = scheme_of("period: 1d, eps: 1, presence_epsilon: 2, visitors: calendar"), []
    crowd = Crowd(scheme, 3000, 14)
    periods = [counted(frame, scheme) for frame in crowd.frames()]
    for key in range(50):
        *_, past = noised(scheme, periods, key)
        for window in MOBILITY.make(Past(scheme, past)).windows:
            said = window.unbiased_visitors
            if window.kind != "period":
                assert said is not None and said.low is not None and said.high is not None
                held.append(said.low <= crowd.visitors[window.unit][13] <= said.high)
    assert len(held) == 100 and np.mean(held) == pytest.approx(0.95, abs=0.05)
