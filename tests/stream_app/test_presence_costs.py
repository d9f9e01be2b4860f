"""What one presence changes: every history of one device goes through the counters and the merge of the product.

Exact numbers are sums over devices, so all other devices cancel out. No series changes by more than its cost, and each
cost is reached.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from protocols.scheme import PRESENCE_ONLY, Scheme
from protocols.survey import RollingWindow, Survey
from protocols.survey.released import Released
from protocols.survey_text import parse_survey
from stream_app.finals import Final
from tests.helpers.one_device import ABSENT, LOST, Enumeration, NoNoise, enumerate_device

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
    released: Released
    attributes: str = GRR
    states: tuple[str, ...] = (ABSENT, "a")
    periods: int = PERIODS

    def scheme(self, monkeypatch: pytest.MonkeyPatch) -> Scheme:
        # Texts of surveys cannot name these lists yet.
        monkeypatch.setattr(Survey, "released", property(lambda survey: self.released))
        text = f"{{id: s, {self.terms}, presence_epsilon: 1, attributes: [{self.attributes}]}}"
        return Scheme(parse_survey(text))


ALL_OF_FIVE_DAYS = Released(("period", "week", "month"), ("period", "week", "month"), ("period", "week", "month"))
CASES = {
    "weeks and months": Case(f"{FIVE_DAYS}, eps: 1", ALL_OF_FIVE_DAYS),
    "months alone": Case(f"{FIVE_DAYS}, eps: 1", Released(("month",), ("month",), ("month",))),
    "weeks alone": Case(f"{FIVE_DAYS}, eps: 1", Released(("week",), (), ("week",))),
    "days where clocks change": Case(
        f"{CLOCKS}, eps: 1", Released(("period", "day"), ("day",), ("period", "day"))
    ),
    "gaps, with days": Case(
        "start: 2026-01-05T16:00:00Z, period: 8h, horizon: 3, eps: 1",
        Released(("period", "day"), ("period", "day"), ("period", "day")),
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
    "one question answered": Case(
        f"{FIVE_DAYS}, eps: 1",
        Released(("period", "week"), ("week",), ("period", "week")),
        f"{GRR}, {SECOND}",
        (ABSENT, "a", "b"),
        periods=5,
    ),
    "devices take turns": Case(
        f"{FIVE_DAYS}, eps: 1, one_in: 2",
        Released(("period", "week"), ("week",), ("period", "week")),
        GRR,
        (ABSENT, "a", PRESENCE_ONLY),
        periods=5,
    ),
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
Enumerated = Callable[[Case], tuple[Scheme, Enumeration]]


@pytest.fixture
def enumerated(monkeypatch: pytest.MonkeyPatch) -> Enumerated:
    def run(case: Case) -> tuple[Scheme, Enumeration]:
        scheme = case.scheme(monkeypatch)
        assert scheme.presence is not None
        noise = NoNoise(scheme.presence)
        monkeypatch.setattr("stream_app.merging.survey.Noise", noise)
        monkeypatch.setattr(Final, "encode", lambda final: b"")  # its bytes take most of the time
        return scheme, enumerate_device(scheme, noise, case.periods, case.states)

    return run


@pytest.mark.parametrize("name", CASES)
def test_one_presence_changes_each_series_by_its_cost_at_most(name: str, enumerated: Enumerated) -> None:
    scheme, found = enumerated(CASES[name])
    noise = scheme.presence
    assert noise is not None
    most: dict[str, int] = {}
    losses = []
    for period in range(found.periods):
        for series, change in found.most_changed([period]).items():
            most[series] = max(most.get(series, 0), change)
        losses.append(found.loss([period]))
    assert most == {str(series): cost for series, cost in noise.costs.items()}, "none is exceeded, each is reached"
    assert max(losses) <= noise.epsilon
