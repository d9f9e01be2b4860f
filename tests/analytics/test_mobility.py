"""Mobility reports, dwell times and amounts hold what the counts of a simulated town say, and its truth."""

from dataclasses import replace

import numpy as np
import pytest

from analytics.estimation.estimates import exact
from analytics.mobility import CountHistory, MobilityReport, released_report, with_changes, with_truth
from analytics.mobility.answers import Answers
from analytics.mobility.attributes import amount, dwell
from analytics.mobility.released_windows import ReleasedWindows
from analytics.windows import Table, Window, WindowNumbers
from hearsay.running.simulating import count_windows
from producers.scenarios import scenario
from protocols.arrays import Floats
from protocols.privacy import noise_error
from protocols.scheme import Scheme
from protocols.survey import Attribute
from protocols.survey_text import parse_survey
from tests.helpers.crowd import counts_of, scheme_of
from tests.helpers.published import publish
from tests.helpers.town import live, unique_devices

AREAS = ", ".join(f"r{row}c{column}" for row in range(2) for column in range(2))
NORTH_SOUTH = "{north: [r0c0, r0c1], south: [r1c0, r1c1]}"
FLOWS = ", ".join(f"'{a}>{b}'" for a in ("NW", "NE", "SW", "SE") for b in ("NW", "NE", "SW", "SE"))
TOWN = scenario("commuters", devices=3000, periods=72, rows=2, columns=2)


SURVEY = f"""{{id: town, start: 2026-01-05T00:00:00+01:00, period: 1h, horizon: 48, eps_inf: 5, eps_1: 4,
    solution: spl, attributes: [
    {{name: area, role: area, values: [{AREAS}], groups: {NORTH_SOUTH}}},
    {{name: transition, role: transition, values: [{FLOWS}]}},
    {{name: dwell, role: dwell, range: {{first: 1, last: 8}}}}]}}"""


@pytest.fixture(scope="module")
def history() -> CountHistory:
    return live(Scheme(parse_survey(SURVEY)), TOWN)


@pytest.fixture(scope="module")
def report(history: CountHistory) -> MobilityReport:
    published = publish(history)
    windows = [Window(window.first, window.last) for window in published.windows]
    return with_changes(with_truth(published, count_windows(TOWN, windows[::7])), baseline=range(24, 48))


def test_hours_days_and_the_days_since_the_beginning_are_reported(report: MobilityReport) -> None:
    spans = {kind: [(w.first, w.last) for w in report.windows if w.kind == kind] for kind in ("day", "cumulative")}
    assert spans["day"] == [(0, 23), (24, 47), (48, 71)]
    assert spans["cumulative"] == [(0, 47)]
    assert sum(w.kind == "period" for w in report.windows) == 72
    assert report.window(5, 5).attribute("area").counted == "value in the period"
    assert report.window(0, 23).attribute("area").counted == "first value in the window"


def test_unique_visitors_are_exact(report: MobilityReport) -> None:
    for window in (report.window(10, 10), report.window(24, 47), report.window(0, 47)):
        real = len(unique_devices(TOWN, window.first, window.last))
        assert window.visitors is not None
        assert window.visitors.value == window.visitors.low == window.visitors.high == real


def test_new_and_returning_visitors_and_their_gaps_add_up_to_all(report: MobilityReport) -> None:
    for window in report.windows:
        assert window.visitors and window.new and window.returning
        assert (window.new.value or 0) + (window.returning.value or 0) == window.visitors.value
        assert sum(gaps.visitors.value or 0 for gaps in window.gaps) == window.returning.value
    hour = report.window(30, 30)
    now, before = (set(unique_devices(TOWN, first, 29).tolist()) for first in (0, 29))
    here = set(unique_devices(TOWN, 30, 30).tolist())
    assert hour.new and hour.new.value == len(here - now)
    assert hour.gaps[0].visitors.value == len(here & before)


def test_intervals_of_people_hold_what_the_simulation_knows(report: MobilityReport) -> None:
    held: list[bool] = []
    for window in report.windows:
        for attribute in window.attributes:
            if window.visitors and attribute.values and attribute.values.truth is not None:
                people, truth = attribute.values.people(window.visitors), attribute.values.truth
                held += ((people.low <= truth) & (truth <= people.high)).tolist()
    assert len(held) > 300
    assert np.mean(held) > 0.9, "the same memos speak in all windows, so misses come together"


def test_groups_are_the_sums_of_their_values_with_smaller_intervals_than_their_sum(report: MobilityReport) -> None:
    area = report.window(40, 40).attribute("area")
    assert area.groups and area.values
    asked, north, members = report.asked("area"), area.groups.share.at(0), area.values.share
    assert (asked.groups[0], asked.values[:2]) == ("north", ("r0c0", "r0c1"))
    assert north.value == pytest.approx(members.value[:2].sum(), abs=members.error[:2].min() / 5)
    assert north.error < members.error[:2].sum()


