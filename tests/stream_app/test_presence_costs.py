"""What one presence changes: every history of one device goes through the counters and the merge of the product.

Exact numbers are sums over devices, so all other devices cancel out. No series changes by more than its cost, and each
cost is reached.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import combinations
from math import ceil

import pytest

from protocols.scheme import PRESENCE_ONLY, Scheme
from protocols.survey import CalendarVisits, RollingWindow, Survey, Unit
from protocols.survey.released import Released
from protocols.survey_text import parse_survey
from stream_app.counting.counters import add_counts
from stream_app.finals import Final
from stream_app.merging.survey import Frozen
from tests.helpers.one_device import (
    ABSENT,
    LOST,
    Enumeration,
    NoNoise,
    Number,
    OneDevice,
    enumerate_device,
    final_after,
)

PERIODS = 7
GRR = "{name: a, range: {last: 6}, mechanism: grr}"
SECOND = "{name: b, range: {last: 6}, mechanism: grr}"
FIVE_DAYS = "start: 2026-04-27T00:00:00Z, period: 5d, visitors: {units: [week, month, ever]}"
"""Weeks of 2, 1, 2, 1 and 1 periods, and months of 1 and 6: they do not contain each other, and all are over."""
CLOCKS = "start: 2026-10-25T00:00:00+02:00, time_zone: Europe/Paris, period: 8h, visitors: {units: [day, ever]}"
"""Clocks are put back on the first day: it has 4 periods, the second one 3."""


@dataclass(frozen=True)
class Case:
    """A survey, and what it releases."""

    terms: str
    released: Released | None = None
    attributes: str = GRR
    states: tuple[str, ...] = (ABSENT, "a")
    periods: int = PERIODS

    def scheme(self, monkeypatch: pytest.MonkeyPatch) -> Scheme:
        if self.released is not None:  # texts of surveys cannot name these lists yet
            monkeypatch.setattr(Survey, "released", property(lambda survey: self.released))
        text = f"{{id: s, {self.terms}, presence_epsilon: 1, attributes: [{self.attributes}]}}"
        return Scheme(parse_survey(text))


ALL_OF_FIVE_DAYS = Released(("period", "week", "month"), ("period", "week", "month"), ("period", "week", "month"))
TURNS = Case(
    f"{FIVE_DAYS}, eps: 1, one_in: 2",
    Released(("period", "week"), ("week",), ("period", "week")),
    states=(ABSENT, "a", PRESENCE_ONLY),
)
ONE_ANSWERED = Case(
    f"{FIVE_DAYS}, eps: 1",
    Released(("period", "week"), ("week",), ("period", "week")),
    f"{GRR}, {SECOND}",
    states=(ABSENT, "a", "b"),
)
CASES = {
    "usual": Case(f"{FIVE_DAYS}, eps: 1"),
    "usual, by gaps": Case("start: 2026-01-05T16:00:00Z, period: 8h, horizon: 3, eps: 1"),
    "weeks and months": Case(f"{FIVE_DAYS}, eps: 1", ALL_OF_FIVE_DAYS),
    "months alone": Case(f"{FIVE_DAYS}, eps: 1", Released(("month",), ("month",), ("month",))),
    "weeks alone": Case(f"{FIVE_DAYS}, eps: 1", Released(("week",), (), ("week",))),
    "days where clocks change": Case(f"{CLOCKS}, eps: 1", Released(("period", "day"), ("day",), ("period", "day"))),
    "gaps, with days": Case(
        "start: 2026-01-05T16:00:00Z, period: 8h, horizon: 3, eps: 1",
        Released(("period", "day"), ("period", "day"), ("period", "day")),
    ),
    "gaps, with weeks": Case(
        "start: 2026-01-05T00:00:00Z, period: 84h, horizon: 3, eps: 1",
        Released(("period", "week"), ("week",), ("period", "week")),
    ),
    "gaps, last days by day": Case(
        "start: 2026-01-05T00:00:00Z, period: 1d, horizon: 4, eps: 1",
        Released(
            ("period",),
            ("period",),
            ("period",),
            (RollingWindow(3, 1), RollingWindow(3, 2)),
        ),
    ),
    "gaps, last days by half day": Case(
        "start: 2026-01-05T00:00:00Z, period: 12h, horizon: 4, eps: 1",
        Released(("period", "day"), (), ("day",), (RollingWindow(2, 1),)),
    ),
    "bits": Case(
        f"{FIVE_DAYS}, eps: 6",
        Released(("period", "week"), (), ("period", "week")),
        "{name: a, range: {last: 97}, mechanism: oue}",
    ),
    "both questions answered": Case(
        f"{FIVE_DAYS}, eps: 2, solution: spl",
        Released(("period", "week"), (), ("period", "week")),
        f"{GRR}, {SECOND}",
    ),
    "one question answered": replace(ONE_ANSWERED, periods=5),
    "devices take turns": replace(TURNS, periods=5),
    "lost reports": Case(
        "start: 2025-12-22T00:00:00Z, period: 14d, visitors: {units: [month, ever]}, eps: 1",
        Released(("period", "month"), ("period", "month"), ("period", "month")),
        states=(ABSENT, "a", LOST),
        periods=5,
    ),
    "lost reports, by gaps": Case(
        "start: 2026-01-05T00:00:00Z, period: 12h, horizon: 3, eps: 1",
        Released(("period", "day"), ("day",), ("period", "day"), (RollingWindow(1, 1),)),
        states=(ABSENT, "a", LOST),
        periods=5,
    ),
}
MANY_STATES = {
    "one question answered": ONE_ANSWERED,
    "devices take turns": TURNS,
    "lost reports": Case(f"{FIVE_DAYS}, eps: 1", ALL_OF_FIVE_DAYS, states=(ABSENT, "a", LOST)),
}
Enumerated = Callable[[Case], tuple[Scheme, Enumeration]]
KNOWN: dict[Case, tuple[Scheme, Enumeration]] = {}
"""What several tests look at is made once."""


@pytest.fixture
def enumerated(monkeypatch: pytest.MonkeyPatch) -> Enumerated:
    def run(case: Case) -> tuple[Scheme, Enumeration]:
        if case in KNOWN:
            return KNOWN[case]
        scheme = case.scheme(monkeypatch)
        assert scheme.presence is not None
        noise = NoNoise(scheme.presence)
        monkeypatch.setattr("stream_app.merging.survey.Noise", noise)
        monkeypatch.setattr(Final, "encode", lambda final: b"")  # its bytes take most of the time
        KNOWN[case] = scheme, enumerate_device(scheme, noise, case.periods, case.states)
        return KNOWN[case]

    return run


@pytest.mark.parametrize("name", CASES)
def test_one_presence_changes_each_series_by_its_cost_at_most(name: str, enumerated: Enumerated) -> None:
    scheme, found = enumerated(CASES[name])
    check_costs(scheme, found, all_at_once=CASES[name].released is None)


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("name", MANY_STATES)
def test_the_same_in_seven_periods_with_three_states(name: str, enumerated: Enumerated) -> None:
    check_costs(*enumerated(MANY_STATES[name]))


def check_costs(scheme: Scheme, found: Enumeration, all_at_once: bool = False) -> None:
    """`all_at_once`: whether one presence can change all series by their costs."""
    noise = scheme.presence
    assert noise is not None
    most: dict[str, int] = {}
    losses = []
    for period in range(found.periods):
        for series, change in found.most_changed([period]).items():
            most[series] = max(most.get(series, 0), change)
        losses.append(found.loss([period]))
    costs = {str(series): cost for series, cost in noise.costs.items()}
    assert most == costs, "no cost is exceeded, and each is reached"
    assert max(losses) <= noise.epsilon
    assert not all_at_once or max(losses) > 0.9999 * noise.epsilon


@pytest.mark.parametrize("name", ["usual", "weeks alone", "days where clocks change", "gaps, last days by half day"])
def test_all_presences_of_a_device_change_what_plans_say_at_most(name: str, enumerated: Enumerated) -> None:
    scheme, found = enumerated(CASES[name])
    noise = scheme.presence
    assert noise is not None
    for first, last in combinations(range(found.periods), 2):
        periods = range(first, last + 1)
        instances = instances_of(scheme, periods)
        assert found.loss(periods) <= noise.loss(len(periods), instances)


def instances_of(scheme: Scheme, periods: range) -> dict[str, int]:
    """In how many days, weeks and months these periods lie."""
    begins = [scheme.survey.bounds(period)[0] for period in periods]
    days = {begin.date() for begin in begins}
    ends = [scheme.survey.bounds(period)[1] for period in periods]
    on_days = (ends[-1] - begins[0]) / timedelta(days=1)
    return {
        "day": len(days),
        "days": ceil(on_days),
        "week": len({begin.isocalendar()[:2] for begin in begins}),
        "month": len({(begin.year, begin.month) for begin in begins}),
    }


@pytest.mark.parametrize("unit", ["week", "month"])
def test_where_periods_are_not_released_epsilon_covers_a_whole_unit(unit: Unit, enumerated: Enumerated) -> None:
    scheme, found = enumerated(CASES[f"{unit}s alone"])
    visits = scheme.survey.visits
    assert isinstance(visits, CalendarVisits)
    for period in range(found.periods):
        whole = range(visits.first(unit, period), visits.last(unit, period) + 1)
        assert found.loss(whole) <= 1


def test_tables_without_numbers_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their number of reports would have no noise. Terms that ask for them are refused, so this never happens."""
    case = Case(f"{FIVE_DAYS}, eps: 1", Released(("week",), (), ("period",)))
    scheme = case.scheme(monkeypatch)
    assert scheme.presence is not None
    device = OneDevice(scheme, NoNoise(scheme.presence))
    with pytest.raises(AssertionError, match="tables are released only where numbers are"):
        device.next(0, -1, "a", None)


