"""Published forecasts: made from finals alone, nothing about suppressed cells."""

from statistics import NormalDist

import numpy as np
import pytest

from protocols.scheme import PRESENCE_ONLY, Scheme
from protocols.survey_text import parse_survey
from stream_app.counting import Statistics
from stream_app.finals import Final
from stream_app.finals.final import message
from stream_app.log.flushes import FINALS
from tests.helpers.published import Memory, build_histogram, finals_of
from views.forecasts import FORECASTS, ForecastResult, ForecastTable, cells, observe
from views.reading import Results

PERIODS, SEASON, DAY_OFF = 190, 7, 150
TERMS = """{id: days, start: 2026-01-05T00:00:00Z, period: 1d, %s, horizon: 2, clock: source,
            forecast: {ahead: 3, seasons: [7]}, attributes: [
            {name: area, values: [a, b, c], groups: {ab: [a, b]}}, {name: kind, values: [x, y]}]}"""
LONGITUDINAL = "eps_inf: 4, eps_1: 2, minimum: 400, solution: spl"


def scheme_of(terms: str = LONGITUDINAL) -> Scheme:
    return Scheme(parse_survey(TERMS % terms))


def final(scheme: Scheme, period: int, devices: int | None = None) -> Final:
    """A final of so many reports; area a has more of them at the end of each week, and b has some on one day."""
    random = np.random.default_rng([1, period])
    n = devices or 3000 + 100 * (period % SEASON) + int(random.normal(0, 30))
    busy = 0.3 + 0.05 * (period % SEASON)
    shares = {"area": np.array([busy, 0.1, 0.9 - busy]), "kind": np.array([0.5, 0.5])}
    if period == DAY_OFF:
        shares["area"] = np.array([0.1, 0.8, 0.1])
    counts, gap = {}, np.array([1], dtype=np.uint16)
    asked = n // scheme.survey.one_in // (2 if scheme.discloses else 1)
    for question in scheme.questions:
        supports = random.binomial(asked, question.channel.support(shares[question.name]))
        counts[question.name] = Statistics(gap, np.array([asked]), supports[None])
    if scheme.takes_turns:
        silent = n - asked * len(counts)
        counts[PRESENCE_ONLY] = Statistics(gap, np.array([silent]), np.zeros((1, 0), dtype=np.int64))
    return finals_of(scheme, {period: counts})[0]


def published(scheme: Scheme, finals: list[Final]) -> Results:
    """Everything that is published."""
    return Memory([message(FINALS, one.survey, one.period, one.encode()) for one in finals], scheme.survey)


@pytest.fixture(scope="module")
def scheme() -> Scheme:
    return scheme_of()


@pytest.fixture(scope="module")
def finals(scheme: Scheme) -> list[Final]:
    return [final(scheme, period, devices=100 if period == 170 else None) for period in range(5, PERIODS)]


@pytest.fixture(scope="module")
def whole(scheme: Scheme, finals: list[Final]) -> Results:
    return published(scheme, finals)


@pytest.mark.long(part="statistics")
def test_a_suppressed_period_has_no_forecast_and_no_effect(scheme: Scheme, finals: list[Final], whole: Results) -> None:
    results = {result.period: result for result in whole.forecasts(scheme.survey.id)}
    assert all(table.suppressed == "minimum" and table.mean is None for table in results[170].tables)
    assert all(table.suppressed is None for table in results[171].tables)
    others = [final(scheme, 170, devices=399) if found.period == 170 else found for found in finals]
    later = published(scheme, others[:170]).values(FORECASTS, scheme.survey.id)
    assert later.items() <= whole.values(FORECASTS, scheme.survey.id).items()
    assert sorted(results) == list(range(49, PERIODS)), "from the first fit on, one for each final"


def test_what_leaves_its_interval_is_marked(scheme: Scheme, whole: Results) -> None:
    results: dict[int, ForecastResult] = {result.period: result for result in whole.forecasts(scheme.survey.id)}
    marked = [name for table in results[DAY_OFF].tables for name in table.unexpected]
    assert {"a", "b", "c"} <= set(marked) and "visitors" not in marked
    calm = [table for period, result in results.items() if period < DAY_OFF for table in result.tables]
    assert sum(len(table.unexpected) for table in calm) < 0.05 * sum(len(table.names) for table in calm)