def test_trips_are_row_and_column_sums_of_the_flows_and_hold_the_truth(report: MobilityReport) -> None:
    """Failure would look like: an error as if transitions were independent, or a sum of the wrong side."""
    held, narrow, asked = [], [], report.asked("transition")
    assert asked.places == ("NW", "NE", "SW", "SE")
    for window in report.windows:
        part = window.attribute("transition")
        if part.values is None or part.values.truth is None or part.trips is None or window.visitors is None:
            continue
        flows, truth = part.values.share.value.reshape(4, 4), part.values.truth.reshape(4, 4)
        for axis, sums in ((1, part.trips.began), (0, part.trips.ended)):
            assert sums.value == pytest.approx(flows.sum(axis), abs=float(sums.error.min()) / 5)
            real = truth.sum(axis) / (window.visitors.value or 1)
            held += ((sums.low <= real) & (real <= sums.high)).tolist()
            narrow += (abs(sums.value - real) <= (sums.high - sums.low) / 8).tolist()
    assert len(held) > 80 and np.mean(held) > 0.88 > 0.6 > np.mean(narrow), "the same memos speak in all windows"


def test_the_busiest_areas_are_ranked_and_a_clear_ranking_is_probable(report: MobilityReport) -> None:
    area = report.window(12, 12).attribute("area")
    assert area.ranking is not None
    people = [place.people.value for place in area.ranking.places]
    assert people == sorted(people, reverse=True)
    assert 0 <= area.ranking.probability <= min(place.probability for place in area.ranking.places) <= 1


def test_dwell_is_summarised_by_mean_and_quartiles(report: MobilityReport) -> None:
    window = report.window(14, 14)
    dwell = window.attribute("dwell").dwell
    assert dwell and dwell.mean and dwell.quartiles and dwell.low and dwell.high
    hours = TOWN.presences(14).values["dwell"] + 1
    assert dwell.mean.low <= hours.mean() <= dwell.mean.high
    for low, middle, high in zip(dwell.low, dwell.quartiles, dwell.high, strict=True):
        assert int(low) <= int(middle) <= int(high)


def test_the_triangle_has_every_run_of_days_up_to_the_horizon(report: MobilityReport) -> None:
    cells = {(cell.first, cell.last): cell.visitors.value for cell in report.triangle if cell.visitors}
    assert set(cells) == {(0, 23), (24, 47), (48, 71), (0, 47), (24, 71)}
    assert cells[24, 71] == len(unique_devices(TOWN, 24, 71))


def test_each_number_of_a_window_has_the_interval_of_its_own_noise() -> None:
    """A week has one noise, and not those of its days; returning visitors have those of both numbers."""
    terms = "{id: s, start: 2026-01-05T00:00:00Z, period: 1d, eps: 1, presence_epsilon: 1, visitors: calendar, "
    scheme = Scheme(parse_survey(terms + "attributes: [{name: a, values: [x, y]}]}"))
    assert scheme.presence is not None
    scales = {str(series): scale for series, scale in scheme.presence.scales.items()}
    tables = {"a": Table(1000, np.array([600, 400]))}
    visits = {"a": Table(7000, np.array([4200, 2800]), periods=7)}
    windows = (WindowNumbers("period", 6, 1000), WindowNumbers("week", 0, 1500, visits=visits))
    report = released_report(ReleasedWindows(scheme, 6, windows, tables))
    day, week = report.windows
    assert day.visitors and week.visitors and week.visits
    assert (day.visitors.value, week.visitors.value, week.visits.value) == (1000, 1500, 7000)
    assert day.visitors.error == noise_error([scales["reports of period"]])
    assert week.visitors.error == noise_error([scales["visitors of week"]])
    assert week.visits.error == noise_error([scales["reports of period"]] * 7)
    shares = [window.attribute("a").values for window in (day, week)]
    assert shares[0] and shares[1] and shares[0].share.error == pytest.approx(shares[1].share.error)
    assert week.attribute("a").counted == "all reports in the window"


def test_a_value_is_not_compared_with_an_empty_window_and_none_beyond_the_horizon_is_told(
    history: CountHistory,
) -> None:
    """Without answers there is no estimate to compare with."""

    there = np.arange(len(history.periods)) >= 24
    reports = {name: table * there[:, None] for name, table in history.reports.items()}
    supports = {
        name: [period._replace(counts=period.counts * later) for period, later in zip(periods, there, strict=True)]
        for name, periods in history.supports.items()
    }
    empty_night = replace(history, reports=reports, supports=supports)
    report = with_changes(publish(empty_night))
    first, second = (report.window(t, t).attribute("area").values for t in (24, 48))
    assert first and first.change is None
    assert second and second.change
    with pytest.raises(ValueError, match="the horizon is 48"):
        history.visitors(Window(0, 48))