@pytest.mark.parametrize("name", CASES)
def test_exact_numbers_are_sums_over_devices(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So other devices cancel out in what one presence changes: nothing is decided from the numbers of all."""
    case = CASES[name]
    scheme = case.scheme(monkeypatch)
    always = [case.states[1]] * case.periods
    at_times = [state if period % 2 else ABSENT for period, state in enumerate(always)]
    last = [ABSENT] * (case.periods - 1) + always[:1]
    alone = [exact_numbers(scheme, case, [history], monkeypatch) for history in (always, at_times, last)]
    together = exact_numbers(scheme, case, [always] * 40 + [at_times] * 7 + [last], monkeypatch)
    assert together == {number: 40 * alone[0][number] + 7 * alone[1][number] + alone[2][number] for number in together}


def exact_numbers(
    scheme: Scheme, case: Case, histories: Sequence[Sequence[str]], monkeypatch: pytest.MonkeyPatch
) -> dict[Number, int]:
    """The numbers of some devices before they get noise."""
    assert scheme.presence is not None
    noise = NoNoise(scheme.presence)
    monkeypatch.setattr("stream_app.merging.survey.Noise", noise)
    monkeypatch.setattr(Final, "encode", lambda final: b"")
    device = OneDevice(scheme, noise)
    before: Frozen | None = None
    for period in range(case.periods):
        counts = []
        for history in histories:
            settled = [earlier for earlier in range(period) if history[earlier] != ABSENT]
            counts.append(device.counts(period, max(settled, default=-1), history[period]))
        before = final_after(scheme, period, add_counts(counts, scheme), before)
    return noise.exact
