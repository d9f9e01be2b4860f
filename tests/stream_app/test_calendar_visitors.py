"""Calendar visitors: what is published of weeks, months and ever, against sets of devices by the calendar.

The count that it is compared with shares nothing with the product: dates come from the time-zone database, flags from
the device library, and unique devices are counted over all reports at once.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, date, timedelta
from itertools import pairwise, product
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from numpy.typing import NDArray

from analytics.mobility import WindowReport, combine, with_shortfall
from analytics.mobility.model import Quantity
from hearsay.library.answering import Fleet
from hearsay_device.terms import read_terms
from protocols.scheme import Scheme
from protocols.survey import CalendarVisits
from protocols.survey_text import parse_survey
from protocols.wire import CLOCK, FRAME, REPORT, Clock, Frame, encode_clock, encode_frame, row_faults
from stream_app.counting.counters import Counts, PeriodCounts
from stream_app.finals import Final
from stream_app.merging.survey import Frozen
from tests.helpers.frames import encode_report
from tests.helpers.one_device import final_after
from tests.helpers.published import finals_of
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
    scheme = crowd.scheme
    before: Frozen | None = None
    late = dict[int, int]()
    for frame in crowd.frames():
        period = frame.period
        arrives = crowd.random.random(len(frame)) >= crowd.lost
        assert not row_faults(frame, scheme, 0, 1).any()
        before = final_after(scheme, period, counted(frame.take(arrives), scheme), before, late=late)
        lost = int((~arrives).sum())
        late = {period: lost} if lost else {}
        yield Final.decode(before.value), lost


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
    claimed = [{22: 100}, {0: 90, 22: 10}, {0: 111}]
    counts = {period: answered(scheme, period, n) for period, n in enumerate(claimed)}
    known = finals_of(scheme, counts)
    for period in counts:
        integrity = HISTOGRAMS.make(Past(scheme, known[: period + 1])).integrity
        assert integrity is not None and (integrity.verdict == "contradicted") == (period == 2)
    assert integrity.flow is not None and (integrity.flow.claimed, integrity.flow.reported) == (111, 110)


def answered(scheme: Scheme, period: int, n: dict[int, int]) -> Counts:
    """Reports by flags; each value is as frequent as the others."""
    flags = np.repeat(np.array(list(n), dtype=np.uint8), list(n.values()))
    tokens = np.arange(len(flags), dtype=np.uint64)
    answers = {"a": (np.arange(len(flags)) % 3).astype(np.uint8)}
    return counted(Frame("s", scheme.fingerprint, period, tokens, flags, answers), scheme)


@pytest.mark.parametrize("devices", [60, 100, 2000])
def test_from_publish_from_on_numbers_are_exact_and_smaller_ones_are_left_out(devices: int) -> None:
    scheme = scheme_of("period: 1d, eps: 1, minimum: 20, visitors: {units: [week, month, ever]}")
    crowd = Crowd(scheme, devices, 60)
    past = list[Final]()
    shown = Counter[tuple[str, bool]]()
    for final, _ in finals(crowd):
        past.append(final)
        assert all(found.gaps.tolist() == [0] and found.total >= 20 for found in final.counts.values())
        for window in MOBILITY.make(Past(scheme, past[-32:])).windows:
            if window.kind != "period":
                check_exact(window, crowd, final.period)
                shown[window.unit, window.visitors is not None] += 1
    assert all(shown[unit, True] for unit in ("week", "month", "ever"))
    assert any(not visible for _, visible in shown) == (devices < 2000)


def check_exact(window: WindowReport, crowd: Crowd, period: int) -> None:
    visitors = int(crowd.visitors[window.unit][period])
    new = int(crowd.new[window.unit][period])
    assert valued(window.visitors) == (visitors if visitors >= 20 else None)
    parted = min(new, visitors - new) >= 20
    assert valued(window.new) == (new if parted else None)
    assert valued(window.returning) == (visitors - new if parted else None)
    assert not window.attributes or all(found.n is None or found.n >= 20 for found in window.attributes)


def valued(found: Quantity | None) -> float | None:
    return None if found is None else found.value


def test_intervals_of_numbers_with_noise_hold_the_truth() -> None:
    """Also those of all who ever came, which are the sum of the new visitors of three months."""
    scheme = scheme_of("period: 7d, eps: 1, presence_epsilon: 2, visitors: calendar")
    crowd = Crowd(scheme, 3000, 12)
    counts = {frame.period: counted(frame, scheme) for frame in crowd.frames()}
    held = Counter[str]()
    seen = Counter[str]()
    for key in range(30):
        known = finals_of(scheme, counts, key.to_bytes(16, "little"))
        ends = [final.period for final in known if len(final.windows or ()) > 1]  # of months
        for period in ends:
            for window in MOBILITY.make(Past(scheme, known[: period + 1])).windows:
                assert window.shortfall is None, "late reports have no noise"
                for name, true in truth_of(window, crowd, period).items():
                    said = getattr(window, name)
                    seen[f"{window.kind} {name}"] += 1
                    held[f"{window.kind} {name}"] += said.low <= true <= said.high
    assert seen.keys() == {"period visitors", "month visitors", "month new", "month returning", "ever visitors"}
    for name, times in seen.items():
        assert held[name] / times > 0.95 - 4 * np.sqrt(0.05 * 0.95 / times), name


def truth_of(window: WindowReport, crowd: Crowd, period: int) -> dict[str, int]:
    """The true numbers of what a window says."""
    if window.kind == "period":
        return {"visitors": int((crowd.when == period).sum())}
    visitors = int(crowd.visitors[window.unit][period])
    new = int(crowd.new[window.unit][period])
    found = {"visitors": visitors, "new": new, "returning": visitors - new}
    return {name: true for name, true in found.items() if getattr(window, name) is not None}