def table(result: ForecastResult, kind: str) -> ForecastTable:
    return next(table for table in result.tables if table.kind == kind)


def test_forecasts_have_the_season_and_intervals_of_both_kinds(scheme: Scheme, whole: Results) -> None:
    last = whole.forecasts(scheme.survey.id)[-1]
    visitors, area = table(last, "visitors"), table(last, "values")
    assert (last.period, area.names, table(last, "groups").names) == (PERIODS - 1, ("a", "b", "c"), ("ab",))
    assert visitors.mean is not None and visitors.truth_95 and visitors.publication_95
    expected = [[3000 + 100 * ((PERIODS + step) % SEASON)] for step in range(3)]
    np.testing.assert_allclose(visitors.mean, expected, atol=80)
    assert area.mean is not None and area.truth_95 and area.truth_80
    ascending = [area.truth_95.low, area.truth_80.low, area.mean, area.truth_80.high, area.truth_95.high]
    assert (np.diff(ascending, axis=0) > 0).all()
    likely, wide = area.truth_80.high - area.mean, area.truth_95.high - area.mean
    quantile = NormalDist().inv_cdf
    np.testing.assert_allclose(wide / likely, quantile(0.975) / quantile(0.9), rtol=0.02)
    np.testing.assert_array_equal(visitors.truth_95.low, visitors.publication_95.low)  # their number is exact


def test_periods_that_will_be_suppressed_are_not_forecast() -> None:
    scheme = scheme_of("eps: 2, minimum: 3150, solution: spl")
    results = published(scheme, [final(scheme, period) for period in range(120)]).forecasts(scheme.survey.id)
    days = [table(result, "visitors") for result in results if result.period % SEASON == 6]
    visitors = next(table for table in reversed(days) if table.suppressed is None)
    assert visitors.mean is not None and np.isnan(visitors.mean[:2]).all()
    assert visitors.mean[2, 0] == pytest.approx(3200, abs=60)


NOISES = {
    "two rounds": "eps_inf: 4, eps_1: 2, solution: spl",
    "memo only": "eps_inf: 2, solution: spl",
    "one-shot": "eps: 2, solution: spl",
    "one attribute each": "eps_inf: 4, eps_1: 2",
    "one-shot, one attribute each": "eps: 2",
    "presence noise": "eps: 2, solution: spl, presence_epsilon: 0.5",
    "a third answers": "eps: 3, one_in: 3, solution: spl",
    "a third answers, presence noise": "eps: 3, one_in: 3, solution: spl, presence_epsilon: 1",
}


@pytest.mark.parametrize("terms", NOISES.values(), ids=NOISES)
def test_fresh_noise_and_memos_together_are_the_published_error(terms: str) -> None:
    scheme = scheme_of(terms)
    histogram = build_histogram("final", scheme, 8, final(scheme, 8).counts)
    values, fresh, memo = observe(scheme, histogram)
    named = dict(zip(map(str, cells(scheme)), range(len(values)), strict=True))
    area, total = histogram.attribute("area"), histogram.n
    assert area.error is not None and area.estimate is not None and total is not None
    place = named["area=a"]
    assert values[place] == pytest.approx(area.estimate[0] * total)
    assert fresh[place] + memo[place] == pytest.approx((area.error[0] * total) ** 2, rel=0.02)
    assert values[named["area=ab"]] == pytest.approx(values[place] + values[named["area=b"]])
    assert (memo[place] == 0) == (terms.startswith("eps: ") and "spl" in terms), "nothing of it stays"
    assert (fresh[place] < 1e-6 * memo[place]) == (terms == NOISES["memo only"])
    assert (fresh[0] > 0) == ("presence" in terms)


def test_a_forecast_is_no_term(scheme: Scheme) -> None:
    without = parse_survey((TERMS % LONGITUDINAL).replace("forecast: {ahead: 3, seasons: [7]},", ""))
    assert Scheme(without).fingerprint == scheme.fingerprint
    assert published(Scheme(without), [final(scheme, period) for period in range(60)]).forecasts("days") == []