SPREAD = np.array([0.3, 0.2, 0.15, 0.1, 0.1, 0.05, 0.05, 0.05])
HUMPS = np.array([1, 3, 6, 3, 1, *[0] * 9, 1, 4, 8, 4, 1, 0]) / 32


def test_a_mean_counts_each_value_with_its_middle() -> None:
    scheme = scheme_of("{name: a, values: [30m, 1h-3h, 1d], role: dwell, mechanism: grr}", "eps: 4")
    answers = Answers(scheme.question("a"), 300, np.array([100, 100, 100]), exact(np.array(300.0)))
    found = dwell(answers)
    assert found.mean and found.mean.value == pytest.approx((0.5 + 2 + 24) / 3) and found.unit == "hours"


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize(
    ("mechanism", "terms", "trials", "people", "spread"),
    [
        ("l-grr", "eps_inf: 4, eps_1: 3", 600, 300, SPREAD),
        ("l-osue", "eps_inf: 3, eps_1: 2", 600, 300, SPREAD),
        ("l-geometric", "eps_inf: 2, eps_1: 1", 600, 300, SPREAD),
        # A rough band: taken at its first crossing, the upper end of the median holds the truth in 84 of 100 trials.
        ("geometric", f"eps: {1 / 19}", 100, 3000, HUMPS),
    ],
)
def test_intervals_of_the_mean_and_of_quartiles_hold_the_truth(
    mechanism: str, terms: str, trials: int, people: int, spread: Floats
) -> None:
    """Intervals of quartiles are values, so they reach further than they must; estimates alone would not do."""
    last = len(spread)
    scheme = scheme_of(f"{{name: a, range: {{first: 1, last: {last}}}, mechanism: {mechanism}}}", terms)
    question, trial = scheme.question("a"), np.repeat(np.arange(trials), people)
    values = np.random.default_rng(5).choice(last, size=len(trial), p=spread)
    counts, n = counts_of(scheme, "a", values, trial)
    means, quartiles, ends = [], [], []
    for supports, reports, stayed in zip(counts, n, values.reshape(trials, people) + 1, strict=True):
        everybody = exact(np.array(float(reports)))
        found = dwell(Answers(question, reports, supports, everybody))
        assert found.mean and found.low and found.high
        means.append(found.mean.low <= stayed.mean() <= found.mean.high)
        true = np.quantile(stayed, [0.25, 0.5, 0.75], method="inverted_cdf")
        low, high = (np.array(end, dtype=int) for end in (found.low, found.high))
        quartiles.append((low <= true) & (true <= high))
        ends += [low <= true, true <= high]
    assert np.mean(means) == pytest.approx(0.95, abs=0.025 if trials > 500 else 0.06)
    assert np.mean(quartiles, axis=0).min() > 0.92
    assert min(map(np.mean, (ends[::2], ends[1::2]))) > 0.975


@pytest.mark.parametrize(
    ("asked", "truth"),
    [
        ("range: {first: 1, last: 8}", np.arange(1.0, 9)),
        ("range: {first: -4, last: 3}", np.arange(-4.0, 4)),
        ("range: {last: 79, step: 10}", np.arange(4.5, 80, 10)),
        ("values: ['1', '2', '3', '4', 5-8, '9', '10', 11-20]", np.array([1, 2, 3, 4, 6.5, 9, 10, 15.5])),
    ],
)
@pytest.mark.parametrize("visitors", [1000.0, 4000.0])
def test_amounts_are_means_sums_and_quantiles_of_the_middles_of_values(
    asked: str, truth: Floats, visitors: float
) -> None:
    scheme = scheme_of(f"{{name: a, {asked}, role: amount, quantiles: [0.3, 0.9], mechanism: grr}}", "eps: 6")
    question, values = scheme.question("a"), np.repeat(np.arange(8), np.rint(SPREAD * 1000).astype(int))
    counts, n = counts_of(scheme, "a", values, np.zeros(len(values), dtype=np.int64))
    found = amount(Answers(question, n[0], counts[0], exact(np.array(visitors))))
    mean, total = found.mean, found.sum
    assert mean.value is not None and mean.error is not None and total.error is not None
    assert mean.value == pytest.approx(SPREAD @ truth, abs=4 * mean.error)
    assert total.value == pytest.approx(mean.value * visitors) and total.error == pytest.approx(mean.error * visitors)
    ends = np.array(question.attribute.numbers)
    assert found.off == np.ptp(ends, axis=1).max() / 2
    assert [one.at for one in found.quantiles] == [0.3, 0.9]
    for one, place in zip(found.quantiles, (0, 5), strict=True):  # 0.3 lies between the first two values
        assert one.low <= ends[place, 1] <= one.high and one.value in ends.mean(axis=1)


def test_amounts_have_no_units() -> None:
    with pytest.raises(ValueError, match="leave the units out, or choose the role dwell"):
        Attribute(name="a", values=("1h", "2h"), role="amount")
